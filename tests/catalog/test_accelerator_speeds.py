"""Peaks of accelerators: whose are known, and that they are of the size that they can be."""

from __future__ import annotations

from ultracluster.catalog import instance_types
from ultracluster.catalog.accelerator_speeds import accelerator_speed

NAMES = {one.accelerator.name for one in instance_types().values() if one.accelerator}


def test_all_but_the_unpublished_are_known() -> None:
    # no dense figures were found of the Server Editions; the T4 has no BF16
    unknown = {name for name in NAMES if not accelerator_speed(name)}
    assert unknown == {"RTX PRO Server 6000", "RTX PRO 4500", "T4"}


def test_a_smaller_number_format_is_faster() -> None:
    for name in NAMES:
        if speed := accelerator_speed(name):
            order = [speed.tflops[one] for one in ("bf16", "fp8", "fp4") if one in speed.tflops]
            assert order == sorted(order), name
            assert "bf16" in speed.tflops
            assert not speed.link_gbps or speed.link_gbps < speed.memory_gbps
