"""Batch scripts of people, held against the cluster that they are for: notes, never refusals.

Slurm itself refuses most of it, hours later or without a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from ultracluster.jobs.variables import text_notes
from ultracluster.model import Cluster, Group

_OPTION = re.compile(
    r"(?P<name>--[a-z-]+|-[A-Za-z])(?:(?:=|\s+|(?<=-[A-Za-z]))(?P<value>\"[^\"]*\"|'[^']*'|[^\s-]\S*))?"
)
_SHORT = {"-N": "--nodes", "-p": "--partition", "-o": "--output", "-e": "--error", "-G": "--gpus"}
_LOCAL = ("/tmp", "/scratch", "/dev", "/var/tmp", "/opt/dlami/nvme")  # noqa: S108 - places of nodes


def script_notes(cluster: Cluster, text: str) -> tuple[str, ...]:
    """Return what a script asks for and the cluster does not have, and what it would better leave out."""
    options = dict(_options(text))
    notes = list(_partition(cluster, options))
    groups = _groups(cluster, options)
    notes += _size(groups, options)
    notes += _output(cluster, options)
    notes += _lines(groups, text)
    return tuple(notes)


def _options(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if line.startswith("#SBATCH"):
            for found in _OPTION.finditer(line.removeprefix("#SBATCH")):
                name = _SHORT.get(found["name"], found["name"])
                yield name, (found["value"] or "").strip("\"'")
        elif line.strip() and not line.startswith("#"):
            return  # Slurm reads no options after the first command


def _partition(cluster: Cluster, options: dict[str, str]) -> Iterator[str]:
    there = cluster.partitions
    for name in filter(None, options.get("--partition", "").split(",")):
        if name not in there:
            yield f"--partition={name}: there is none; this environment has {', '.join(there)}"


def _groups(cluster: Cluster, options: dict[str, str]) -> list[Group]:
    """Groups that may run it: those of its partitions, else all."""
    named = [word for word in options.get("--partition", "").split(",") if word in cluster.partitions]
    return [group for name in named or cluster.partitions for group in cluster.partitions[name].values()]


def _size(groups: Sequence[Group], options: dict[str, str]) -> Iterator[str]:
    nodes = _number(options.get("--nodes", "").partition("-")[0])
    most = sum(group.most_nodes for group in groups)
    if nodes and groups and nodes > most:
        yield f"--nodes={nodes}: its partitions have {most} nodes at most, and the job cannot start"
    counts = [kind.accelerator.count for group in groups for kind in group.known_types if kind.accelerator]
    gres = options.get("--gres", "")
    for option, value in (
        ("--gpus-per-node", options.get("--gpus-per-node", "")),
        ("--gres", gres if gres.startswith("gpu") else ""),
    ):
        asked = _number(value.rpartition(":")[2])
        if asked and counts and asked > max(counts):
            yield f"{option}={value}: no node of its partitions has more than {max(counts)}"
    everything = options.get("--gpus", "")
    asked, there = _number(everything.rpartition(":")[2]), most * max(counts, default=0)
    if asked and counts and asked > there:
        yield f"--gpus={everything}: its partitions have {there} at most, and the job cannot start"


def _output(cluster: Cluster, options: dict[str, str]) -> Iterator[str]:
    mounts = _mounts(cluster)
    for option in ("--output", "--error"):
        path = options.get(option, "")
        if not path.startswith("/"):
            continue
        if any(PurePosixPath(path).is_relative_to(mount) for mount in mounts):
            continue
        local = any(PurePosixPath(path).is_relative_to(one) for one in _LOCAL)
        what = "is on each node's own disk" if local else "lies below no file system that nodes share"
        yield f"{option}={path}: {what}; where the folder is missing Slurm ends the job without a log. " + (
            f"Below {' or '.join(mounts)} it stays" if mounts else "Write a relative path"
        )


def _mounts(cluster: Cluster) -> list[str]:
    """Folders that all nodes share."""
    storage = cluster.environment.storage
    homes = storage.openzfs.mount_path if storage.openzfs else "/home"
    return list(dict.fromkeys([*(lustre.mount_path for lustre in cluster.lustres.values()), homes]))


def _lines(groups: Sequence[Group], text: str) -> Iterator[str]:
    makers = {
        kind.accelerator.manufacturer for group in groups for kind in group.known_types if kind.accelerator
    }
    for number, note in text_notes(text, nvidia="NVIDIA" in makers):
        yield f"line {number}: {note}"


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
