"""`ultracluster choose`: which orchestrator suits, from questions or flags."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ultracluster.catalog import instance_type
from ultracluster.catalog.accelerators import read_accelerators
from ultracluster.catalog.wishes import wishes
from ultracluster.cli.choose_types import as_document, as_text
from ultracluster.cli.environments import JsonOption, refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.paper import Paper
from ultracluster.cli.questions import ask, ask_one_of, ask_whether, can_ask
from ultracluster.cli.terminal import coloured, width
from ultracluster.plan.choice import CAPACITIES, Wanted, comparison, questions, ranking
from ultracluster.plan.draft_size import read_type, ultraserver_called
from ultracluster.plan.training_model import parameters
from ultracluster.plan.type_choice import type_rows

if TYPE_CHECKING:
    from ultracluster.cli.documents.figures import Choice, RankRow, TypeChoice
    from ultracluster.plan.choice import Rank


def choose(
    slurm: Annotated[bool, typer.Option("--slurm", help="People submit Slurm scripts.")] = False,
    kubernetes: Annotated[bool, typer.Option("--kubernetes", help="Jobs are pods.")] = False,
    recovery: Annotated[
        bool, typer.Option("--recovery", help="Broken nodes are replaced and jobs go on without a person.")
    ] = False,
    managed: Annotated[bool, typer.Option("--managed", help="AWS runs the control plane.")] = False,
    elastic: Annotated[
        bool, typer.Option("--elastic", help="Nodes come for a job and end after it.")
    ] = False,
    own_nodes: Annotated[
        bool, typer.Option("--own-nodes", help="Instances, placement and launch templates of your account.")
    ] = False,
    cheap: Annotated[bool, typer.Option("--cheap", help="Nodes cost no more than EC2 itself.")] = False,
    wish: Annotated[
        list[str] | None,
        typer.Option(
            "--wish",
            help="A further wish, again for each; `--wish list` names them.",
            show_default=False,
        ),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity",
            help="on-demand, spot, reservation, capacity-block or training-plan.",
            show_default=False,
        ),
    ] = None,
    instance_type: Annotated[
        str | None,
        typer.Option(
            "--instance-type",
            help="Type of the compute nodes, UltraServers too, or its accelerators: h100, 64xH100.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Compare instance types for training a model of this many parameters: 8B, 70B, 1.8T.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Rank the orchestrators for what you need, with reasons and the whole comparison.

    --model compares instance types by memory, operations, price and how they are had; with --capacity only
    those that are had by it. Asks questions when there are no flags. Exit code 2: a flag is wrong, or there
    is none and no terminal.
    """
    if wish and "list" in wish:
        sys.stdout.write(_wish_list())
        return
    flags = {
        "slurm": slurm, "kubernetes": kubernetes, "recovery": recovery, "managed": managed,
        "elastic": elastic, "own_nodes": own_nodes, "cheap": cheap,
    }  # fmt: skip
    features = (*(name for name, asked in flags.items() if asked), *_wishes(wish or []))
    if capacity is not None and capacity not in CAPACITIES:
        refuse(f"--capacity {capacity}: write one of {', '.join(CAPACITIES)}")
    size = _parameters(model)
    if size and not features and instance_type is None and not as_json:
        sys.stdout.write(_types_text(size, capacity or ""))
        return
    if not features and capacity is None and instance_type is None and size is None:
        if not can_ask():
            refuse(
                "Cannot prompt: stdin is not a terminal. Pass what you need: "
                + ", ".join(f"--{name.replace('_', '-')}" for name in flags)
                + ", --wish NAME, --capacity KIND or --instance-type TYPE"
            )
        wanted = _ask()
    else:
        wanted = _wanted(features, capacity or "", instance_type or "")
    ranks = ranking(wanted)
    if as_json:
        document = _document(wanted, ranks)
        if size:
            document["types"] = _types_document(size, capacity or "")
        write_json("choose", document)
    else:
        if size:
            sys.stdout.write(_types_text(size, capacity or ""))
            sys.stdout.write("\n")
        sys.stdout.write(_text(ranks, wanted, instance_type or ""))


def _parameters(model: str | None) -> float | None:
    try:
        return None if model is None else parameters(model)
    except ValueError as error:
        refuse(f"--model {model}: {error}")


def _types_text(size: float, capacity: str) -> str:
    return as_text(size, type_rows(size, capacity), width(120), colour=coloured())


def _types_document(size: float, capacity: str) -> TypeChoice:
    return as_document(size, type_rows(size, capacity))


