"""What names of types without accelerators say of them."""

from __future__ import annotations

import pytest

from ultracluster.catalog import instance_types
from ultracluster.catalog.cpu_types import estimated_type


@pytest.mark.parametrize(
    "name", ["p5.48xlarge", "g6.xlarge", "trn2.48xlarge", "c7i", "m5.metal", "m5.13xlarge", "inf2.xlarge", ""]
)
def test_names_that_say_neither(name: str) -> None:
    assert estimated_type(name) is None


@pytest.mark.parametrize(
    ("name", "vcpu", "memory_gib", "architecture"),
    [
        ("c7i.4xlarge", 16, 32, "x86_64"),
        ("r8g.medium", 1, 8, "arm64"),
        ("t3a.medium", 2, 4, "x86_64"),
        ("m7a.48xlarge", 192, 768, "x86_64"),
    ],
)
def test_types_of_families_that_work_everywhere(
    name: str, vcpu: int, memory_gib: float, architecture: str
) -> None:
    found = estimated_type(name)

    assert found is not None
    assert (found.vcpu, found.memory_gib, found.architecture) == (vcpu, memory_gib, architecture)
    assert (found.estimated, found.hyperpod, found.efa_interfaces) == (True, False, 0)


def test_the_catalogue_agrees() -> None:
    compared = 0
    for name, known in instance_types().items():
        if known.accelerator or not (found := estimated_type(name)):
            continue
        compared += 1
        assert (found.vcpu, found.architecture) == (known.vcpu, known.architecture), name
        assert 0.7 <= found.memory_gib / known.memory_gib <= 1, name  # c5n has a third more than c5
        assert found.ipv4_per_interface and known.ipv4_per_interface, name
        assert found.ipv4_per_interface <= known.ipv4_per_interface, name
    assert compared > 20
