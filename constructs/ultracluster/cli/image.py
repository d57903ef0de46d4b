"""`ultracluster image ...`: what images bring, and recipes that bake a software release into one."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from typing import Annotated

import typer

from ultracluster.cli.image_catalogue import list_images, show
from ultracluster.cli.refusal import refuse

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Machine images: what they bring, and recipes that bake a release into one.",
)

_S3 = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]+)?"


class ImageOrchestrator(StrEnum):
    """Whose image is the base."""

    HYPERPOD_SLURM = "hyperpod-slurm"
    PARALLELCLUSTER = "parallelcluster"
    PCS = "pcs"


class Format(StrEnum):
    """Who builds the image."""

    IMAGE_BUILDER = "imagebuilder"
    PACKER = "packer"


class Accelerator(StrEnum):
    """Which nodes the image is for."""

    NVIDIA = "nvidia"
    NEURON = "neuron"
    NONE = "none"


app.command("list")(list_images)
app.command()(show)


@app.callback()
def image() -> None:
    """Machine images: what they bring, and recipes that bake a release into one."""


@app.command()
def recipe(
    release: Annotated[str, typer.Option("--release", help="The software release, e.g. 2026.11.")],
    orchestrator: Annotated[ImageOrchestrator, typer.Option("--orchestrator", help="Whose image it is.")],
    form: Annotated[Format, typer.Option("--format", help="Who builds it.")] = Format.IMAGE_BUILDER,
    scripts: Annotated[
        str, typer.Option("--scripts", help="s3:// folder of the lifecycle scripts; asked for at build time.")
    ] = "",
    mirror: Annotated[str, typer.Option("--mirror", help="s3:// mirror of the release.")] = "",
    accelerator: Annotated[
        Accelerator, typer.Option("--accelerator", help="Which nodes it is for.")
    ] = Accelerator.NVIDIA,
) -> None:
    """Print an EC2 Image Builder component or a Packer file that bakes a release into an image.

    The scripts are those of this package: the build fetches them from S3 and stops unless their hash is
    that of the recipe.
    """
    from ultracluster.operations.image_recipe import Recipe, image_builder_component, packer_file
    from ultracluster.software import UnknownReleaseError, load_release

    try:
        load_release(release)
    except UnknownReleaseError as error:
        refuse(str(error.args[0]))
    for name, value in (("--scripts", scripts), ("--mirror", mirror)):
        if value and not re.fullmatch(_S3, value):
            refuse(f"{name} {value!r} is not s3://bucket/prefix")
    made = Recipe(
        release=release,
        orchestrator=orchestrator.value,
        accelerator=accelerator.value,
        scripts=scripts.rstrip("/"),
        mirror=mirror.rstrip("/"),
    )
    write = image_builder_component if form is Format.IMAGE_BUILDER else packer_file
    sys.stdout.write(write(made))
