"""Rules on Slurm: its configuration, and what is done about faulty nodes."""

from ultracluster.rules.slurm import health, settings

__all__ = ["health", "settings"]
