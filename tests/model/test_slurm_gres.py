"""Entries of `Gres` and records of gres.conf, as Slurm counts them."""

from __future__ import annotations

import pytest

from ultracluster.config.nodes import NodeGroup
from ultracluster.config.slurm import GresRecord
from ultracluster.model import TRAITS, Group
from ultracluster.model.slurm_gres import Gres, asked, counted, device_files, largest, uncounted


def group(gres: str) -> Group:
    settings = NodeGroup.model_validate(
        {"role": "compute", "instance_type": "p5.48xlarge", "count": 1, "slurm_settings": {"gres": gres}}
    )
    return Group(
        name="train", settings=settings, traits=TRAITS["pcs"], type=None, most_nodes=1, zone_id="use1-az4"
    )


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("gpu:8", [Gres("gpu", "", 8)]),
        ("gpu:b200:8,mps:2k", [Gres("gpu", "b200", 8), Gres("mps", "", 2048)]),
        ("GPU:h100:8(S:0-1)", [Gres("gpu", "h100", 8)]),
        ("tape", [Gres("tape", "", 1)]),
        ("shm:no_consume:4", [Gres("shm", "", 4)]),
    ],
)
def test_entries(text: str, entries: list[Gres]) -> None:
    assert asked(group(text)) == ("gres", entries)


@pytest.mark.parametrize(
    ("names", "number", "last"),
    [
        ("/dev/nvidia[0-3,6]", 5, "/dev/nvidia6"),
        ("/dev/a,/dev/b", 2, "/dev/b"),
        ("/dev/x[0-1]y[0-2]", 6, "/dev/x1y2"),
        ("/dev/nvidia[a-b]", 1, "/dev/nvidia[a-b]"),
        ("/dev/nvidia[0-", 1, "/dev/nvidia[0-"),
        ("/dev/nvidia[0-99999999999]", 1025, "/dev/nvidia1024"),
    ],
)
def test_files_of_a_record(names: str, number: int, last: str) -> None:
    files = list(device_files(names))
    assert (len(files), files[-1]) == (number, last)


def test_devices_that_a_record_declares() -> None:
    assert counted(GresRecord(name="gpu", file="/dev/nvidia[0-7]")) == 8
    assert counted(GresRecord(name="mps", count=800, file="/dev/nvidia0")) == 800
    assert counted(GresRecord(name="license")) == 1
    assert uncounted(GresRecord(name="gpu", auto_detect="nvml"))
    assert not uncounted(GresRecord(name="gpu", auto_detect="off"))


def test_the_largest_of_ranges() -> None:
    assert largest("0-47,96-143,12") == 143
