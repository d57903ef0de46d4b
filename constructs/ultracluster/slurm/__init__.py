"""Texts for Slurm: jobs and accounts. No CDK."""
