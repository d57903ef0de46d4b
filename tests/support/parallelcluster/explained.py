"""What ParallelCluster's validators say and is meant so."""

from __future__ import annotations

from parallelcluster.harness import Found

from ultracluster.config import Environment

EXPLAINED = {
    "KeyPairValidator": "people log in through Session Manager, so there is no key pair to lose",
    "DetailedMonitoringValidator": "metrics of each minute cost more; `monitoring.detailed` asks for them",
}
"""Warnings that stay, and why."""
EXPLAINED_WITH_A_RESERVATION = {
    "EfaPlacementGroupValidator": "a reservation made outside a placement group is lost to "
    "launches into one: `Enabled: false` is written down on purpose",
}


def unexplained(found: list[Found], environment: Environment | None = None) -> list[Found]:
    """Errors, and warnings that nobody has given a reason for."""
    reasons = dict(EXPLAINED)
    groups = environment.node_groups.values() if environment else ()
    if any(group.capacity.kind == "reservation" for group in groups):
        reasons |= EXPLAINED_WITH_A_RESERVATION
    return [
        one
        for one in found
        if one.level == "ERROR" or (one.level == "WARNING" and one.validator not in reasons)
    ]
