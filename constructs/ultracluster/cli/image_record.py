"""`ultracluster software record`: a node's report of its image, as a record of the catalogue."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import remark
from ultracluster.config.file_text import bytes_of
from ultracluster.software import image_record

HOW = """\
Let a node that runs the image print what it brings, then make the record of it:
  ultracluster software record --script >record.sh
  ssh NODE 'bash -s' <record.sh >node.json         # or run it in a session of Systems Manager
  ultracluster software record node.json --id ... --family ... --release ..."""


def record(
    answer: Annotated[
        Path | None, typer.Argument(help="What the script printed; - is standard input.", show_default=False)
    ] = None,
    print_script: Annotated[
        bool, typer.Option("--script", help="Print the script that a node runs, and nothing else.")
    ] = False,
    image_id: Annotated[
        str, typer.Option("--id", help="Id of the record; a known one is brought up to date.")
    ] = "",
    family: Annotated[str, typer.Option("--family", help="Family, e.g. eks-al2023-nvidia.")] = "",
    release: Annotated[str, typer.Option("--release", help="Its number, e.g. 1.34.12-20261012.")] = "",
    day: Annotated[str, typer.Option("--date", help="Its date, where the release does not end in it.")] = "",
    kubernetes: Annotated[str, typer.Option("--kubernetes", help="EKS: Kubernetes release, e.g. 1.34.")] = "",
    name: Annotated[str, typer.Option("--name", help="Name of the AMI, or the parameter with its id.")] = "",
) -> None:
    """Print a record of the image catalogue from what one node reports.

    Values of a node are confirmed, of the day it was asked: false is not there, null could not be asked, and
    then what the catalogue knows of the image stays. Ask a fresh instance of the image, not a node on which
    Ultracluster has installed something.
    """
    if print_script:
        sys.stdout.write(image_record.script())
        return
    if answer is None:
        refuse(HOW)
    for option, value in (("--id", image_id), ("--family", family), ("--release", release)):
        if not value:
            refuse(f"{option} is missing: a record says which image it is of")
    try:
        text = sys.stdin.read() if str(answer) == "-" else bytes_of(answer).decode("utf-8", "replace")
    except OSError as error:
        refuse(f"cannot read {answer}: {error.strerror}")
    try:
        said = image_record.read_answer(text)
        made = image_record.record(
            said,
            image_id=image_id,
            family=family,
            release=release,
            day=day,
            kubernetes=kubernetes,
            name=name,
        )
    except image_record.RecordError as error:
        refuse(f"{answer}: {error}")
    sys.stdout.write(image_record.text(made))
    unknown = [field for field, cell in made["values"].items() if cell is None]
    known = len(made["values"]) - len(unknown)
    remark(f"{known} values; unknown: {', '.join(unknown) or 'none'}")
    if said.installed:
        typer.echo(f"not only the image: Ultracluster has installed {said.installed} on this node", err=True)
