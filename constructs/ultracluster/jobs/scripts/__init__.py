"""Jobs as batch scripts of Slurm: those that we write, and notes on those that people write."""
