"""What nodes read of an instance type."""

from __future__ import annotations

from ultracluster.catalog import instance_types
from ultracluster.catalog.node_facts import type_facts


def test_unknown_facts_are_left_out_and_known_ones_are_the_catalogues() -> None:
    facts = type_facts(instance_types()["p5en.48xlarge"])

    assert (facts["accelerators"], facts["efa_interfaces"], facts["nccl_protocol"]) == (8, 16, "RDMA")
    assert None not in facts.values()
    assert type_facts(instance_types()["p6e-gb200.36xlarge"])["efa_layouts"]
