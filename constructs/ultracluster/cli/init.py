"""`ultracluster init`: a first environment file, from questions or flags."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ultracluster.cli.environments import refuse
from ultracluster.cli.questions import Word, ask, ask_one_of, can_ask

if TYPE_CHECKING:
    from ultracluster.config import Finding
    from ultracluster.config.orchestrator import OrchestratorKind
    from ultracluster.operations.draft import Wishes

_SCHEMA = Path(__file__).parents[1] / "config" / "environment.schema.json"


def init(
    instance_type: Annotated[
        str | None,
        typer.Option("--instance-type", help="Type of the compute nodes: p5en.48xlarge.", show_default=False),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, help="Number of compute nodes.", show_default=False)
    ] = None,
    orchestrator: Annotated[
        str | None,
        typer.Option(
            "--orchestrator",
            help="hyperpod-slurm, hyperpod-eks, parallelcluster, pcs or eks; `ultracluster choose` helps.",
            show_default=False,
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", help="AWS Region: us-east-2.", show_default=False)
    ] = None,
    zone_id: Annotated[
        str | None,
        typer.Option(
            "--zone-id", help="Zone: use2-az2; else the first known to offer the type.", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the environment; `train` by default.")
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity",
            help="on-demand, spot, reservation, capacity-block or training-plan; else what the type has.",
            show_default=False,
        ),
    ] = None,
    capacity_id: Annotated[
        str,
        typer.Option(
            "--capacity-id", help="Id of the reservation or block, or ARN of the plan.", show_default=False
        ),
    ] = "",
    lustre_tib: Annotated[
        float | None,
        typer.Option(
            "--lustre-tib",
            min=0,
            help="Lustre in TiB, 0 for none; else sized for checkpoints.",
            show_default=False,
        ),
    ] = None,
    image: Annotated[
        str, typer.Option("--image", help="AMI of the nodes, for pcs.", show_default=False)
    ] = "",
    admin: Annotated[
        str, typer.Option("--admin", help="ARN of the role that may use Kubernetes.", show_default=False)
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; standard output by default.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: take the defaults for what is left out.")
    ] = False,
) -> None:
    """Write a commented environment file, sized for the number of nodes.

    Asks for what no flag says; where nobody can answer, --instance-type, --nodes, --orchestrator and --region
    are needed. What it writes passes `ultracluster validate`. Exit code 2: a flag is missing or wrong, the
    file is there already, or AWS does not offer what is asked for.
    """
    from ultracluster.config import render
    from ultracluster.operations.draft import CAPACITIES, ORCHESTRATORS, draft

    if output is not None and output.exists() and not force:
        refuse(f"{output} is there already; --force replaces it")
    asks = can_ask() and not yes
    given = {
        "--instance-type": instance_type,
        "--nodes": nodes,
        "--orchestrator": orchestrator,
        "--region": region,
    }
    missing = [flag for flag, value in given.items() if value is None]
    if missing and not asks:
        refuse(
            f"missing: {', '.join(missing)}. Nobody can be asked "
            f"({'--yes' if yes else 'standard input is no terminal'}), so these flags are needed"
        )
    for flag, value, known in (
        ("--orchestrator", orchestrator, ORCHESTRATORS),
        ("--capacity", capacity, CAPACITIES),
    ):
        if value is not None and value not in known:
            refuse(f"{flag} {value}: write one of {', '.join(known)}")
    wishes = _wishes(
        _Answers(asks),
        {
            **{flag.removeprefix("--").replace("-", "_"): value for flag, value in given.items()},
            "zone_id": zone_id, "name": name, "capacity": capacity, "lustre_tib": lustre_tib,
        },
        {"capacity_id": capacity_id, "image": image, "admin": admin},
    )  # fmt: skip
    text = _schema_line(output) + draft(wishes)
    findings = _findings(text)
    wrong = [finding for finding in findings if finding.blocks]
    if wrong:
        refuse("\n".join(["no file is written, for it could not be deployed:", *map(_line, wrong)]))
    if output is None:
        sys.stdout.write(text)
    else:
        _write(text, output, force)
        typer.echo(f"{output} is written", err=True)
    if findings:
        typer.echo(render(findings), err=True)


class _Answers:
    """What was given by flags, asked for, or left to the defaults."""

    def __init__(self, asks: bool) -> None:
        self.asks = asks

    def of(self, given: Any, question: str, default: Any, kind: Callable[[str], Any] = str) -> Any:
        """What was given, else the answer, else the default."""
        if given is not None or not self.asks:
            return default if given is None else given
        return ask(question, default, kind=kind)

    def one_of(self, given: Any, question: str, choices: tuple[Word, ...], default: Word) -> Word:
        """The same, of some choices; of any, where none is known."""
        if given is not None or not self.asks or not choices:
            return self.of(given, question, default)
        return ask_one_of(question, choices, default)


def _wishes(answers: _Answers, given: dict[str, Any], rest: dict[str, str]) -> Wishes:
    from ultracluster.catalog import region as known_region
    from ultracluster.operations.draft import ORCHESTRATORS, Wishes, capacity_for, regions_for, zones_for
    from ultracluster.software import newest_release

    kind = answers.of(given["instance_type"], "Instance type of the compute nodes", "p5en.48xlarge", _type)
    nodes = answers.of(given["nodes"], "Compute nodes", 8, _count)
    orchestrator: OrchestratorKind = answers.one_of(
        given["orchestrator"], "Orchestrator, which `ultracluster choose` helps with", ORCHESTRATORS,
        "hyperpod-slurm",
    )  # fmt: skip
    offered = sorted(regions_for(kind), key=lambda one: one != "us-east-2")
    region = answers.of(given["region"], f"Region with {kind}", offered[0], _region)
    zones = zones_for(region, kind)
    if not zones and given["zone_id"] is None and not answers.asks and known_region(region):
        refuse(f"--zone-id is needed: no zone of {region} is known")
    first = zones[0] if zones else None if answers.asks else f"{region}-unknown"
    zone = answers.of(given["zone_id"], f"Zone id ({', '.join(zones) or 'none is known'})", first)
    sold = _capacities(orchestrator, kind)
    usual = capacity_for(orchestrator, kind)
    capacity = answers.one_of(
        given["capacity"], "Capacity", sold, usual if usual in sold or not sold else sold[0]
    )
    tib = given["lustre_tib"]
    if tib is None and answers.asks:
        tib = ask("Lustre in TiB, 0 for none", "sized for checkpoints", kind=_tib)
    name = answers.of(given["name"], "Name of the environment", "train")
    release = newest_release("eks-al2023" if orchestrator == "eks" else orchestrator).release
    return Wishes(
        name=name, region=region, zone_id=zone, orchestrator=orchestrator, instance_type=kind, nodes=nodes,
        capacity=capacity, lustre_tib=tib, release=release, **rest,
    )  # fmt: skip


def _type(text: str) -> str:
    from ultracluster.catalog import instance_type, nearest_instance_types

    if instance_type(text) is None:
        near = ", ".join(nearest_instance_types(text)) or "p5en.48xlarge"
        raise ValueError(f"no type {text!r} is known; like it: {near}")
    return text


def _region(text: str) -> str:
    from ultracluster.catalog import nearest_regions, region

    if region(text) is None:
        near = ", ".join(nearest_regions(text)) or "us-east-2"
        raise ValueError(f"there is no Region {text!r}; like it: {near}")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError("a number of nodes, 1 or more")
    return int(text)


def _tib(text: str) -> float | None:
    if text.startswith("sized"):
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 100_000:
        raise ValueError("a number of TiB, or 0 for none")
    return number


def _capacities(orchestrator: OrchestratorKind, kind: str) -> tuple[str, ...]:
    """The kinds of capacity that are not refused for the type."""
    from ultracluster.catalog import instance_type
    from ultracluster.compute.capacity import decide
    from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
    from ultracluster.operations.draft import RESERVATION

    known = instance_type(kind)
    if known is None:
        return ()
    samples = (
        OnDemand(),
        Spot(kind="spot"),
        Reservation(kind="reservation", id=RESERVATION),
        CapacityBlock(kind="capacity-block", id=RESERVATION),
        TrainingPlan(kind="training-plan", arn="arn:aws:sagemaker:us-east-2:111122223333:training-plan/any"),
    )
    decided = (
        (
            one.kind,
            decide(one, orchestrator=orchestrator, placement="none", instance_type=known),
        )
        for one in samples
    )
    return tuple(name for name, decision in decided if decision.legal)


def _findings(text: str) -> list[Finding]:
    """What the rules say of the file, which has no place yet."""
    from ruamel.yaml import YAML

    from ultracluster.config import InvalidEnvironmentError, parse
    from ultracluster.config.source import Source
    from ultracluster.rules import check

    data: Any = cast("Any", YAML(typ="safe")).load(text)
    try:
        return check(parse(Source("the new file", data=data)))
    except InvalidEnvironmentError as error:
        return list(error.findings)


def _line(finding: Finding) -> str:
    instead = f"; instead: {finding.instead}" if finding.instead else ""
    return f"  {finding.code} {finding.dotted}: {finding.message}{instead}"


def _schema_line(output: Path | None) -> str:
    """Where editors find the schema; nothing where the file does not stand beside the project."""
    if output is None:
        return ""
    root = Path.cwd()
    if not _SCHEMA.is_relative_to(root) or not output.absolute().is_relative_to(root):
        return ""
    place = os.path.relpath(_SCHEMA, output.absolute().parent)
    return f"# yaml-language-server: $schema={Path(place).as_posix()}\n"


def _write(text: str, output: Path, force: bool) -> None:
    """Never over a file that came up while questions were asked."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        refuse(f"{output} is there already; --force replaces it")
    except OSError as error:
        refuse(f"{output} cannot be written: {error.strerror}")
