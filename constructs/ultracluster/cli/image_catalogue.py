"""`ultracluster software show`: what machine images are known, and what each brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import typer

from ultracluster.catalog.images import Family, UnknownImageError, images, source
from ultracluster.catalog.images import image as known_image
from ultracluster.cli.json_output import write_json
from ultracluster.cli.json_rows import KnownImage
from ultracluster.cli.report import refuse, text_table
from ultracluster.software import release_names

if TYPE_CHECKING:
    from ultracluster.catalog.images import Fact

_COLUMNS = ("kernel", "nvidia_driver", "neuron_driver", "efa_installer", "slurm")


def list_images(family: str, os: str, *, as_json: bool) -> None:
    """List the machine images of the catalogue, oldest first within a family."""
    systems = sorted({one.os for one in images()})
    for given, known, option in ((family, get_args(Family), "--family"), (os, systems, "--os")):
        if given and given not in known:
            refuse(f"{option} {given!r} is none of: {', '.join(known)}")
    found = [one for one in images() if family in ("", one.family) and os in ("", one.os)]
    if as_json:
        write_json("images", {"images": found})
        return
    if not found:
        typer.echo("no images")
        return
    rows = [
        (
            one.id,
            one.date,
            *(_value(one.fact(field)) for field in _COLUMNS),
            "reported bad" if one.advisories else "",
        )
        for one in found
    ]
    typer.echo(
        text_table(
            ("image", "date", "kernel", "NVIDIA driver", "Neuron driver", "EFA", "Slurm", "known of it"), rows
        )
    )
    typer.echo(
        "\n-: it has none; ?: unknown; ~: not confirmed by its maker. `ultracluster software show <image>`"
    )


def is_image(name: str) -> bool:
    """Return whether that is an image's id, or meant as one: it begins as one, and is no release."""
    if name in release_names():
        return False
    return any(name == one.id or name.startswith(f"{one.family}-") for one in images())


def show_image(image: str, *, as_json: bool) -> None:
    """Show what an image brings: each value with who says so, and of when that is."""
    try:
        one = known_image(image)
    except UnknownImageError as error:
        refuse(str(error.args[0]))
    if as_json:
        write_json("image", {"image": KnownImage(one)})
        return
    typer.echo(f"{one.id}: {one.family} {one.release}, {one.os} on {one.arch}")
    if one.name:
        typer.echo(f"  {one.name}")
    if one.notes:
        typer.echo(f"  {one.notes}")
    for note in one.advisories:
        typer.echo(
            f"  {'withdrawn' if note.by == 'maker' else 'reported'}: {note.text} ({source(note.source)})"
        )
    typer.echo()
    rows: list[tuple[str, ...]] = []
    for field, fact in one.values.items():
        if fact is None:
            rows.append((field, "?", "", ""))
        else:
            said = source(fact.source)
            rows.append(
                (field, _value(fact, "").strip(), fact.mark, f"{said}{f'; {fact.note}' if fact.note else ''}")
            )
    typer.echo(text_table(("field", "value", "mark", "source"), rows))


def _value(fact: Fact | None, doubt: str = "~") -> str:
    """`-` is a no, `?` is unknown, `yes` is there in an unknown version."""
    if fact is None:
        return "?"
    if isinstance(fact.value, bool):
        return "yes" if fact.value else "-"
    return f"{fact.value}{'' if fact.mark == 'confirmed' else doubt}"
