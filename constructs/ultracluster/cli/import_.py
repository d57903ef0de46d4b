"""`ultracluster import`: a file of another tool as an environment, and what did not carry over."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.draft_words import schema_line
from ultracluster.cli.environments import JsonOption, ProfileOption, refuse
from ultracluster.cli.file_output import write_new
from ultracluster.cli.json_output import write_json
from ultracluster.cli.terminal import remark, width
from ultracluster.config.plain_text import one_line
from ultracluster.imports.hyperpod import is_parameters
from ultracluster.imports.ledger import ImportRefusedError
from ultracluster.imports.outcome import finished, grouped, sentence
from ultracluster.imports.reading import everything, plain_name, read
from ultracluster.imports.surroundings import Asked

if TYPE_CHECKING:
    from ultracluster.cli.documents.imports import Import
    from ultracluster.imports.outcome import Drafted, Imported

_HEADINGS = {"left out": "Left out", "changed": "Changed", "assumed": "Assumed: it is not said there"}


def import_environment(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="What to import: a file, several where one needs the others, or a folder.",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", help="A running cluster, by its name, instead of files.", show_default=False
        ),
    ] = "",
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="Whose that is: hyperpod, parallelcluster, pcs or eks; all are asked by default.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Environment file to write; standard output by default.",
            metavar="NAME.yaml",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--name", help="Name of the environment; that of the file by default.", show_default=False
        ),
    ] = "",
    region: Annotated[
        str,
        typer.Option(
            "--region",
            help="Region, where the file does not say it; of a cluster that of the profile by default.",
            show_default=False,
        ),
    ] = "",
    zone_id: Annotated[
        str,
        typer.Option(
            "--zone-id", help="Zone of its capacity and file systems, as use2-az1.", show_default=False
        ),
    ] = "",
    profile: ProfileOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an environment of another tool's file or cluster, with a list of what did not carry over.

    Takes a configuration of AWS ParallelCluster 3, HyperPod's create-cluster JSON (with its older
    provisioning_parameters.json, or the folder of its lifecycle scripts; also its instance groups alone),
    template and parameters of the HyperPod console's stack, config.yaml of `hyp init`, a template of
    CloudFormation that makes a HyperPod cluster (with the stack's parameters), and a ClusterConfig of eksctl:
    AWS is asked nothing then.
    Or a running cluster of HyperPod, ParallelCluster, PCS or EKS: its API is asked, nothing in the account is
    changed, and network and file systems are named as they are. What it writes passes `ultracluster
    validate`. The list says of each thing why, and what to do; it is in the head of the file, too. Exit code
    2: something cannot be read or carried over, or the new file is there already; nothing is written then.
    """
    given = files or []
    if to is not None:
        _check_place(to, given, force)
    if not given and not cluster:
        refuse("Nothing to import: name a FILE, or a running cluster with --cluster NAME")
    if not cluster and (kind or profile):
        refuse("--kind and --profile are about a running cluster: pass --cluster NAME with them")
    asked = Asked(name=name or (to.stem if to else ""), region=region, zone_id=zone_id)
    try:
        draft = _running(cluster, asked, kind, profile, given) if cluster else everything(given, asked)
        found = finished(draft, cluster or ", ".join(one.name for one in given), to)
    except ImportRefusedError as error:
        refuse(f"Nothing was written:\n{error}")
    if zone_id:
        _check_zone(zone_id, found)
    text = schema_line(to) + found.text
    if to is not None:
        write_new(to, text, force=force)
    if as_json:
        write_json("import", _document(found, [cluster] if cluster else list(map(str, given)), to, text))
        return
    if to is None:
        sys.stdout.write(text)
        return
    sys.stdout.write(_told(found))
    place = shlex.quote(str(to))
    remark(f"{to} is written. Next: ultracluster validate {place}, ultracluster plan {place}")


def _check_place(to: Path, given: list[Path], force: bool) -> None:
    """Refuse a new file that would be in the way of something."""
    if to.is_dir():
        refuse(f"{to} is a folder: name a file in it, as {to / 'train.yaml'}")
    if any(one.exists() and to.exists() and one.samefile(to) for one in given):
        refuse(f"{to} is what is imported, and would be lost: name another file")
    if to.exists() and not force:
        refuse(f"{to} exists: pass --force to replace it")


def _check_zone(zone_id: str, found: Imported) -> None:
    """Refuse a zone that was asked for and cannot be kept: another one is not what was meant."""
    kept = found.environment.network.zone_id
    if kept != zone_id:
        why = next((row.why for row in found.rows if row.where == "network.zone_id"), "")
        told = sentence(why) if why else f"The cluster is in {kept}."
        refuse(f"Nothing was written:\n--zone-id {zone_id}: {told} instead: --zone-id {kept}, or none")


def _running(cluster: str, asked: Asked, kind: str | None, profile: str | None, files: list[Path]) -> Drafted:
    """A running cluster, asked of its account; a file beside it says what its groups are."""
    if len(files) > 1:
        refuse("--cluster takes at most one FILE beside it: HyperPod's provisioning_parameters.json")
    given = read(files[0]) if files else None
    if given and not is_parameters(given.data):
        refuse(f"{one_line(given.file)} is no provisioning_parameters.json: leave it away, or --cluster")
    named = Asked(name=plain_name(asked.name) if asked.name else "", zone_id=asked.zone_id)
    from ultracluster.cli.import_running import running_cluster  # 0.3 s: the SDK

    region = asked.region or None
    return running_cluster(cluster, named, kind, region, profile, given.data if given else None)


def _told(found: Imported) -> str:
    """The list for people, by what became of each thing."""
    environment = found.environment
    place = f"{environment.orchestrator.kind} in {environment.region}"
    count = len(environment.node_groups)
    lines = [f"{environment.name}: {place}, {count} node groups, from {found.tool}."]
    heading = ""
    for places, row in grouped(found.rows):
        if row.outcome != heading:
            heading = row.outcome
            lines += ["", f"{_HEADINGS[heading]}:"]
        words = f"{sentence(row.why)} {sentence(row.todo)}"
        lines += [
            f"- {', '.join(map(one_line, places))}",
            *wrap(
                words,
                min(width(110), 110),
                initial_indent="  ",
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            ),
        ]
    return "\n".join(lines) + "\n"


def _document(found: Imported, sources: list[str], to: Path | None, text: str) -> Import:
    return {
        "tool": found.tool,
        "sources": sources,
        "environment": found.environment.name,
        "orchestrator": found.environment.orchestrator.kind,
        "region": found.environment.region,
        "file": str(to) if to else None,
        "text": text,
        "rows": list(found.rows),
        "findings": list(found.findings),
    }
