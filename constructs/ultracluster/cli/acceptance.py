"""`ultracluster acceptance`: the job that measures a fabric, and the verdict on its logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ultracluster.cli.json_output import JsonOption, write_json
from ultracluster.cli.progress import working
from ultracluster.cli.report import refuse, text_table
from ultracluster.cli.terminal import remark

if TYPE_CHECKING:
    from ultracluster.acceptance import Report
    from ultracluster.acceptance.curves import Gate

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Measure a fabric with nccl-tests or nccom-test, and judge it.",
)

EXIT_CODES = {"pass": 0, "fail": 1, "not judged": 3}


@app.command()
def judge(
    logs: Annotated[
        list[Path],
        typer.Argument(
            help="Logs of nccl-tests and NCCL, or of nccom-test, or folders of them.", show_default=False
        ),
    ],
    instance_type: Annotated[
        str, typer.Option("--type", help="EC2 instance type of the nodes.", show_default=False)
    ],
    nodes: Annotated[
        int | None, typer.Option(min=1, help="How many nodes the run must have.", show_default=False)
    ] = None,
    efa_interfaces: Annotated[
        int | None,
        typer.Option(min=1, help="EFA interfaces per node; else as the catalogue says.", show_default=False),
    ] = None,
    plugin: Annotated[
        str | None, typer.Option(help="Release of aws-ofi-nccl that should be there.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge logs. Exit code 0 = pass, 1 = fail, 3 = not judged, 2 = a file cannot be read."""
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
    from ultracluster.catalog import instance_type as known_type
    from ultracluster.catalog import nearest_instance_types

    name = instance_type.removeprefix("ml.")
    return "" if known_type(name) else ", ".join(nearest_instance_types(name))


@app.command()
def script(
    instance_type: Annotated[str, typer.Option("--type", help="EC2 instance type.", show_default=False)],
    efa_interfaces: Annotated[
        int | None, typer.Option(min=1, help="Per node, where AWS names no number.", show_default=False)
    ] = None,
    collective: Annotated[
        str, typer.Option(help="all_reduce, all_gather, reduce_scatter or all_to_all.")
    ] = "all_reduce",
) -> None:
    """Print the acceptance job for Slurm, with what it runs on nodes. Exit code 2 if there can be none."""
    from ultracluster.acceptance.node_tools import slurm_script
    from ultracluster.catalog import instance_type as known_type
    from ultracluster.catalog import nearest_instance_types

    name = instance_type.removeprefix("ml.")
    kind = known_type(name)
    if kind is None:
        near = ", ".join(nearest_instance_types(name)) or "none"
        refuse(f"the catalogue does not know {name}; similar: {near}")
    try:
        text = slurm_script(kind, efa_interfaces=efa_interfaces, collective=collective)
    except ValueError as error:
        refuse(str(error))
    typer.echo(text, nl=False)


@app.command()
def manifest(
    instance_type: Annotated[str, typer.Option("--type", help="EC2 instance type.", show_default=False)],
    image: Annotated[
        str,
        typer.Option(help="Image with nccl-tests or nccom-test, MPI and EFA's plugin.", show_default=False),
    ],
    nodes: Annotated[int, typer.Option(help="Workers, one per instance; four or more to be judged.")] = 4,
    name: Annotated[str, typer.Option(help="Of the job.")] = "nccl-acceptance",
    namespace: Annotated[str, typer.Option(help="Where it runs.")] = "default",
    hyperpod: Annotated[bool, typer.Option("--hyperpod", help="The nodes are HyperPod's.")] = False,
    efa_interfaces: Annotated[
        int | None, typer.Option(min=1, help="Per node, where AWS names no number.", show_default=False)
    ] = None,
    mnnvl: Annotated[bool, typer.Option(help="GB200: NVLink joins the nodes.")] = True,
    efa_devices: Annotated[
        Literal["device-plugin", "dra"], typer.Option(help="As orchestrator.efa_devices of the cluster.")
    ] = "device-plugin",
    collective: Annotated[
        str, typer.Option(help="all_reduce, all_gather, reduce_scatter or all_to_all.")
    ] = "all_reduce",
) -> None:
    """Print the acceptance job for Kubernetes (an MPIJob). Exit code 2 if there can be none."""
    from ultracluster.acceptance import manifest as make

    try:
        text = make(
            instance_type,
            nodes,
            image=image,
            name=name,
            namespace=namespace,
            hyperpod=hyperpod,
            efa_interfaces=efa_interfaces,
            mnnvl=mnnvl,
            efa_claims=efa_devices == "dra",
            collective=collective,
        )
    except ValueError as error:
        refuse(str(error))
    typer.echo(text, nl=False)


@app.command()
def gates() -> None:
    """List the published figures that runs are judged by, with their sources.

    They are all of all-reduce; other collectives (all_gather, reduce_scatter, all_to_all) are measured, and
    reported against the line rate of the type.
    """
    from ultracluster.acceptance import gates as all_gates
    from ultracluster.acceptance.report import size_text

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
    from ultracluster.acceptance import judge as judge_logs
    from ultracluster.acceptance import read
    from ultracluster.acceptance.nccom import judge_nccom, read_nccom
    from ultracluster.catalog import instance_type as known_type

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
