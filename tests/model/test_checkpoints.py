"""Checkpoints: size, time, and the file system that takes one in time."""

from __future__ import annotations

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.catalog.fsx import lustre
from ultracluster.config.lustre import lustre_of
from ultracluster.config.storage import IntelligentTieringLustre, Persistent2SsdLustre, ScratchLustre
from ultracluster.model import resolve
from ultracluster.model.checkpoints import (
    checkpoint_gb,
    likely_parameters,
    lustre_speed,
    smallest_lustre,
    state_gib,
    write_speed,
)


def test_a_parameter_takes_16_bytes_in_training_and_14_in_a_checkpoint() -> None:
    assert checkpoint_gb(70e9) == 980
    assert state_gib(2**30) == 16


def test_the_likely_model_fills_half_of_the_memory() -> None:
    assert state_gib(likely_parameters(640)) == 320


def test_speed_of_the_servers() -> None:
    ssd = Persistent2SsdLustre(deployment="persistent-2-ssd", capacity_gib=2400, throughput_mbps_per_tib=250)
    scratch = ScratchLustre(deployment="scratch-2", capacity_gib=2400)
    tiering = IntelligentTieringLustre(
        deployment="intelligent-tiering", throughput_mbps=8000, metadata_iops=6000
    )
    found = [lustre_speed(lustre_of(one)) for one in (ssd, scratch, tiering)]
    assert [(one.read_mbps, one.write_mbps) for one in found if one] == [(600, 600), (480, 240), (8000, 8000)]


def test_clients_may_be_slower_than_the_servers() -> None:
    large = {"storage.lustre.capacity_gib": 48_000, "storage.lustre.throughput_mbps_per_tib": 1000}
    cluster = resolve(loaded(changed(environment_data(), large)).environment)
    found = write_speed(cluster.lustre, cluster.groups["gpu"])
    assert found is not None
    assert (found.mbps, found.limit, found.seconds(250)) == (25_000, "clients", 10)
    assert write_speed(None, cluster.groups["gpu"]) is None


@pytest.mark.parametrize(
    ("gib", "mbps", "efa", "grows", "tiers", "expected"),
    [
        (1200, 300, False, True, (), (1200, 250)),
        (1200, 5000, False, True, (), (7200, 1000)),  # 2400 GiB at 1000 write 2400 MB/s: it grows
        (4800, 5000, False, False, (), (4800, 1000)),  # the greatest, although it does not do
        (1200, 600, False, True, (125, 250), (2400, 250)),
        (1200, 300, True, True, (), (4800, 1000)),
    ],
)
def test_the_smallest_file_system_that_writes_so_fast(
    gib: int, mbps: int, efa: bool, grows: bool, tiers: tuple[int, ...], expected: tuple[int, int]
) -> None:
    found = smallest_lustre("persistent-2-ssd", gib, mbps, efa=efa, grows=grows, tiers=tiers)
    assert found == expected
    sizes = lustre("persistent-2-ssd").capacity(found[1], efa=efa)
    assert sizes is not None
    assert found[0] in sizes
