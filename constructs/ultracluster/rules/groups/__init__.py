"""Rules on node groups."""

from ultracluster.rules.groups import (
    announced,
    capacity,
    efa,
    ena_express,
    offerings,
    roles,
    settings,
    types,
    volumes,
)

__all__ = [
    "announced",
    "capacity",
    "efa",
    "ena_express",
    "offerings",
    "roles",
    "settings",
    "types",
    "volumes",
]
