"""Rules on teams."""

from ultracluster.rules.teams import counting, fields, members, quotas, schedulers, slurm

__all__ = ["counting", "fields", "members", "quotas", "schedulers", "slurm"]
