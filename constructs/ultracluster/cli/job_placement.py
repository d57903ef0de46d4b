"""`ultracluster job why`: how many switches a job spans, and how few it could."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.account.aws import AccountError
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.node_actions import fleet_of
from ultracluster.cli.progress import working
from ultracluster.cli.report import text_table
from ultracluster.config.file_text import text_of
from ultracluster.config.plain_text import one_line
from ultracluster.jobs.placement import seats as sources
from ultracluster.jobs.placement.seats import ask_script, ask_slurm, read_nodes
from ultracluster.jobs.placement.spread import node_names, placement
from ultracluster.model import resolve
from ultracluster.model.slurm_topology import slurm_topology

if TYPE_CHECKING:
    from ultracluster.account.nodes.fleet import Fleet
    from ultracluster.config import Environment
    from ultracluster.jobs.placement.seats import Seat
    from ultracluster.jobs.placement.spread import Placement
    from ultracluster.model.slurm_topology import SlurmTopology


def why(
    environment: EnvironmentArgument,
    job: Annotated[
        str | None, typer.Argument(help="Number of a Slurm job that has nodes.", show_default=False)
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="These nodes instead: `gpu-st-p5-[1-4]`, host names, addresses, instance ids.",
            show_default=False,
        ),
    ] = None,
    topology: Annotated[
        Path | None,
        typer.Option(
            help="Places from this file instead: HyperPod's resource_config.json, or the JSON of `aws ec2 "
            "describe-instance-topology`.",
            show_default=False,
        ),
    ] = None,
    here: Annotated[
        bool, typer.Option("--here", help="Ask Slurm on this machine, a node of the cluster.")
    ] = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many switches a job spans on each layer of the network, and how few it could. Changes nothing.

    Exit code 0 = as few as possible, 1 = more than it must, 2 = AWS or Slurm cannot be asked, 3 = nobody says
    where all of its nodes are.
    """
    if (job is None) == (nodes is None):
        refuse("pass the number of a job, or --nodes")
    config = load_environment(environment)
    if job is not None and config.kubernetes:
        refuse("a job on Kubernetes has no number: pass the nodes of its pods with --nodes")
    fleet = _Once(config, profile)
    try:
        wanted = (
            _of_job(job, fleet, here=here)
            if job is not None
            else {name: name for name in node_names(nodes or "")}
        )
        there = sources.seats_of_file(_text(topology)) if topology else sources.seats(fleet.get())
        found, missing = sources.seated(wanted, there)
        if missing and job is None and not (topology and not here) and not config.kubernetes:
            # Slurm may call nodes as nobody else does
            addresses = _asked(sources.ask_script(nodes=missing), fleet, here=here)
            found, missing = sources.seated({name: addresses.get(name, name) for name in wanted}, there)
    except (AccountError, ValueError) as error:
        refuse(f"{topology}: {error}" if topology and isinstance(error, ValueError) else str(error))
    if missing:
        refuse(f"not among the nodes of {topology or config.name}: {', '.join(missing[:10])}")
    room = {seat.name: seat.place for seat in sources.alike(found, there) if seat.place}
    judged = placement([seat.name for seat in found], room)
    known = _slurm_topology(config, found)
    if as_json:
        write_json("placement", _document(job, found, judged, known))
    else:
        for line in _lines(job, found, judged, known):
            typer.echo(one_line(line) if "\n" not in line else line)
    raise typer.Exit(3 if judged.unknown else 0 if judged.good else 1)


class _Once:
    """The nodes of an environment, read when somebody needs them."""

    def __init__(self, config: Environment, profile: str | None) -> None:
        self._config, self._profile = config, profile
        self._fleet: Fleet | None = None

    def get(self) -> Fleet:
        self._fleet = self._fleet or fleet_of(self._config, self._profile)
        return self._fleet


def _of_job(job: str, fleet: _Once, *, here: bool) -> dict[str, str]:
    found = _asked(ask_script(job=job), fleet, here=here)
    if not found:
        raise ValueError(f"Slurm tells no nodes of job {job}")
    return found


def _asked(script: str, fleet: _Once, *, here: bool) -> dict[str, str]:
    if not here:
        with working("asking Slurm on the controller"):
            return ask_slurm(fleet.get(), script)
    try:
        with working("asking Slurm here"):
            done = subprocess.run(  # noqa: S603 - a script of ours
                ["bash", "-c", script],  # noqa: S607
                capture_output=True,
                text=True,
                timeout=90,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"Slurm cannot be asked here: {error}") from None
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())[-200:]
        raise ValueError(f"Slurm does not answer here: {said or f'status {done.returncode}'}")
    return read_nodes(done.stdout)


def _text(path: Path) -> str:
    try:
        return text_of(path)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it cannot be read: {error}") from None


def _slurm_topology(config: Environment, found: Sequence[Seat]) -> SlurmTopology | None:
    if config.kubernetes:
        return None
    cluster = resolve(config)
    groups = cluster.with_role("compute")
    group = next((groups[seat.group] for seat in found if seat.group in groups), None)
    group = group or next(iter(groups.values()), None)
    return slurm_topology(cluster, group) if group else None


def _document(
    job: str | None, found: Sequence[Seat], judged: Placement, known: SlurmTopology | None
) -> Mapping[str, object]:
    return {
        "job": job,
        "nodes": found,
        "unknown": judged.unknown,
        "layers": judged.layers,
        "good": judged.good,
        "topology": {"kind": known.kind, "writer": known.writer, "why": known.why} if known else None,
    }


def _lines(
    job: str | None, found: Sequence[Seat], judged: Placement, known: SlurmTopology | None
) -> list[str]:
    what = f"Job {job}" if job is not None else "These nodes"
    lines = [f"{what}: {len(found)} node{'s' * (len(found) != 1)}"]
    rows = [
        (
            layer.name,
            str(len(layer.spans)),
            str(len(layer.best)),
            ", ".join(f"{switch}: {count}" for switch, count in layer.spans.items()),
            " + ".join(map(str, layer.best)),
        )
        for layer in judged.layers
    ]
    if rows:
        lines.append(
            text_table(
                ("layer", "spans", "least", "nodes by switch", "nodes by switch at best"),
                rows,
                numbers=("spans", "least"),
            )
        )
    worse = [layer for layer in judged.layers if layer.excess > 0]
    if judged.unknown:
        lines.append(f"Nobody says where these are: {', '.join(judged.unknown[:10])}")
    elif worse:
        layer = worse[-1]
        spans, least = len(layer.spans), len(layer.best)
        lines.append(f"On {layer.name} it spans {spans} where {least} would do, were those nodes free.")
    else:
        lines.append("As few switches as it can have.")
    if known and known.kind in ("flat", "unknown"):
        lines.append(f"Slurm places jobs without regard to the network here: {known.why}.")
    return lines
