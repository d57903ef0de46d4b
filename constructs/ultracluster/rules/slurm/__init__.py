"""Rules on Slurm: its configuration, and what is done about faulty nodes."""
