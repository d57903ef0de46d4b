"""ENA Express by type, compared with EC2's own answers that moto carries."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from ultracluster.catalog.ena_express import has_ena_express, sizes_with_ena_express
from ultracluster.catalog.instances import instance_types


def test_ec2_says_the_same_of_every_type_that_both_know() -> None:
    known: dict[str, Any] = INSTANCE_TYPES
    both = [name for name in instance_types() if name in known]
    told = {name: bool(known[name].get("NetworkInfo", {}).get("EnaSrdSupported")) for name in both}
    assert len(both) > 200
    assert {name: has_ena_express(name) for name in both} == told


def test_of_an_unknown_type_nothing_is_known() -> None:
    assert has_ena_express("p99.metal") is None
    assert has_ena_express("m7i.large") is False
    assert sizes_with_ena_express("g6e") == ("g6e.12xlarge", "g6e.24xlarge", "g6e.48xlarge")
    assert sizes_with_ena_express("p99") == ()
