"""The lock file of one software release: every component with version, artifacts and source.

`lifecycle_scripts/releases/<release>.lock` is JSON, so that the nodes' bash reads it with what every image
has. `lock.schema.json` next to it is generated from these models.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator

from ultracluster.catalog.images import NodeFamily as ImageFamily
from ultracluster.config.base import IN_LINES, ON_ONE_LINE, Line, Many, Model, Prose
from ultracluster.config.file_text import text_of
from ultracluster.scripts_folder import own_release, scripts_folder
from ultracluster.software.artifact import Artifact, PackageSet

ComponentName = Literal[
    "nvidia-driver",
    "fabric-manager",
    "cuda-runtime",
    "efa-installer",
    "libfabric",
    "nccl",
    "aws-ofi-nccl",
    "gdrcopy",
    "nccl-tests",
    "lustre-client",
    "lustre-efa-setup",
    "nvidia-fs",
    "container-toolkit",
    "enroot",
    "pyxis",
    "dcgm",
    "nixl",
    "node-exporter",
    "dcgm-exporter",
    "prometheus",
    "neuron-driver",
    "neuron-runtime",
    "neuron-collectives",
    "slurm",
    "kernel",
]
Kind = Literal["artifact", "packages", "source", "bundled", "image"]
Need = Literal["required", "wanted", "optional"]
NodeFamily = Literal[ImageFamily, "plain"]
Text = Annotated[str, Field(min_length=1), IN_LINES]

RELEASE_NAME = r"^([a-z][a-z0-9-]*-)?[0-9]+\.[0-9]+(\.[0-9]+)?$"


class Floor(Model):
    """The lowest version of a component that works, and who says so."""

    version: Annotated[str, Field(pattern=r"^[0-9][!-~]*$")]
    mark: Literal["confirmed", "reported", "inferred"]
    """Only a floor that is `confirmed` ends a node."""
    source: Text


class Component(Model):
    """One part of the software on a node."""

    version: Annotated[str, Field(min_length=1), ON_ONE_LINE]
    """The preferred version, as upstream writes it; `image` where only the image decides, `bundled` or
    `unversioned` where none is published."""
    kind: Kind
    """`artifact`: a file. `packages`: from a repository. `source`: compiled on the node. `bundled`: comes
    with another component. `image`: never installed, only detected."""
    provides: dict[Line, Line] = {}
    """Versions and properties that come along, by name; what is not known is left out."""
    install_path: Line | None = None
    need: Need
    """`required`: training cannot run without it. `wanted`: a node without it joins, degraded. `optional`:
    only where the environment asks for it."""
    floor: Floor | None = None
    """The lowest version that works; None: any version works."""
    floors: dict[Annotated[str, Field(pattern=r"^[a-z0-9-]+$")], Floor] = {}
    """The same for families of instance types that require more (`p6-b200`)."""
    needs: Many[ComponentName] = ()
    """Components that must be there before."""
    accelerator: Literal["nvidia", "neuron", "any"] = "any"
    """Which nodes it is for."""
    constraint: Text
    """What ties its version to the others, in one sentence."""
    source: Text
    """Where version and facts come from."""
    note: Prose = ""
    artifacts: Many[Artifact] = ()
    packages: Many[PackageSet] = ()

    def floor_of(self, instance_type: str) -> Floor | None:
        """The lowest version that works on a type."""
        return self.floors.get(instance_type.partition(".")[0], self.floor)

    @property
    def architectures(self) -> set[str]:
        """CPU architectures it can be installed on; empty if nothing is installed."""
        return {arch for entry in (*self.artifacts, *self.packages) for arch in entry.arch}

    @property
    def systems(self) -> set[str]:
        """Operating systems it can be installed on; empty if nothing is installed."""
        return {name for entry in (*self.artifacts, *self.packages) for name in entry.os}


class Unlocked(NamedTuple):
    """A file or repository key that could not be checked."""

    component: str
    what: Literal["file", "key"]
    name: str
    """Name of the file; address of the key, or of a repository that names none."""
    os: Sequence[str]
    arch: Sequence[str]


class Release(Model):
    """One software release."""

    schema_version: Annotated[Literal[2], Field(alias="schema")]
    release: Annotated[str, Field(pattern=RELEASE_NAME)]
    """`<yyyy.mm>`, or `<family>-<version>` where it is made for one family; also the name of the file."""
    families: Annotated[Many[NodeFamily], Field(min_length=1)]
    """Image families that it serves, as nodes detect them (`lib/image_family.sh`)."""
    images: Many[Text] = ()
    """Ids of the images (`catalog/images.json`) that it was put together for."""
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """When it was put together."""
    summary: Text
    components: dict[ComponentName, Component]
    """Components by name, in the order in which they are installed."""
    package_sets: dict[
        Annotated[str, Field(pattern=r"^[a-z]+[0-9][0-9.]*-(x86_64|aarch64)$")],
        Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")],
    ] = {}
    """SHA-256 of the list of packages that a mirror holds, by `<os>-<arch>`; `ultracluster software mirror`
    fills it. A node takes packages from a mirror only if they are on this list."""

    @model_validator(mode="after")
    def _needs_are_there(self) -> Release:
        for name, component in self.components.items():
            missing = [need for need in component.needs if need not in self.components]
            if missing:
                raise ValueError(f"{name} needs {', '.join(missing)}, which the release does not have")
        return self

    def artifacts(self) -> Iterator[tuple[str, Artifact]]:
        """Every artifact with the name of its component."""
        for name, component in self.components.items():
            for artifact in component.artifacts:
                yield name, artifact

    @property
    def systems(self) -> tuple[str, ...]:
        """Operating systems that any part of it names, in the order of the file."""
        names = [name for part in self.components.values() for name in sorted(part.systems)]
        return tuple(dict.fromkeys(names))

    @property
    def unlocked(self) -> tuple[Unlocked, ...]:
        """Files without a digest, and keys of repositories without a fingerprint: nodes refuse both."""
        return tuple(dict.fromkeys(self._unlocked()))

    def unlocked_on(self, system: str | None, arch: str | None) -> tuple[Unlocked, ...]:
        """Those that nodes of this operating system and processor could need; None is any."""
        return tuple(
            file
            for file in self.unlocked
            if (system is None or not file.os or system in file.os) and (arch is None or arch in file.arch)
        )

    def _unlocked(self) -> Iterator[Unlocked]:
        for name, part in self.components.items():
            for artifact in part.artifacts:
                if not artifact.locked:
                    yield Unlocked(name, "file", artifact.name, artifact.os, artifact.arch)
            for entry in part.packages:
                where = entry.repository
                if where and not (where.key_url and where.key_fingerprint):
                    yield Unlocked(name, "key", where.key_url or where.url, entry.os, entry.arch)


class InvalidLockError(ValueError):
    """A lock file that cannot be used; the message names the file and every fault in it."""


class UnknownReleaseError(LookupError):
    """There is no release of this name; the message names the nearest."""


def releases_folder() -> Path:
    """Where the lock files are."""
    return scripts_folder() / "releases"


@cache
def release_names() -> tuple[str, ...]:
    """All releases by name."""
    return tuple(sorted(file.stem for file in releases_folder().glob("*.lock")))


def newest_release(family: NodeFamily) -> Release:
    """The newest release for nodes of `family`: one made for this family only, else one for several.

    Raises:
        UnknownReleaseError: no release serves it.
    """
    serving = [release for name in release_names() if family in (release := load_release(name)).families]
    if not serving:
        raise UnknownReleaseError(f"no release serves {family}")
    return max(
        serving, key=lambda candidate: (-len(candidate.families), _number(candidate.release), candidate.date)
    )


def nearest_releases(name: str, count: int = 2) -> list[str]:
    """The releases nearest to `name`, nearest first: of the same series by number, then by spelling."""
    names = release_names()
    same = [release for release in names if _series(release) == _series(name)]
    same.sort(key=lambda release: (abs(_number(release) - _number(name)), release))
    others = [release for release in names if release not in same]
    return [*same, *difflib.get_close_matches(name, others, n=count, cutoff=0)][:count]


def release_file(name: str) -> Path:
    """The lock file of a release.

    Raises:
        UnknownReleaseError: there is none.
    """
    if own := own_release(name):
        return own
    if name not in release_names():
        near = " or ".join(nearest_releases(name)) or "none: there is no release at all"
        raise UnknownReleaseError(f"there is no release {name!r}; the nearest is {near}")
    return releases_folder() / f"{name}.lock"


def load_release(name: str) -> Release:
    """The release `name`.

    Raises:
        UnknownReleaseError: there is none.
        InvalidLockError: its file is damaged.
    """
    return _loaded(release_file(name))


@cache
def _loaded(file: Path) -> Release:
    return read_lock(file)


def read_lock(file: Path) -> Release:
    """The release in `file`, whose name must be that of the release.

    Raises:
        InvalidLockError: it cannot be read, is no JSON, has another shape or another name.
    """
    try:
        data: Any = json.loads(text_of(file), object_pairs_hook=no_duplicates)
        release = Release.model_validate(data)
    except OSError as error:
        raise InvalidLockError(f"{file}: {error.strerror or error}") from None
    except ValidationError as error:
        faults = [
            f"  {'.'.join(str(part) for part in fault['loc']) or 'release'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise InvalidLockError("\n".join([f"{file} is no lock file of a release:", *faults])) from None
    except RecursionError:
        raise InvalidLockError(f"{file} is no lock file: its values lie in one another too deep") from None
    except ValueError as error:  # JSON and its encoding
        raise InvalidLockError(f"{file} is not JSON: {error}") from None
    if file.stem != release.release:
        raise InvalidLockError(f"{file} holds release {release.release}: name it {release.release}.lock")
    return release


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a key that stands twice is a ValueError."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} stands twice")
        result[key] = value
    return result


def _series(name: str) -> str:
    """`hyperpod-slurm-` of `hyperpod-slurm-2026.09`."""
    return name.rstrip("0123456789.")


def _number(name: str) -> int:
    """The number of a release as one figure, with room for three digits in each later part."""
    major, minor, patch, *_ = [*re.findall(r"\d+", name.removeprefix(_series(name))), "0", "0", "0"]
    return (int(major) * 1000 + int(minor)) * 1000 + int(patch)
