"""Rules on teams: quotas, names, and what each scheduler can promise."""

from ultracluster.rules.teams import counting, fields, isolation, members, quotas, slurm

__all__ = ["counting", "fields", "isolation", "members", "quotas", "slurm"]
