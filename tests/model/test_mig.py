"""What MIG makes of a node's GPUs, as pods ask for it."""

from __future__ import annotations

from typing import Any

import pytest

from ultracluster.catalog import instance_types
from ultracluster.config.nodes import NodeGroup
from ultracluster.model.mig import gpu_layouts, mig_resource, mig_resources, node_layouts, slurm_gres

MIXED = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}


@pytest.mark.parametrize(
    ("fields", "resources"),
    [
        ({}, {"nvidia.com/gpu": 8}),
        ({"mig_profile": "1g.10gb"}, {"nvidia.com/mig-1g.10gb": 56}),
        ({"mig_profile": "1g.10gb+me"}, {"nvidia.com/mig-1g.10gb.me": 8}),
        ({"mig_layout": "all-balanced"}, {mig_resource(one): 8 * count for one, count in MIXED.items()}),
        ({"mig_layout": {"3g.40gb": 2}}, {"nvidia.com/mig-3g.40gb": 16}),
        (
            {"mig_layout": [{}, {}, {}, {}, {}, {}, MIXED, {"1g.10gb": 7}]},
            {
                "nvidia.com/mig-1g.10gb": 9, "nvidia.com/mig-2g.20gb": 1, "nvidia.com/mig-3g.40gb": 1,
                "nvidia.com/gpu": 6,
            },
        ),
    ],
)  # fmt: skip
def test_a_node_offers_what_its_gpus_are_cut_into(fields: dict[str, Any], resources: dict[str, int]) -> None:
    group = NodeGroup(**{"role": "compute", "instance_type": "p5.48xlarge", "count": 1} | fields)
    layouts = gpu_layouts(group, instance_types()["p5.48xlarge"])

    assert len(layouts) == 8
    assert mig_resources(layouts) == resources


def test_a_slurm_node_counts_what_its_step_makes_with_places() -> None:
    layouts = ({"1g.10gb": 3, "4g.40gb": 1}, {}, {"1g.10gb+me": 1, "1g.20gb": 1, "1g.10gb": 1})

    assert slurm_gres(layouts, "h100") == (
        "gpu:1g.10gb:4,gpu:4g.40gb:1,gpu:h100:1,gpu:1g.10gb+me:1,gpu:1g.20gb:1"
    )
    assert node_layouts(layouts, instance_types()["p5.48xlarge"]) == [
        "4g.40gb:0,1g.10gb:4,1g.10gb:5,1g.10gb:6",
        "",
        "1g.20gb:0,1g.10gb+me:2,1g.10gb:3",
    ]
