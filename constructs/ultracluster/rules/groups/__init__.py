"""Rules on node groups."""

from ultracluster.rules.groups import capacity, efa, offerings, roles, settings, types

__all__ = ["capacity", "efa", "offerings", "roles", "settings", "types"]
