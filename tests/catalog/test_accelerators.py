"""Accelerators as people name them."""

from __future__ import annotations

import pytest

from ultracluster.catalog.accelerators import (
    Accelerators,
    most_in_one,
    nearest_accelerators,
    read_accelerators,
    types_with,
)


@pytest.mark.parametrize("text", ["64xH100", "64 x H100", "64 H100", " 64*H100 ", "64×H100"])
def test_a_number_and_a_name(text: str) -> None:
    assert read_accelerators(text) == Accelerators(count=64, name="H100")


@pytest.mark.parametrize("text", ["", "H100", "64", "p5.48xlarge"])
def test_what_has_no_such_form(text: str) -> None:
    assert read_accelerators(text) is None


@pytest.mark.parametrize("name", ["H100", "h100", "NVIDIA H100", "p5", "H100-80GB"])
def test_types_by_the_name_of_the_maker_of_ec2_and_of_a_family(name: str) -> None:
    assert "p5.48xlarge" in {one.name for one in types_with(name)}
    assert most_in_one(name) == 8


def test_memory_tells_accelerators_of_one_name_apart() -> None:
    assert {one.family for one in types_with("A100-80GB")} == {"p4de"}
    assert {one.family for one in types_with("A100-40GB")} == {"p4d"}


def test_a_name_that_no_type_has() -> None:
    assert (types_with("Z9000"), most_in_one("Z9000")) == ((), 0)
    assert nearest_accelerators("h10")[0] == "H100"
    assert nearest_accelerators("!!!") == ["H100", "B200", "Trainium2"]
