"""Documents of software: images, releases, and the rights that the command itself needs."""

from __future__ import annotations

from typing import Any, TypedDict

from ultracluster.software.lock import Release


class Advisory(TypedDict):
    """Why an image should not be used."""

    text: str
    by: str
    """`maker`: it was withdrawn."""
    source: str


class ImageRow(TypedDict):
    """A machine image of the catalogue."""

    id: str
    family: str
    release: str
    date: str
    os: str
    arch: str
    kubernetes: str | None
    """Kubernetes release; null elsewhere."""
    name: str
    notes: str
    advisories: list[Advisory]


class ImageList(TypedDict):
    images: list[ImageRow]


class ImageValue(TypedDict):
    """What an image brings of one thing, and who says so."""

    value: str | bool
    """A version; true: it is there in an unknown version; false: it is not there."""
    mark: str
    """How sure it is: `confirmed`, `reported` or `inferred`."""
    source: str
    as_of: str
    note: str


class KnownImage(ImageRow):
    """An image with its values."""

    values: dict[str, ImageValue | None]
    """By field; null is unknown, false is a no."""


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


class ConstraintRow(TypedDict):
    """One constraint between versions, and whether it holds."""

    id: str
    state: str
    severity: str
    title: str
    detail: str
    why: str
    source: str
    date: str


class SourceAnswer(TypedDict):
    """Answer of a source about one file or package."""

    component: str
    what: str
    state: str
    """`proven`, `there`, `differs`, `gone`, `unanswered` or `not-asked`."""
    detail: str
    """Describe what the answer proves, or what is wrong."""


class ReleaseCheck(TypedDict):
    release: str
    constraints: list[ConstraintRow]
    instance_types: list[ConstraintRow]
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
    sources: list[SourceAnswer]
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
