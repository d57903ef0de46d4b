"""Rules on node groups."""

from ultracluster.rules.groups import capacity, efa, ena_express, offerings, roles, settings, types, volumes

__all__ = ["capacity", "efa", "ena_express", "offerings", "roles", "settings", "types", "volumes"]
