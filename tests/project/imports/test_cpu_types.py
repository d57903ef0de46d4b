"""What names of types without accelerators say of them."""

from __future__ import annotations

import pytest

from ultracluster.catalog import instance_types
from ultracluster.project.imports.cpu_types import estimated


@pytest.mark.parametrize(
    "name", ["p5.48xlarge", "g6.xlarge", "trn2.48xlarge", "c7i", "m5.metal", "inf2.xlarge", ""]
)
def test_names_that_say_neither(name: str) -> None:
    assert estimated(name) is None


def test_the_catalogue_agrees() -> None:
    compared = 0
    for name, known in instance_types().items():
        if known.accelerator or not (figures := estimated(name)):
            continue
        compared += 1
        assert (figures["vcpu"], figures["architecture"]) == (known.vcpu, known.architecture), name
        assert 0.7 <= figures["memory_gib"] / known.memory_gib <= 1, name  # c5n has a third more than c5
    assert compared > 20
