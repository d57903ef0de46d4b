"""Whether a node could install a component of a release, and where from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from ultracluster.software.lock import Component, Release

Lack = Literal["", "image-only", "unlocked", "unreachable", "not-there"]
"""Why a component cannot be installed: only images bring it; a file has no digest or a repository no pinned
key; nodes have no route to it; the release has none for the system and processor."""
Sources = Literal["internet", "mirror", "none"]
"""What nodes reach: their makers' addresses, a mirror in S3, or only what S3 itself has of AWS's own."""
IMAGE_ONLY = frozenset({"nvidia-driver", "fabric-manager"})
"""Never installed next to the image's own (steps/nvidia_driver.sh)."""


@dataclass(frozen=True, slots=True)
class Installing:
    """Where a component is installed from; or, with an empty `source`, why it cannot be."""

    source: str
    lack: Lack = ""
    why_not: str = ""


def installing(
    release: Release, name: str, part: Component, *, os: str | None, machine: str, sources: Sources
) -> Installing:
    """Where a node with this system and processor (`uname -m`) gets the component from.

    Args:
        os: as lock files name it; None where the image is not known: then any system will do.
        sources: what the node reaches.
    """
    if part.kind == "image" or name in IMAGE_ONLY:
        return Installing("", "image-only", "it comes with the image, and nothing is installed in its place")
    files = [artifact for artifact in part.artifacts if artifact.suits(os, machine)]
    packages = [
        package for package in part.packages if (os is None or os in package.os) and machine in package.arch
    ]
    if files:
        unlocked = [file.name for file in files if not file.locked]
        if unlocked:
            return Installing("", "unlocked", f"{unlocked[0]} has no digest")
        if sources == "none":
            return Installing("", "unreachable", "nodes have no route to its source, and there is no mirror")
        return Installing("the mirror" if sources == "mirror" else _host(files[0].url))
    if packages:
        repository = packages[0].repository
        if repository is None:
            # AL2023's own repositories are in S3, which the gateway endpoint reaches
            if sources == "internet" or os == "al2023":
                return Installing("the system's own repositories")
        elif not repository.key_fingerprint:
            return Installing("", "unlocked", f"the signing key of {_host(repository.url)} is not pinned")
        if sources == "none":
            why = "nodes have no route to its repository, and there is no mirror"
            return Installing("", "unreachable", why)
        if sources == "mirror":
            if os is not None and f"{os}-{machine}" not in release.package_sets:
                why = f"the release records no packages of a mirror for {os} on {machine}"
                return Installing("", "unreachable", why)
            return Installing("the mirror")
        return Installing(_host(repository.url) if repository else "the system's own repositories")
    if part.kind == "bundled":
        return Installing("", "not-there", "it comes with another component, which did not bring it")
    return Installing("", "not-there", f"the release has nothing for {os or 'this system'} on {machine}")


def only_bundled(release: Release) -> tuple[str, ...]:
    """Components that only another one brings: the release has neither file nor package of theirs."""
    return tuple(
        f"{name} {part.version}"
        for name, part in release.components.items()
        if part.kind == "bundled" and not part.artifacts and not part.packages
    )


def _host(url: str | None) -> str:
    return urlsplit(url).netloc if url else "the mirror"
