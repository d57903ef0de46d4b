"""How fast root volumes are."""

from __future__ import annotations

import pytest

from ultracluster.catalog import instance_type
from ultracluster.config.nodes import NodeGroup
from ultracluster.model.root_volume import (
    ACCELERATED_MBPS,
    INCLUDED_IOPS,
    INCLUDED_MBPS,
    root_iops,
    root_throughput,
)


@pytest.mark.parametrize(
    ("name", "role", "given", "mbps"),
    [
        ("p5.48xlarge", "compute", None, ACCELERATED_MBPS),
        ("p5.48xlarge", "compute", 500, 500),
        ("m5.large", "compute", None, INCLUDED_MBPS),
        ("g5.xlarge", "login", None, INCLUDED_MBPS),
        ("p99.metal", "compute", None, INCLUDED_MBPS),
    ],
)
def test_nodes_with_accelerators_read_images_fast(name: str, role: str, given: int | None, mbps: int) -> None:
    group = NodeGroup.model_validate(
        {"role": role, "instance_type": name, "count": 1, "root_volume_throughput_mbps": given}
    )
    assert root_throughput(group, instance_type(name)) == mbps


def test_a_throughput_has_the_operations_that_ebs_requires() -> None:
    assert root_iops(INCLUDED_MBPS) == root_iops(750) == INCLUDED_IOPS
    assert root_iops(1000) == 4000
