"""Slurm's accounting as records of use: `sacct`, with the nodes that it names, asked in a person's session.

A job's name may hold any character, line ends among them. So fields end with a mark that nobody knows before
the question is asked, and a line without it belongs to the line before (sacct manual, `--delimiter`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ultracluster.account.aws import AccountError
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.placement.spread import node_names
from ultracluster.jobs.queue.person_session import PersonSession
from ultracluster.model import Cluster, Group
from ultracluster.plan.usage import Records, Run

FIELDS = (
    "JobID", "JobIDRaw", "User", "UID", "Account", "Partition", "State", "Start", "End", "AllocTRES",
    "NodeList", "JobName",
)  # fmt: skip
"""The name is the last one."""
SECONDS = 240
"""For the answer of a database of many months."""
_SCRIPT = r"""
export TZ=UTC LC_ALL=C SLURM_TIME_FORMAT=%s
echo "$(date +%s)"
{ scontrol show config; sacctmgr --noheader show configuration; } 2>/dev/null |
  grep -E '^ *(AccountingStorageTRES|PrivateData) '
echo '@mark@nodes'
sinfo --all --Node --noheader --format='%N|%R|%c|%m|%G' || exit
echo '@mark@jobs'
timeout @seconds@ sacct --allusers --allocations --duplicates --noheader --parsable2 --delimiter='@mark@' \
  --starttime=@since@ --endtime=@until@ --format=@fields@ || exit
