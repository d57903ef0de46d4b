"""EKS's add-ons, node images and charts."""

from __future__ import annotations

import pytest

from ultracluster.catalog import instance_type
from ultracluster.catalog.eks import (
    addon_version,
    addons,
    ami_type,
    charts,
    node_group_limits,
    node_image_date,
)
from ultracluster.catalog.eks_calendar import kubernetes_releases


@pytest.mark.parametrize("release", kubernetes_releases())
def test_every_release_has_every_add_on_and_an_image(release: str) -> None:
    assert all(addon_version(name, release).startswith("v") for name in addons())
    assert len(node_image_date(release)) == 8


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("p5.48xlarge", "AL2023_x86_64_NVIDIA"),
        ("p6e-gb200.36xlarge", "AL2023_ARM_64_NVIDIA"),
        ("trn2.48xlarge", "AL2023_x86_64_NEURON"),
        ("m7i.xlarge", "AL2023_x86_64_STANDARD"),
    ],
)
def test_the_image_of_a_type(name: str, image: str) -> None:
    found = instance_type(name)
    assert found and ami_type(found) == image


def test_charts_are_pinned() -> None:
    assert all(row["version"] for row in charts().values())
    assert all(limit > 0 for limit in node_group_limits())
