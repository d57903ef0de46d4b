"""The cluster for trials beside a large one."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from ultracluster.catalog import instance_type
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.plan.draft import Wishes
from ultracluster.plan.draft_check import deployable
from ultracluster.plan.draft_small import small

LARGE = Wishes(
    name="prod", region="us-east-2", orchestrator="pcs", instance_type="p5en.48xlarge", nodes=64,
    capacity="reservation", capacity_id="cr-0123456789abcdef0", zone_id="use2-az2", lustre_tib=400,
    protect=True,
)  # fmt: skip


@pytest.mark.parametrize("orchestrator", get_args(OrchestratorKind))
@pytest.mark.parametrize(("kind", "region"), [("p5en.48xlarge", "us-east-2"), ("trn2.48xlarge", "us-east-2")])
def test_it_can_be_deployed_and_is_of_the_same_maker(
    orchestrator: OrchestratorKind, kind: str, region: str
) -> None:
    found = small(replace(LARGE, orchestrator=orchestrator, instance_type=kind, region=region), "dev")

    one, other = instance_type(found.instance_type), instance_type(kind)
    assert deployable(found) and (found.name, found.nodes, found.protect) == ("dev", 2, False)
    assert one is not None and other is not None and one.accelerator and other.accelerator
    assert one.accelerator.manufacturer == other.accelerator.manufacturer
    assert one.vcpu < other.vcpu and one.efa_interfaces


def test_nothing_that_was_bought_for_the_large_one_is_taken() -> None:
    found = small(LARGE, "dev")

    assert (found.capacity, found.capacity_id, found.zone_id, found.lustre_tib) == ("", "", "", None)
    assert "smallest type with EFA that pcs takes in us-east-2" in found.type_reason


def test_of_a_type_that_nobody_knows_it_is_two_nodes() -> None:
    found = small(replace(LARGE, instance_type="p9.48xlarge", nodes=1), "dev")

    assert (found.instance_type, found.nodes) == ("p9.48xlarge", 1)