echo '@mark@queue'
squeue --all --states=all --noheader --format='%A %S' || exit
"""
_UNITS = {"": 1.0, "K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30}
"""MiB of the letters behind an amount of memory."""


@dataclass(slots=True)
class _Node:
    """A node as sinfo lists it."""

    partitions: set[str] = field(default_factory=set[str])
    cpus: float = 0
    memory: float = 0
    """MiB."""
    gpus: float = 0


def read_records(
    session: PersonSession, node: str, cluster: Cluster, since: datetime, until: datetime
) -> Records:
    """Records in Slurm's accounting database of the jobs that ran between two times.

    Args:
        session: of the person, on a node that has Slurm's commands.
        node: what that node is called.

    Raises:
        AccountError: there is no accounting, or it does not answer.
    """
    mark = f"|{secrets.token_hex(6)}|"
    said = session.run(records_script(mark, since, until), what="cost by use", seconds=SECONDS + 60)
    if said.status != 0:
        why = one_line((said.errors or said.text).strip())[-300:] or f"it ended with {said.status}"
        raise AccountError(
            f"sacct on {node}: {why}. Hours of jobs need Slurm's accounting database (slurmdbd)"
        )
    return records_of(said.text, mark, cluster, f"{node} as {session.who or 'the user of sessions'}")


def records_script(mark: str, since: datetime, until: datetime) -> str:
    """Script that prints the records.

    Args:
        mark: ends each field, and begins the name of each part.
    """
    script = _SCRIPT
    for key, value in (
        ("mark", mark),
        ("seconds", str(SECONDS)),
        ("since", _utc(since)),
        ("until", _utc(until)),
        ("fields", ",".join(FIELDS)),
    ):
        script = script.replace(f"@{key}@", value)
    return script


def records_of(text: str, mark: str, cluster: Cluster, place: str) -> Records:
    """The records in what the script printed.

    Raises:
        AccountError: it cannot be read.
    """
    try:
        head, nodes_text, jobs_text, queue_text = re.split(
            rf"^{re.escape(mark)}(?:nodes|jobs|queue)\n", text, flags=re.MULTILINE
        )
        first, _, settings = head.partition("\n")
        now = float(first)
    except ValueError:
        raise AccountError("the answer of Slurm's accounting cannot be read") from None
    nodes = _nodes(nodes_text)
    alive = set(queue_text.splitlines())
    tracks = bool(re.search(r"^ *AccountingStorageTRES\b.*\bgres/gpu\b", settings, re.MULTILINE))
    groups: dict[str, str] = {}
    runs: list[Run] = []
    lost = 0
    for row in _rows(jobs_text, mark):
        names = _names(row["NodeList"])
        start, end = _seconds(row["Start"]), _seconds(row["End"])
        if start is None or not names:
            continue  # it never began
        if end is None and f"{row['JobIDRaw']} {row['Start']}" not in alive:
            lost += 1
            continue
        for name in names:
            if name not in groups:
                groups[name] = group_of(cluster, name, nodes.get(name), row["Partition"])
        share, accelerators = _shares(row["AllocTRES"], names, nodes, groups, cluster, tracks)
        runs.append(
            Run(
                job=re.split(r"[_+]", row["JobID"])[0],
                attempt=f"{row['JobIDRaw']} {row['Start']}",
                name=one_line(row["JobName"]),
                user=one_line(row["User"]) or (f"uid {one_line(row['UID'])}" if row["UID"] else ""),
                team=one_line(row["Account"]),
                nodes=names,
                start=start,
                end=end,
                share=share,
                accelerators=accelerators,
            )
        )
    return Records(
        place=place,
        now=now,
        runs=tuple(runs),
        groups={name: group for name, group in groups.items() if group},
        notes=tuple(_notes(settings, tracks, lost, cluster)),
    )


def group_of(cluster: Cluster, name: str, node: _Node | None, partition: str) -> str:
    """The group of a node of Slurm's; empty where several could be meant.

    ParallelCluster and PCS have the group in the node's name; HyperPod's differ by their size.

    Args:
        node: None where Slurm does not have it any more.
        partition: of a job that it ran.
    """
    named = cluster.partitions
    of = {partition} if partition in named else (node.partitions if node else set[str]())
    groups: dict[str, Group] = {}
    for one in of & named.keys() or named.keys():
        groups |= named[one]
    if len(groups) == 1:
        return next(iter(groups))
    if fits := [one for one in groups if f"-{one}-" in f"-{name}"]:
        return max(fits, key=len)
    if node:
        size = {one: group for one, group in groups.items() if _fits(group, node)}
        groups = size or groups
    kinds = {(group.settings.instance_type, group.capacity.kind) for group in groups.values()}
    return next(iter(groups)) if len(kinds) == 1 else ""


def _fits(group: Group, node: _Node) -> bool:
    known = group.type
    if known is None:
        return False
    gpus = known.accelerator.count if known.accelerator else 0
    return (not node.gpus or node.gpus % max(gpus, 1) == 0) and (
        bool(gpus) == bool(node.gpus) and known.vcpu in (node.cpus, 2 * node.cpus)
    )


def _shares(
    tres: str,
    names: Sequence[str],
    nodes: Mapping[str, _Node],
    groups: Mapping[str, str],
    cluster: Cluster,
    tracks: bool,
) -> tuple[float, float]:
    """Part of its nodes that others cannot have, and part of their accelerators."""
    amounts = dict(word.split("=", 1) for word in tres.split(",") if "=" in word)
    whole = [_whole(nodes.get(name), cluster.groups.get(groups.get(name, ""))) for name in names]
    cpus, memory = sum(one.cpus for one in whole), sum(one.memory for one in whole)
    gpus = sum(one.gpus for one in whole)
    gpu = next((_amount(amounts[key]) for key in ("gres/gpu", "gres/shard") if key in amounts), 0.0)
    if not any(key in amounts for key in ("cpu", "mem", "gres/gpu")):
        return 1.0, 1.0  # nothing is known: its nodes are its own
    share = max(
        (
            amount / total
            for amount, total in (
                (_amount(amounts.get("cpu", "")), cpus),
                (_amount(amounts.get("mem", "")), memory),
                (gpu, gpus),
            )
            if total
        ),
        default=1.0,
    )
    share = min(1.0, share)
    return share, min(1.0, gpu / gpus) if tracks and gpus else share


def _whole(node: _Node | None, group: Group | None) -> _Node:
    """Size of a node: by Slurm, or by the catalogue where Slurm does not have it any more."""
    if node or group is None or group.type is None:
        return node or _Node()
    known = group.type
    return _Node(
        cpus=known.vcpu or 0,
        memory=(known.memory_gib or 0) * 1024,
        gpus=known.accelerator.count if known.accelerator else 0,
    )


def _nodes(text: str) -> dict[str, _Node]:
    found: dict[str, _Node] = {}
    for line in text.splitlines():
        name, *rest = line.strip().split("|")
        if len(rest) == 4:
            one = found.setdefault(name, _Node())
            one.partitions.add(rest[0])
            one.cpus, one.memory = _amount(rest[1]), _amount(rest[2])
            one.gpus = sum(
                float(entry[1]) for entry in re.finditer(r"\bgpu:(?:[^,:(]+:)?(\d+)(?=[,(]|$)", rest[3])
            )
    return found


def _rows(text: str, mark: str) -> Iterator[dict[str, str]]:
    line = ""
    for part in text.split("\n"):
        if part.count(mark) == len(FIELDS) - 1:
            if line:
                yield _row(line, mark)
            line = part
        elif line:
            line += f" {part}"
    if line:
        yield _row(line, mark)


def _row(line: str, mark: str) -> dict[str, str]:
    return dict(zip(FIELDS, (one.strip() for one in line.split(mark)), strict=True))


def _names(text: str) -> tuple[str, ...]:
    if text in ("", "None assigned", "(null)"):
        return ()
    try:
        return tuple(node_names(text))
    except ValueError:
        return ()


def _seconds(text: str) -> float | None:
    """`Unknown` and `None` are no time."""
    return float(text) if text.isdecimal() and text != "0" else None


def _amount(text: str) -> float:
    """`16`, `64G`, `1.50T`, `512+`; memory in MiB."""
    found = re.match(r"(\d+(?:\.\d+)?)([KMGTP]?)", text)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _notes(settings: str, tracks: bool, lost: int, cluster: Cluster) -> Iterable[str]:
    if any(group.type and group.type.accelerator for group in cluster.groups.values()) and not tracks:
        yield (
            "This accounting does not record GPUs (AccountingStorageTRES has no gres/gpu): a job's part of "
            "its nodes and accelerators is that of CPUs or memory"
        )
    private = re.findall(r"^ *PrivateData\b[^=]*=\s*(\S+)", settings, re.MULTILINE)
    if {"jobs", "all"} & {word for one in private for word in one.split(",")}:
        yield (
            "PrivateData hides jobs: unless you are an operator or coordinator of Slurm, the hours of others "
            "are in the row `idle`"
        )
    if lost:
        yield (
            f"{lost} starts have no end in the accounting and are not in the queue: not counted. `sacctmgr "
            "show runawayjobs` lists and ends them"
        )


__all__ = ["FIELDS", "group_of", "read_records", "records_of", "records_script"]
