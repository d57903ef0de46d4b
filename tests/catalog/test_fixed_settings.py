"""Settings that AWS does not change: whom each row binds."""

from __future__ import annotations

import pytest

from ultracluster.catalog.fixed_settings import fixed_settings

TYPE = "node_groups.train.instance_type"


@pytest.mark.parametrize(
    ("setting", "kind", "role", "removed", "held"),
    [
        (TYPE, "hyperpod-slurm", "compute", False, True),
        (TYPE, "parallelcluster", "compute", False, False),
        (TYPE, "parallelcluster", "controller", False, True),
        (TYPE, "eks", "compute", False, False),
        ("node_groups.train.count", "hyperpod-slurm", "compute", False, False),
        ("node_groups.train.volume_gib", "hyperpod-slurm", "compute", False, False),
        ("node_groups.train.volume_gib", "hyperpod-slurm", "compute", True, True),
        ("network.further_zones.use2-az3.cidr", "eks", "", False, True),
        ("network.cidr", "pcs", "", True, False),
        ("orchestrator.os", "parallelcluster", "", False, True),
        ("orchestrator.os", "pcs", "", False, False),
    ],
)
def test_a_setting_is_held_by_kind_and_role(
    setting: str, kind: str, role: str, removed: bool, held: bool
) -> None:
    found = [row for row in fixed_settings() if row.holds(setting, "ENV001", kind, role, removed=removed)]
    assert bool(found) is held


def test_a_row_of_rules_holds_their_remedies_only() -> None:
    rows = [row for row in fixed_settings() if row.rules]
    for row in rows:
        assert not row.settings
        assert row.holds("anything", row.rules[0], "eks", "", removed=False)
        assert not row.holds("anything", "ENV001", "eks", "", removed=False)
    assert rows and all(row.way and row.source for row in fixed_settings())
