"""The order of a move, and the way back from each step. Nothing is deleted before the second has passed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ultracluster.moving.parts import Both, Part
from ultracluster.moving.second import bought_before, takers
from ultracluster.moving.target import CAPACITY, Target
from ultracluster.software.environment_lock import lock_file_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step; each is done before the next."""

    what: str
    why: str = ""
    commands: tuple[str, ...] = ()
    back: str
    """What leads back from here."""
    gate: bool = False
    """The second environment has to pass here; otherwise the move ends, and only that one is deleted."""
    deletes: bool = False
    """Something of the first environment goes."""
    downtime: bool = False
    """No job runs from here to the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What commands call things."""

    first: str
    """The first environment."""
    second: str
    file: str
    """Where the second is written."""
    write: str
    """The command that writes it."""
    buys: tuple[str, ...] = ()
    """Groups whose capacity is bought anew."""
    held: str = ""
    """What the account holds already, and when it begins and ends."""

    @classmethod
    def of(cls, both: Both, target: Target, place: Path, *, named: bool) -> Words:
        first = both.first.environment
        taken = takers(first, target.bought)[:1] if target.bought else []
        to = target.zone_id
        if target.bought is not None:
            away = both.away and not target.bought.id.startswith("arn:")
            to = f"{CAPACITY}{f'{target.region}/' if away else ''}{target.bought.id}"
        words = ["ultracluster", "move", first.asked_as, "--to", to]
        words += ["--name", both.second.name] if named else []
        return cls(
            first=first.asked_as,
            second=both.second.environment.asked_as,
            file=str(place),
            write=shlex.join([*words, "--write", str(place)]),
            buys=tuple(
                name
                for name, group in both.first.groups.items()
                if bought_before(group.settings) and name not in taken
            ),
            held=_held(target),
        )


def _held(target: Target) -> str:
    bought = target.bought
    if bought is None or not (bought.starts or bought.ends):
        return ""
    begins = (
        f"begins on {bought.starts:%Y-%m-%d %H:%M} UTC: before, no node starts from it"
        if bought.starts
        else ""
    )
    ends = f"ends on {bought.ends:%Y-%m-%d %H:%M} UTC" if bought.ends else ""
    return f"{bought.id} {' and '.join(filter(None, (ends, begins)))}"


def steps(both: Both, parts: tuple[Part, ...], words: Words) -> tuple[Step, ...]:
    """The steps in their order."""
    return (
        *_prepare(both, parts, words),
        *_make(both, words),
        *_switch(both, parts, words.first, words.second),
        *_end(both, words.first),
    )


def _prepare(both: Both, parts: tuple[Part, ...], words: Words) -> Iterator[Step]:
    name, second = both.first.name, words.second
    lock = lock_file_of(both.first.environment.file)
    untouched = f"{name} is as it was: delete {words.file}"
    yield Step(
        what="Write the second environment, and fill in what stands in for values of yours",
        commands=(
            words.write,
            *([f"ultracluster software lock --for {second}"] if lock.is_file() else []),
            f"ultracluster validate {second}",
            f"ultracluster plan {second}",
        ),
        back=untouched,
    )
    if words.buys:
        groups = [f" --group {group}" for group in words.buys] if len(words.buys) > 1 else [""]
        yield Step(
            what="Find capacity, and buy it when everything else is settled: its fee is not given back",
            commands=(
                f"ultracluster capacity search {second}",
                *(f"ultracluster capacity buy {second}{group}" for group in groups),
            ),
            back=f"until it is bought {untouched}; afterwards the fee is spent, whether it is used or not",
        )
    if any(part.what.startswith("software mirror") and part.becomes == "copied" for part in parts):
        yield Step(
            what=f"Fill the mirror of {both.second.region}",
            commands=(f"ultracluster software mirror --for {second}",),
            back=untouched,
        )
    early = [part.what for part in parts if part.early and not part.what.startswith("software mirror")]
    if early:
        yield Step(
            what=f"Copy to {both.second.region}, and go on copying what is new: {'; '.join(early)}",
            why="the second file system lists what is there when it is linked, and nodes start "
            "from the images",
            back=f"delete the copies; {untouched}",
        )
    yield Step(
        what="Ask the account for everything that the deploy needs",
        commands=(f"ultracluster preflight {second}",),
        back=untouched,
    )


