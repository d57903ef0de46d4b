"""What is baked into which image, and the EC2 Image Builder components that do it.

The build fetches the lifecycle scripts from S3, compares them with the hash of those in this package, and
calls `bake.sh`, which does what a node would do at its start; then again, to see that nothing is left to do;
and cleans up. `packer_file.py` writes the same for Packer.
"""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.catalog.image_bases import Accelerator, ImageBase, image_base
from ultracluster.scripts_folder import CONFIGURATION, scripts_folder, tree_sha256
from ultracluster.software import load_release, release_names

TARGET = "/opt/ultracluster/scripts"
SECONDS = 7200
"""A build step takes no longer; AWSTOE's own default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is baked into which image.

    Raises:
        UnknownBaseError: there is no image of this orchestrator with this operating system.
        ValueError: the base is not made for the processor.
    """

    release: str
    orchestrator: str
    os: str = ""
    """As the orchestrator writes it (`ubuntu2404` for ParallelCluster); by default its usual one."""
    architecture: str = "x86_64"
    accelerator: Accelerator = "nvidia"
    kubernetes: str = ""
    """Kubernetes release of an EKS image (`1.34`); names its newest base."""
    scripts: str = ""
    """`s3://` folder of the scripts, or archive; empty leaves it to the build."""
    archive: bool = False
    """`scripts` is a `.zip` of the folder."""
    mirror: str = ""
    """`s3://` mirror of the release; empty is the makers' own addresses."""

    def __post_init__(self) -> None:
        if self.architecture not in self.base.architectures:
            raise ValueError(
                f"{self.orchestrator} has no image for {self.architecture}: "
                f"write one of {', '.join(self.base.architectures)}"
            )

    @property
    def base(self) -> ImageBase:
        """The image that it starts from."""
        return image_base(self.orchestrator, self.os)

    @property
    def base_parameter(self) -> str | None:
        """SSM parameter of the newest base; None where AWS publishes none that is known."""
        return self.base.parameter(
            self.architecture, accelerator=self.accelerator, kubernetes=self.kubernetes
        )

    @property
    def name(self) -> str:
        what = self.release.removeprefix(f"{self.orchestrator}-")
        return f"ultracluster-{self.orchestrator}-{what}-{self.base.os}-{self.architecture}"

    def check_release(self) -> None:
        """Is the release for this base?

        Raises:
            UnknownReleaseError: there is no such release.
            ValueError: it serves other images.
        """
        served = load_release(self.release).families
        if self.base.family not in served:
            fitting = [name for name in release_names() if self.base.family in load_release(name).families]
            raise ValueError(
                f"release {self.release} is for images of {', '.join(served)}, not for {self.orchestrator}: "
                f"write one of {', '.join(fitting)}"
            )

    @property
    def tags(self) -> dict[str, str]:
        """Tags of the image: what it is, and what its base requires."""
        return {
            "Name": self.name,
            "ultracluster:release": self.release,
            "ultracluster:orchestrator": self.orchestrator,
            "ultracluster:accelerator": self.accelerator,
            **dict(self.base.tags),
        }

    @property
    def bake(self) -> str:
        """The command that bakes."""
        words = ["bash", f"{TARGET}/bake.sh", "--release", self.release, "--family", self.base.family]
        words += ["--accelerator", self.accelerator]
        words += ["--efa", "yes"] if self.accelerator != "none" else []
        words += ["--mirror", self.mirror] if self.mirror else []
        return " ".join(words)

    @property
    def verify(self) -> str:
        """The command that fails if there is still something to install."""
        return f"{self.bake} --verify yes"


RECORD = f"bash {TARGET}/image/record.sh"
"""Prints what the image brings, for `ultracluster software record`."""
CLEAN = f"bash {TARGET}/image/clean.sh"
"""Takes away what must not be the same on every node."""


def check_command(folder: str = TARGET) -> str:
    """A shell command that fails unless the scripts in `folder` are those of this package."""
    digest = tree_sha256(scripts_folder())
    return (
        f"cd {folder} && found=$(find . -type f ! -name {CONFIGURATION} ! -name '*.md' -printf '%P\\0' "
        "| LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum) && "
        f'{{ [ "${{found%% *}}" = {digest} ] || '
        '{ echo "refused: these are not the scripts of this recipe" >&2; exit 1; }; }'
    )


def component_that_builds(recipe: Recipe) -> str:
    """The YAML of the component that builds (AWSTOE document, schema 1.0)."""
    build = [*_fetch(recipe), _bash("Bake", recipe.bake)]
    validate = [_bash("BakeAgain", recipe.verify), _bash("Record", RECORD), _bash("Clean", CLEAN)]
    return _document(
        recipe,
        f"Brings {recipe.orchestrator} images to Ultracluster release {recipe.release}",
        f"  - name: build\n    steps:\n{''.join(build)}  - name: validate\n    steps:\n{''.join(validate)}",
    )


def component_that_tests(recipe: Recipe) -> str:
    """The YAML of the component that tests an instance of the new image; it fetches the scripts itself."""
    steps = [*_fetch(recipe), _bash("Verify", recipe.verify), _bash("Record", RECORD)]
    return _document(
        recipe,
        f"Tests {recipe.orchestrator} images of Ultracluster release {recipe.release}",
        f"  - name: test\n    steps:\n{''.join(steps)}",
    )


def _document(recipe: Recipe, description: str, phases: str) -> str:
    default = f"\n      default: {_quoted(recipe.scripts)}" if recipe.scripts else ""
    what = "A .zip" if recipe.archive else "Folder"
    form = "s3://bucket/key.zip" if recipe.archive else "s3://bucket/prefix, without a slash at its end"
    return f"""\
name: {recipe.name}
description: {description}
schemaVersion: 1.0
parameters:
  - ScriptsUri:
      type: string{default}
      description: {what} of the lifecycle scripts, {form}
phases:
{phases}"""


def _fetch(recipe: Recipe) -> list[str]:
    steps = [_bash("Empty", f"rm -rf {TARGET} {TARGET}.zip && mkdir -p {TARGET}", seconds=60)]
    if recipe.archive:
        steps.append(_download("'{{ ScriptsUri }}'", f"{TARGET}.zip"))
        unpack = f"python3 -m zipfile -e {TARGET}.zip {TARGET} && rm {TARGET}.zip"
        steps.append(_bash("Unpack", unpack, seconds=60))
    else:
        steps.append(_download("'{{ ScriptsUri }}/*'", TARGET))
    return [*steps, _bash("Check", check_command(), seconds=60)]


def _download(source: str, destination: str) -> str:
    return f"""\
      - name: Fetch
        action: S3Download
        timeoutSeconds: 300
        onFailure: Abort
        maxAttempts: 3
        inputs:
          - source: {source}
            destination: {destination}
"""


def _bash(name: str, command: str, *, seconds: int = SECONDS) -> str:
    return f"""\
      - name: {name}
        action: ExecuteBash
        timeoutSeconds: {seconds}
        onFailure: Abort
        inputs:
          commands:
            - {_quoted(command)}
"""


def _quoted(text: str) -> str:
    """As a YAML string in single quotes."""
    return "'" + text.replace("'", "''") + "'"
