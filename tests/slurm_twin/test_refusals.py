"""What the facts say of Slurm's refusals, held against the daemons of two releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from slurm_twin.reading import SLURMD_STARTED, STARTED, conf, said
from slurm_twin.root import NoTwinError

from ultracluster.catalog.slurm_refusals import (
    FileRefusal,
    RefusalFacts,
    slurm_defaults,
    slurm_file_refusals,
    slurm_refusals,
)
from ultracluster.jobs.placement.slurm_topology import as_yaml
from ultracluster.model.slurm_reading import refusals


def text(row: RefusalFacts, given: dict[str, str]) -> str:
    match row.file:
        case "NodeName":
            return conf({}, node=given)
        case "PartitionName":
            return conf({}, partition=given)
        case _:
            return conf(given)


def read(
    version: str, confs: dict[str, str], folder: Path, files: dict[str, str] | None = None
) -> dict[str, str]:
    try:
        return said(version, confs, folder, files)
    except NoTwinError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("version", ["26.05", "24.11"])
def test_slurmctld_ends_with_each_row_and_starts_with_its_advice(version: str, tmp_path: Path) -> None:
    rows = [
        row
        for row in slurm_refusals()
        if row.holds_in(version) and row.file in ("slurm.conf", "NodeName", "PartitionName")
    ]
    confs: dict[str, str] = {}
    for number, row in enumerate(rows):
        kept = {key: value for key, value in row.bad.items() if key.lower() != row.key.lower()}
        confs[f"bad{number}"] = text(row, dict(row.bad))
        confs[f"good{number}"] = text(row, kept | ({row.key: row.instead} if row.instead else {}))
    logs = read(version, confs, tmp_path)

    for number, row in enumerate(rows):
        words = [one.says for one in refusals(row.file, row.bad, version, slurm_defaults())]
        bad, good = logs[f"bad{number}"], logs[f"good{number}"]
        # the scheduler's own thread can write its last words after the daemon's first ones
        last = bad.splitlines()[-1:]
        assert any(one in bad for one in words), (row, words, bad)
        assert STARTED not in bad or "fatal: " in last[0], (row, bad)
        assert STARTED in good, (row, good)


def texts(row: FileRefusal, content: Any, name: str) -> tuple[str, dict[str, str]]:
    """slurm.conf and what stands beside it."""
    match row.file:
        case "topology.yaml":
            return conf({}), {f"{name}.topology.yaml": as_yaml(content)}
        case "plugstack.conf":
            return conf({}, node={"NodeHostname": "ctl"}), {f"{name}.plugstack": f"{content}\n"}
        case _:
            return conf({}) + f"{content}\n", {}


@pytest.mark.parametrize("version", ["26.05", "24.11"])
def test_daemons_end_with_each_file_and_start_with_the_nearest(version: str, tmp_path: Path) -> None:
    rows = [row for row in slurm_file_refusals() if row.since <= version]
    confs: dict[str, str] = {}
    files: dict[str, str] = {}
    for number, row in enumerate(rows):
        for name, content in ((f"bad{number}", row.bad), (f"good{number}", row.good)):
            confs[name], beside = texts(row, content, name)
            files |= beside
    logs = read(version, confs, tmp_path, files)

    for number, row in enumerate(rows):
        started = SLURMD_STARTED if row.file == "plugstack.conf" else STARTED
        assert row.says in logs[f"bad{number}"], (row, logs[f"bad{number}"])
        assert started not in logs[f"bad{number}"]
        assert started in logs[f"good{number}"], (row, logs[f"good{number}"])


TYPES = {
    "KillWait": "65536", "MaxJobCount": "many", "DefMemPerNode": "100G", "TrackWCKey": "on", "NoSuchKey": "1",
}  # fmt: skip


@pytest.mark.parametrize("version", ["26.05", "24.11"])
def test_slurmctld_ends_with_a_value_of_another_type(version: str, tmp_path: Path) -> None:
    later = {"MetricsParameters": "ignore_private_data"} if version < "26.05" else {}
    cases = {**TYPES, **later}
    logs = read(version, {name: conf({name: value}) for name, value in cases.items()}, tmp_path)

    for name, value in cases.items():
        (refusal,) = refusals("slurm.conf", {name: value}, version)
        assert refusal.says.replace(f"({value})", "").split()[-1] in logs[name]
        assert STARTED not in logs[name]
        assert "Unable to process configuration file" in logs[name]


NODES = {
    "Sockets=2": ({"CPUs": "192", "Sockets": "2"}, "CPUs=192 match no Sockets"),
    "CoresPerSocket=50": ({"CPUs": "192", "CoresPerSocket": "50"}, "CPUs=192 match no Sockets"),
    "MemSpecLimit=1000": ({"MemSpecLimit": "1000"}, "MemSpecLimit=1000 is invalid, reset to 0"),
    "CoreSpecCount=8": ({"CoreSpecCount": "8"}, "CoreSpecCount=8 is invalid, reset to 1"),
    "CpuSpecList=0-8": ({"CpuSpecList": "0-8"}, "unable to convert it to bitmap of size CPUs=8"),
    "whole": ({"CPUs": "192", "Sockets": "2", "CoresPerSocket": "48", "ThreadsPerCore": "2"}, ""),
    "below": ({"MemSpecLimit": "999", "CoreSpecCount": "7"}, ""),
}


@pytest.mark.parametrize("version", ["26.05", "24.11"])
def test_slurmctld_resets_numbers_of_a_node_that_do_not_fit(version: str, tmp_path: Path) -> None:
    logs = read(version, {name: conf({}, node=node) for name, (node, _) in NODES.items()}, tmp_path)

    for name, (_, words) in NODES.items():
        assert STARTED in logs[name]
        assert words in logs[name] if words else "NodeNames=" not in logs[name], logs[name]
