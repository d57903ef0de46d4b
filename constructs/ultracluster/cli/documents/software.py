"""Documents of software: images, releases, and the rights that the command itself needs."""

from __future__ import annotations

from typing import Any, TypedDict

from ultracluster.catalog.images import Image
from ultracluster.cli.json_rows import KnownImage
from ultracluster.software.lock import Release
from ultracluster.software.solver import Verdict
from ultracluster.supply.online import Answer


class ImageList(TypedDict):
    images: list[Image]


class ImageDocument(TypedDict):
    image: KnownImage


class ReleaseRow(TypedDict):
    """A software release."""

    release: str
    date: str
    summary: str
    components: int
    families: list[str]
    """Image families that it is for."""
    unlocked: list[str]
    """What nodes refuse until it is locked."""


class ReleaseList(TypedDict):
    releases: list[ReleaseRow]


class ReleaseDocument(TypedDict):
    release: Release
    """The lock file."""


class ReleaseCheck(TypedDict):
    release: str
    constraints: list[Verdict]
    instance_types: list[Verdict]
    """Minimum versions of families of instance types that the release is below."""
    artefacts: int
    """Files and packages of repositories that it names."""
    checked: int
    """Those that a public source records exactly so."""
    unrecorded: list[str]
    """Those that none records exactly so, with what is missing."""
    contradictions: list[str]
    """Describe what differs from its record, with file and line."""
    only_bundled: list[str]
    """Components that only the EFA installer brings: nothing else of the release installs them."""
    sources: list[Answer]
    """With `--online`: what each source has now."""


class Policy(TypedDict):
    """A policy of IAM."""

    Version: str
    Statement: list[dict[str, Any]]


class Permissions(TypedDict):
    groups: dict[str, str]
    """What each group of rights is for."""
    policy: Policy
    """For IAM; `ultracluster permissions --policy` prints only this."""
    environment: str | None
    """To which it is limited; null: to none."""
    notes: list[str]
    """What keeps it from being narrower, or from being taken."""
