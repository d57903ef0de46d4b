"""Machine images: what each image that an orchestrator boots brings.

`images.json` next to this module holds the records with source, date and confidence; docs/images.md says how
to refresh them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Literal

from ultracluster.catalog.files import catalog_file, record, table

Mark = Literal["confirmed", "reported", "inferred"]
Family = Literal[
    "hyperpod-slurm",
    "hyperpod-eks",
    "eks-al2023-nvidia",
    "eks-al2023-neuron",
    "eks-al2023-standard",
    "parallelcluster",
    "pcs-ready-dlami",
    "dlami-base",
]
NodeFamily = Literal["hyperpod-slurm", "hyperpod-eks", "eks-al2023", "parallelcluster", "pcs", "dlami"]

_document = partial(catalog_file, "images")
_OWN = re.compile(r"ami-[0-9a-f]{8,17}$|/(?!aws/)")
_NODE_FAMILIES: Mapping[str, NodeFamily] = {
    "eks-al2023-nvidia": "eks-al2023",
    "eks-al2023-neuron": "eks-al2023",
    "eks-al2023-standard": "eks-al2023",
    "pcs-ready-dlami": "pcs",
    "dlami-base": "dlami",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of an image, and who says so."""

    value: str | bool
    """A version; true: it is there in an unknown version; false: it is not there."""
    mark: Mark
    """`confirmed`: read in the maker's own notes or source for this release. `reported`: second-hand, a field
    report or a guide of another release. `inferred`: worked out. Only what is confirmed may end a node."""
    source: str
    """Key of the catalogue's sources."""
    as_of: str
    """Date of the source, `yyyy[-mm[-dd]]`."""
    note: str = ""

    @property
    def origin(self) -> str:
        return source(self.source)


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a component in an image, with its source."""

    path: str
    """Absolute; `{machine}` is what `uname -m` prints, `{short}` the first two numbers of the version."""
    enabled: bool
    """False: it is there, and the image does not switch it on."""
    source: str
    """Key of the catalogue's sources."""
    as_of: str
    """Date of the source, `yyyy[-mm[-dd]]`."""
    note: str = ""

    @property
    def origin(self) -> str:
        return source(self.source)


