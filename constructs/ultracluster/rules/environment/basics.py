"""Helpers under the names of their former module, until their users import them from where they are."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.rules.environment.remedies import continuous, moved_to, new_database
from ultracluster.rules.environment.zones import in_local_zone, not_a_zone_of, unknown_zone

__all__ = [
    "continuous",
    "in_local_zone",
    "moved_to",
    "new_database",
    "not_a_zone_of",
    "second_zones",
    "unknown_zone",
]


def second_zones(environment: Environment) -> list[str]:
    """Zones that a control plane or a database has besides that of the nodes."""
    return list(resolve(environment).second_zones)
