"""Where the nodes of a Slurm job are in the network, and how far apart."""
