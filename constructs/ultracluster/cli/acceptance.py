"""`ultracluster acceptance`: the job that measures a fabric, and the verdict on its logs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from ultracluster.acceptance.curves import Gate
from ultracluster.acceptance.curves import gates as all_gates
from ultracluster.acceptance.job import manifest
from ultracluster.acceptance.judge import judge as judge_logs
from ultracluster.acceptance.log_reader import read
from ultracluster.acceptance.nccom import judge_nccom, read_nccom
from ultracluster.acceptance.node_tools import slurm_script
from ultracluster.acceptance.report import Report, size_text
from ultracluster.catalog import InstanceType, nearest_instance_types
from ultracluster.catalog import instance_type as known_type
from ultracluster.cli.job_options import typed_options
from ultracluster.cli.json_output import JsonOption, write_json
from ultracluster.cli.progress import working
from ultracluster.cli.report import refuse, text_table
from ultracluster.cli.terminal import remark

_OF_KUBERNETES = ("nodes", "name", "namespace", "hyperpod", "mnnvl", "efa_devices")
_OF_JOBS = ("image", *_OF_KUBERNETES[1:], "collective")
_OF_LOGS = ("plugin", "as_json")
EXIT_CODES = {"pass": 0, "fail": 1, "not judged": 3}


def acceptance(
    context: typer.Context,
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Logs of nccl-tests and NCCL, or of nccom-test, or folders of them.", show_default=False
        ),
    ] = None,
    instance_type: Annotated[
        str, typer.Option("--type", help="EC2 instance type of the nodes.", show_default=False)
    ] = "",
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many nodes the run must have; workers of --job, one per instance: 4 by default.",
            show_default=False,
        ),
    ] = None,
    efa_interfaces: Annotated[
        int | None,
        typer.Option(min=1, help="EFA interfaces per node; else as the catalogue says.", show_default=False),
    ] = None,
    plugin: Annotated[
        str | None, typer.Option(help="Release of aws-ofi-nccl that should be there.", show_default=False)
    ] = None,
    job: Annotated[
        bool,
        typer.Option("--job", help="Print the job that makes logs: for Slurm, with --image for Kubernetes."),
    ] = False,
    image: Annotated[
        str,
        typer.Option(help="Image with nccl-tests or nccom-test, MPI and EFA's plugin.", show_default=False),
    ] = "",
    name: Annotated[str, typer.Option(help="Job name on Kubernetes.")] = "nccl-acceptance",
    namespace: Annotated[str, typer.Option(help="Namespace of the job on Kubernetes.")] = "default",
    hyperpod: Annotated[bool, typer.Option("--hyperpod", help="The job's nodes are HyperPod's.")] = False,
    mnnvl: Annotated[bool, typer.Option(help="GB200 on Kubernetes: NVLink joins the nodes.")] = True,
    efa_devices: Annotated[
        Literal["device-plugin", "dra"], typer.Option(help="As orchestrator.efa_devices of the cluster.")
    ] = "device-plugin",
    collective: Annotated[
        str, typer.Option(help="Of the job: all_reduce, all_gather, reduce_scatter or all_to_all.")
    ] = "all_reduce",
    gates: Annotated[
        bool, typer.Option("--gates", help="List the published figures that runs are judged by.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Judge logs of nccl-tests or nccom-test, or print the job that makes them.

    Published figures are all of all-reduce; other collectives are measured, and reported against the line
    rate of the type. Exit code 0 = pass, 1 = fail, 3 = not judged, 2 = a file cannot be read, or there can be
    no job.
    """
    if bool(logs) + job + gates != 1:
        refuse("pass logs to judge, --job for the job that makes them, or --gates for the figures")
    others = () if gates else _OF_LOGS if job else _OF_JOBS
    others = others if image or not job else (*others, *_OF_KUBERNETES)
    if given := [option for one, option in typed_options(context).items() if one in others]:
        refuse(f"{', '.join(given)}: not for {'this job' if job else 'a verdict'}")
    if gates:
        _print_gates()
    elif not instance_type:
        refuse("the option --type is missing: the instance type of the nodes")
    elif image:
        text = partial(
            manifest,
            instance_type,
            nodes or 4,
            image=image,
            name=name,
            namespace=namespace,
            hyperpod=hyperpod,
            efa_interfaces=efa_interfaces,
            mnnvl=mnnvl,
            efa_claims=efa_devices == "dra",
            collective=collective,
        )
        _print_job(text)
    elif job:
        kind = _known(instance_type.removeprefix("ml."))
        _print_job(partial(slurm_script, kind, efa_interfaces=efa_interfaces, collective=collective))
    else:
        _judge(logs or [], instance_type, nodes, efa_interfaces, plugin, as_json=as_json)


def _judge(
    logs: list[Path],
    instance_type: str,
    nodes: int | None,
    efa_interfaces: int | None,
    plugin: str | None,
    *,
    as_json: bool,
) -> None:
    try:
        with working("reading logs"):
            report = _judged(_files(logs), instance_type, nodes, efa_interfaces, plugin)
    except OSError as error:
        refuse(f"cannot read {error.filename}: {error.strerror}")
    if similar := _similar(instance_type):
        remark(
            f"the catalogue does not know {instance_type}; similar: {similar}: its figures are only measured"
        )
    if as_json:
        write_json("acceptance", report)
    else:
        typer.echo(report.as_text())
    raise typer.Exit(EXIT_CODES[report.verdict])


def _similar(instance_type: str) -> str:
    """Known types like one that the catalogue does not know; empty where it does, or there are none."""
    name = instance_type.removeprefix("ml.")
    return "" if known_type(name) else ", ".join(nearest_instance_types(name))


def _known(name: str) -> InstanceType:
    kind = known_type(name)
    if kind is None:
        refuse(f"the catalogue does not know {name}; similar: {_similar(name) or 'none'}")
    return kind


def _print_job(text: Callable[[], str]) -> None:
    try:
        typer.echo(text(), nl=False)
    except ValueError as error:
        refuse(str(error))


def _print_gates() -> None:
    rows = [
        (
            gate.type,
            gate.scope,
            f"{gate.busbw:g}",
            size_text(gate.min_size),
            f"{gate.published.busbw:g}",
            _source(gate),
        )
        for gate in all_gates()
    ]
    heads = ("type", "over", "least GB/s", "from size", "published GB/s", "source")
    typer.echo(text_table(heads, rows, numbers=heads[2:5]))


def _source(gate: Gate) -> str:
    said = gate.published
    kind = "a threshold" if said.kind == "threshold" else "measured"
    return f"{kind}{' (provisional)' if gate.provisional else ''}: {said.source}, {said.date}"


def _judged(
    files: list[Path], instance_type: str, nodes: int | None, efa_interfaces: int | None, plugin: str | None
) -> Report:
    """By the tool that measures the type: nccom-test on Trainium, nccl-tests on GPUs."""
    known = known_type(instance_type.removeprefix("ml."))
    if known and known.accelerator and known.accelerator.manufacturer == "AWS":
        return judge_nccom(read_nccom(files), instance_type=instance_type, nodes=nodes)
    return judge_logs(
        read(files),
        instance_type=instance_type,
        nodes=nodes,
        efa_interfaces=efa_interfaces,
        plugin_version=plugin,
    )


def _files(paths: list[Path]) -> list[Path]:
    """The files, and those in the folders, in a fixed order."""
    files: list[Path] = []
    for path in paths:
        files += sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
    return files