@dataclass(frozen=True, slots=True)
class Advisory:
    """A known fault of an image."""

    text: str
    by: Literal["maker", "field"]
    """What its maker withdraws is refused; what the field reports is warned of."""
    source: str

    @property
    def origin(self) -> str:
        return source(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image of one release for one operating system and processor."""

    id: str
    family: Family
    release: str
    """Its maker's number: a date or a version; `1.34.?-20261012` where the patch level was not seen."""
    date: str
    """`yyyy-mm-dd`."""
    os: str
    """As the lock files name it: `ubuntu22.04`, `al2023`."""
    arch: Literal["x86_64", "arm64"]
    kubernetes: str | None = None
    """Kubernetes release; null elsewhere."""
    name: str = ""
    """Name of the AMI, or the parameter that gives its id; empty where neither is known."""
    advisories: tuple[Advisory, ...]
    notes: str = ""
    values: Mapping[str, Fact | None]
    """By field; null is unknown, false is a no."""
    version: str | None = None
    """HyperPod's number of the release (`2.1.0`), where it has one that is known."""
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    """By field, where a source says where the image has it; elsewhere it is where its package puts it."""

    @property
    def own(self) -> bool:
        """Whether it is a team's own: known by an AMI's id, or by a parameter that is none of AWS's."""
        return bool(_OWN.match(self.name))

    def fact(self, field: str) -> Fact | None:
        """What is known of `field`; None is unknown, never a no."""
        return self.values[field]

    @property
    def node_family(self) -> NodeFamily:
        """What the lifecycle scripts take a node of this image for (lib/image_family.sh)."""
        return _NODE_FAMILIES.get(self.family) or self.family  # type: ignore[return-value]

    @property
    def login_user(self) -> str | None:
        """User that the image has for people; None where it is not known."""
        fact = self.values["login_user"]
        return fact.value if fact and isinstance(fact.value, str) else None


class UnknownImageError(LookupError):
    """No image of this id is in the catalogue; the message names the nearest."""


def fields() -> tuple[str, ...]:
    """Names of the values that every record has."""
    return tuple(next(iter(_document()["defaults"].values())))


@cache
def images() -> tuple[Image, ...]:
    """Every image of the catalogue, oldest first within a family."""
    return tuple(sorted(_records(), key=lambda one: (one.family, one.date, one.id)))


def image(image_id: str) -> Image:
    """The image of this id.

    Raises:
        UnknownImageError: the catalogue has none.
    """
    by_id = {one.id: one for one in images()}
    if image_id in by_id:
        return by_id[image_id]
    near = difflib.get_close_matches(image_id, by_id, n=2, cutoff=0.5)
    hint = "`ultracluster software show --images` prints them"
    if near:
        hint = f"the nearest are {' and '.join(near)}"
    raise UnknownImageError(f"no image {image_id!r} is known; {hint}")


def newest(
    *,
    family: Family,
    arch: str,
    os: str | None = None,
    kubernetes: str | None = None,
    release: str | None = None,
) -> Image | None:
    """The newest image of a family for a processor that its maker offers; None where none is known.

    Args:
        family: the family.
        arch: `x86_64` or `arm64`.
        os: one operating system only.
        kubernetes: one Kubernetes release only (`1.34`).
        release: one release only; of EKS its date does (`20261012`), because patch levels are not all known,
            of HyperPod its number (`2.1.0`).
    """
    matching = [
        image
        for image in images()
        if image.family == family
        and not image.own
        and image.arch == arch
        and os in (None, image.os)
        and kubernetes in (None, image.kubernetes)
        and (release is None or release == image.version or _same_release(image.release, release))
    ]
    return matching[-1] if matching else None


@cache
def volume_group(family: str) -> str | None:
    """The LVM volume group that the newest image of a family makes of all local disks, and mounts where the
    data volume would be; None where it makes none, or where that is not known."""
    found = [image for image in images() if image.family == family and not image.own]
    fact = found[-1].fact("second_volume") if found else None
    return fact.value if fact and isinstance(fact.value, str) else None


def own_image(name: str) -> Image | None:
    """A team's own image, by the id or parameter that environments write; None where it has no record."""
    return next((image for image in reversed(images()) if image.own and image.name == name), None)


def _same_release(release: str, other: str) -> bool:
    """Equal; of EKS's `1.34.12-20261012` only the date counts where one side lacks the patch level."""
    if release == other:
        return True
    patch, _, date = release.rpartition("-")
    other_patch, _, other_date = other.rpartition("-")
    return len(date) == 8 and date == other_date and (not other_patch or patch.endswith(".?"))


@cache
def efa_installers() -> Mapping[str, Mapping[str, str | None]]:
    """What the EFA installer of a version brings: `efa_kmod`, `libfabric`, `aws_ofi_nccl`, `rdma_core`."""
    return _document()["efa_installers"]["versions"]


def source(key: str) -> str:
    """Where a fact was read, and of when that is."""
    row = _document()["sources"][key]
    return f"{row['where']} ({row['as_of']})"


def _records() -> Iterator[Image]:
    document = _document()
    defaults = {
        family: {name: _fact(cell) for name, cell in cells.items()}
        for family, cells in document["defaults"].items()
    }
    for row in document["images"]:
        yield record(
            Image,
            row,
            advisories=table(Advisory, row.get("advisories", ())),
            values=defaults[row["family"]] | {name: _fact(cell) for name, cell in row["values"].items()},
            places=_places(row),
        )


def _places(image: Mapping[str, Any]) -> dict[str, Place]:
    """Facts of one record: what its own `places` say, else the row for its family and system."""
    found: dict[str, Place] = {}
    for row in _document()["places"]["rows"]:
        families, systems = row.get("families"), tuple(row.get("systems", ("",)))
        if (not families or image["family"] in families) and image["os"].startswith(systems):
            found[row["field"]] = Place(*row["place"])
    return found | {name: Place(*cell) for name, cell in image.get("places", {}).items()}


def _fact(cell: list[Any] | None) -> Fact | None:
    return Fact(*cell) if cell else None
