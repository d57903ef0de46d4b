"""Places of the nodes of a Slurm job in the network, and how far apart they are."""
