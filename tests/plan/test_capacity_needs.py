"""What capacity in a zone would need besides."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ultracluster.catalog import fsx, regions
from ultracluster.plan.capacity_needs import Home, Place, needs_of

PLACE = Place(region="us-east-2", zones=("use2-az1",), instance_type="p5.48xlarge", hyperpod=False)
HOME = Home(asked_as="prod", region="us-east-2", zone_id="use2-az2")


@pytest.mark.parametrize(
    ("changes", "orchestrator", "home", "says"),
    [
        ({}, "pcs", None, ""),
        ({}, None, replace(HOME, zone_id="use2-az1"), ""),
        ({"hyperpod": True}, "hyperpod-slurm", None, "HyperPod's quotas of the Region"),
        ({"times": 2}, None, None, "2 of it, bought one by one"),
        ({"parts": 2}, None, None, "2 stretches with breaks between"),
        ({"zones": ("use2-az1", "use2-az2")}, None, HOME, "changes its zone on the way"),
        ({"zones": ("us-east-2a-x",)}, None, None, "AWS gave only `us-east-2a-x`"),
        ({"zones": ("",)}, None, None, "the id of its zone"),
        ({"region": "us-east-1", "zones": ("use1-atl2-az1",)}, None, None, "opt-in to the Local Zone"),
        ({"region": "eu-west-3", "zones": ("euw3-az1",)}, "hyperpod-slurm", None, "is not in eu-west-3"),
        ({"region": "me-west-1", "zones": ("mew1-az1",)}, "pcs", None, "may not be in me-west-1"),
        ({"region": "xx-new-1", "zones": ("xxn1-az1",)}, "eks", None, "not in the catalogue"),
        ({"region": "me-west-1", "zones": ("mew1-az1",)}, "eks", None, "whether FSx has Lustre"),
        ({}, None, HOME, "a move (another zone): ultracluster move prod --to use2-az1"),
        ({"region": "us-west-2", "zones": ("usw2-az1",)}, None, HOME, "data is copied there"),
    ],
)
def test_each_need_is_named(changes: dict[str, Any], orchestrator: Any, home: Home | None, says: str) -> None:
    found = needs_of(replace(PLACE, **changes), orchestrator, home)
    assert (says in "; ".join(found)) if says else not found


def test_lustre_over_efa_is_missed_where_fsx_has_none() -> None:
    places = json.loads((Path(fsx.__file__).parent / "fsx.json").read_text())["places"]["regions"]
    lacking = [
        name
        for name, row in places.items()
        if "persistent-2-ssd" not in row["deployments"] and row["deployments"]
    ]
    for name in lacking:
        zone = f"{regions()[name].zone_prefix}-az1"
        assert "Lustre over TCP only" in "; ".join(
            needs_of(replace(PLACE, region=name, zones=(zone,)), None, None)
        )
    assert lacking