def _ask() -> Wanted:
    features: list[str] = []
    for name, question in questions().items():
        if name == "kubernetes" and "slurm" in features:
            continue  # none has both
        if ask_whether(question):
            features.append(name)
    kind = ask("Instance type or accelerators of the compute nodes", "not decided", kind=_type)
    capacity = ask_one_of("Capacity that you have or will buy", ("any", *CAPACITIES), "any")
    features += ask("Further wishes, with spaces between", "none", kind=_asked_wishes)
    return _wanted(tuple(features), "" if capacity == "any" else capacity, kind)


def _wishes(names: list[str]) -> tuple[str, ...]:
    """The wishes of these names.

    Exits with code 2 where there is none of a name.
    """
    try:
        return _known_wishes(names)
    except ValueError as error:
        refuse(f"--wish {error}")


def _asked_wishes(text: str) -> tuple[str, ...]:
    return () if text == "none" else _known_wishes(text.replace(",", " ").split())


def _known_wishes(names: list[str]) -> tuple[str, ...]:
    for name in names:
        if name not in wishes():
            near = difflib.get_close_matches(name, wishes(), n=1, cutoff=0.4)
            raise ValueError(f"{name}: " + (f"write {near[0]}" if near else f"one of {', '.join(wishes())}"))
    return tuple(dict.fromkeys(names))


def _wish_list() -> str:
    width = max(map(len, wishes()), default=0)
    return "".join(f"{name:{width}}  {wish.question}\n" for name, wish in wishes().items())


def _type(text: str) -> str:
    return "" if text == "not decided" else read_type(text).instance_type


def _wanted(features: tuple[str, ...], capacity: str, kind: str) -> Wanted:
    try:
        known = instance_type(read_type(kind).instance_type) if kind else None
    except ValueError as error:
        refuse(f"--instance-type {kind}: {error}")
    return Wanted(features=features, capacity=capacity, instance_type=known)


def _document(wanted: Wanted, ranks: list[Rank]) -> Choice:
    return {
        "wanted": {
            "features": list(wanted.features),
            "capacity": wanted.capacity,
            "instance_type": wanted.instance_type.name if wanted.instance_type else "",
        },
        "ranking": [_ranked(place, rank) for place, rank in enumerate(ranks, start=1)],
        "comparison": {title: dict(row) for title, row in comparison().items()},
    }


def _ranked(place: int, rank: Rank) -> RankRow:
    return {
        "place": place,
        "orchestrator": rank.orchestrator,
        "title": rank.title,
        "possible": rank.possible,
        "lacks": rank.lacks,
        "reasons": list(rank.reasons),
    }


_MARKS = {"yes": "[green]+[/green]", "partly": "[yellow]~[/yellow]", "no": "[red]-[/red]"}


def _text(ranks: list[Rank], wanted: Wanted, asked: str) -> str:
    paper = Paper(width(110), colour=coloured())
    console = paper.console
    for place, rank in enumerate(ranks, start=1):
        verdict = "" if rank.possible else " [red](lacks what you ask for)[/red]"
        console.print(f"[bold]{place}. {rank.orchestrator}[/bold]: {rank.title}{verdict}")
        reasons = Table(show_header=False, box=None, pad_edge=False)
        for _ in range(3):
            reasons.add_column(overflow="fold")
        for reason in rank.reasons:
            reasons.add_row(f"   {_MARKS[reason.answer]}", reason.title, escape(reason.words))
        console.print(reasons)
    console.print()
    table = Table(box=None, pad_edge=False)
    rows = comparison()
    table.add_column("", overflow="fold")
    for kind in next(iter(rows.values())):
        table.add_column(kind, overflow="fold")
    for title, row in rows.items():
        table.add_row(title, *(reason.answer for reason in row.values()))
    console.print(table)
    best = ranks[0]
    following = f"Next: ultracluster init --orchestrator {best.orchestrator}{_flags(wanted, asked)}"
    end = following if best.possible else "No orchestrator has all: drop one requirement."
    console.print(f"\n{end}", soft_wrap=True)
    for line in _examples(wanted):
        console.print(escape(line), soft_wrap=True)
    return paper.text()


def _examples(wanted: Wanted) -> Iterator[str]:
    """For each wish an environment that has it, and the page that says how it is used."""
    for name in wanted.features:
        if wish := wishes().get(name):
            yield f"{name}: an environment with it is {wish.overlay}; {wish.page} says how"


def _flags(wanted: Wanted, asked: str) -> str:
    """What is known already, as flags of `init`."""
    kind, flags = wanted.instance_type, [""]
    if server := ultraserver_called(asked):
        flags += ["--instance-type", server.name]
    elif kind and kind.accelerator and (number := read_accelerators(asked)):
        flags += ["--accelerators", shlex.quote(f"{number.count}x{kind.accelerator.name}")]
    elif kind:
        flags += ["--instance-type", kind.name]
    return " ".join([*flags, *(["--capacity", wanted.capacity] if wanted.capacity else [])])
