"""`ultracluster software show`: releases and machine images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.environments import (
    JsonOption,
    refuse,
)
from ultracluster.cli.image_catalogue import is_image, list_images, show_image
from ultracluster.cli.release_files import CacheOption
from ultracluster.cli.release_show import check_release, list_releases, show_release

if TYPE_CHECKING:
    pass


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A release (2026.11), the path of a lock file, or an image's id; all releases by default.",
            show_default=False,
        ),
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="List the machine images, oldest first within a family.")
    ] = False,
    family: Annotated[
        str,
        typer.Option("--family", help="Only images of this family, e.g. hyperpod-slurm.", show_default=False),
    ] = "",
    os: Annotated[
        str,
        typer.Option(
            "--os", help="Only images of this operating system, e.g. ubuntu22.04.", show_default=False
        ),
    ] = "",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Whether the parts of the release fit together, and agree with what public sources record.",
        ),
    ] = False,
    online: Annotated[
        bool,
        typer.Option(
            "--online", help="With --check: ask every source for what it has now; installs nothing."
        ),
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show releases and machine images: versions, origin, integrity and source of what each brings.

    Exit code 2 with --check if the parts do not fit. With --online 1 if a source has nothing or something
    else, 3 if one did not answer. Families of instance types that require a newer version are listed; the
    release may serve the others, so the exit code stays.
    """
    if (online or cache) and not check:
        refuse("--online and --cache go with --check")
    if check and name is None:
        refuse("--check goes with a release: `ultracluster software show` lists them")
    if images or family or os:
        if name or check:
            refuse("--images, --family and --os list images: leave the name and --check out")
        list_images(family, os, as_json=as_json)
    elif name is None:
        list_releases(as_json=as_json)
    elif check:
        check_release(name, cache, online=online, as_json=as_json)
    elif is_image(name):
        show_image(name, as_json=as_json)
    else:
        show_release(name, as_json=as_json)