def _make(both: Both, words: Words) -> Iterator[Step]:
    second = words.second
    back = (
        f"ultracluster destroy {second}: nothing of {both.first.name} is in it, and its jobs have not noticed"
    )
    yield Step(
        what="Deploy the second environment beside the first",
        why=f"from here both are paid{f'. {words.held}' if words.held else ''}",
        commands=(f"ultracluster deploy {second}",),
        back=back,
    )
    yield Step(
        what="Accept it: nodes are ready, a collective passes over all of them, a job of yours "
        "trains on a copy of its data",
        why="everything up to here can be undone; nothing after it begins before this has passed",
        commands=(f"ultracluster wait {second}", *_acceptance(both, second)),
        back=back,
        gate=True,
    )


def _acceptance(both: Both, second: str) -> Iterator[str]:
    compute = both.second.with_role("compute")
    if not compute:
        return
    group = max(compute.values(), key=lambda one: one.most_nodes)
    if not both.slurm:
        yield f"ultracluster acceptance --job {second} | kubectl apply -f -"
    yield (
        f"ultracluster acceptance LOGS --type {group.settings.instance_type} --nodes "
        f"{max(2, group.settings.count)}"
    )


def _switch(both: Both, parts: tuple[Part, ...], first: str, second: str) -> Iterator[Step]:
    name = both.first.name
    copied = [part.what for part in parts if part.becomes == "copied" and not part.early]
    resume = (
        f"jobs go on in {name} from their last checkpoint: let its partitions be UP again"
        if both.slurm
        else (f"jobs go on in {name} from their last checkpoint: let its queues go on")
    )
    if copied:
        yield Step(
            what=f"Copy while jobs run on: {'; '.join(copied)}",
            why="most of it is there when jobs stop, and the last run is short",
            back=f"{name} is as it was; the copies are in {both.second.name} and go with it",
        )
    stop = (
        "scontrol update PartitionName=<each> State=DRAIN"
        if both.slurm
        else 'kubectl patch clusterqueue <each> --type merge -p \'{"spec": {"stopPolicy": "HoldAndDrain"}}\''
    )
    yield Step(
        what=f"Let no new job begin in {name}, wait for a checkpoint of each, end them, copy for "
        "the last time",
        why="two environments that write the same objects in S3 overwrite each other",
        commands=(stop, *_saved(both)),
        back=resume,
        downtime=True,
    )
    commands = [f"ultracluster connect {second}"] if both.slurm else []
    if both.slurm and both.second.environment.users:
        commands.insert(0, f"ultracluster apply users {second}")
    yield Step(
        what=f"Let people and jobs into {both.second.name}: each job begins from the checkpoint "
        "that it ended with",
        commands=tuple(commands),
        back=f"{resume}. Checkpoints that were written here since come back the same way as they "
        "came: by S3, or "
        "by copying in the other direction",
    )
    yield Step(
        what=f"Keep {first} for some days without jobs: scale its compute groups to 0 where they "
        "are paid by the hour",
        back=f"scale them up again; {resume}",
    )


def _saved(both: Both) -> Iterator[str]:
    if both.slurm and both.first.environment.storage.accounting_database is not None:
        yield f"sacctmgr dump {both.first.environment.cluster_name} file=accounts.cfg"


def _end(both: Both, first: str) -> Iterator[Step]:
    protect = both.first.environment.protect
    name = both.first.name
    guard = (
        "`protect` is on: docs/operations.md says how it is lifted. Key, buckets, file systems "
        f"and database of {name} "
        "stay, and cost, until they are deleted by hand"
        if protect
        else f"without `protect: true` the file systems and the database of {name} are deleted: "
        "set it and deploy "
        "before, or back them up"
    )
    yield Step(
        what=f"Delete {name}, when nobody has missed anything",
        why=guard,
        commands=(f"ultracluster destroy {first}",),
        back="from what was kept: the same file deploys it again, empty; capacity that has gone "
        "is bought again",
        deletes=True,
    )
