"""`ultracluster software recipe`: a recipe that bakes a software release into an image."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Literal, assert_never

import typer

from ultracluster.catalog.image_bases import UnknownBaseError
from ultracluster.cli.report import refuse
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.software import UnknownReleaseError
from ultracluster.software.image_recipe import Recipe, component_that_builds, component_that_tests
from ultracluster.software.packer_file import packer_file

_S3 = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]+)?"


Format = Literal["imagebuilder", "imagebuilder-test", "packer"]
Architecture = Literal["x86_64", "arm64"]
Accelerator = Literal["nvidia", "neuron", "none"]


def recipe(
    release: Annotated[str, typer.Option("--release", help="The software release, e.g. 2026.11.")],
    orchestrator: Annotated[OrchestratorKind, typer.Option("--orchestrator", help="Whose image it is.")],
    form: Annotated[
        Format,
        typer.Option("--format", help="Image Builder's component, its test, or a Packer file."),
    ] = "imagebuilder",
    scripts: Annotated[
        str, typer.Option("--scripts", help="s3:// folder of the lifecycle scripts; asked for at build time.")
    ] = "",
    mirror: Annotated[str, typer.Option("--mirror", help="s3:// mirror of the release.")] = "",
    accelerator: Annotated[
        Accelerator, typer.Option("--accelerator", help="Which nodes it is for.")
    ] = "nvidia",
    os: Annotated[str, typer.Option("--os", help="Operating system, as the orchestrator writes it.")] = "",
    architecture: Annotated[Architecture, typer.Option("--arch", help="Processor of the nodes.")] = "x86_64",
    kubernetes: Annotated[
        str, typer.Option("--kubernetes", help="EKS: Kubernetes release of the base, e.g. 1.34.")
    ] = "",
) -> None:
    """Print an EC2 Image Builder component or a Packer file that bakes a release into an image.

    Login user, root volume and clean-up are those of the base image. The scripts are those of this package:
    the build fetches them from S3 and stops unless their hash is that of the recipe. `ImageBuilderPipeline`
    is the whole pipeline as a CDK construct.
    """
    for name, value in (("--scripts", scripts), ("--mirror", mirror)):
        if value and not re.fullmatch(_S3, value):
            refuse(f"{name} {value!r}: write it as s3://bucket/prefix")
    if kubernetes and not re.fullmatch(r"1\.\d{2}", kubernetes):
        refuse(f"--kubernetes {kubernetes!r} is not a release: write it as 1.34")
    if form == "packer" and scripts.endswith(".zip"):
        refuse("--scripts: pass a folder for Packer; only Image Builder takes an archive")
    try:
        wanted = Recipe(
            release=release,
            orchestrator=orchestrator,
            os=os,
            architecture=architecture,
            accelerator=accelerator,
            kubernetes=kubernetes,
            scripts=scripts.rstrip("/"),
            archive=scripts.endswith(".zip"),
            mirror=mirror.rstrip("/"),
        )
        wanted.check_release()
    except UnknownBaseError as error:
        refuse(f"--os: {error}")
    except UnknownReleaseError as error:
        refuse(str(error.args[0]))
    except ValueError as error:
        refuse(f"--release: {error}")
    match form:
        case "imagebuilder":
            text = component_that_builds(wanted)
        case "imagebuilder-test":
            text = component_that_tests(wanted)
        case "packer":
            text = packer_file(wanted)
        case _ as never:
            assert_never(never)
    sys.stdout.write(text)
