"""Rules on node groups."""

from ultracluster.rules.groups import announced, capacity, efa, offerings, roles, settings, types

__all__ = ["announced", "capacity", "efa", "offerings", "roles", "settings", "types"]
