"""What is chosen of package repositories: of apt's and dnf's, with all that it needs.

Only the mirror reads repositories: what this needs from others is the extra `ultracluster[mirror]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ultracluster.software import Release
from ultracluster.supply import apt_repository, dnf_repository
from ultracluster.supply.package_closure import Closure, ClosureError, Package
from ultracluster.supply.package_entries import entries, is_apt

# The node's step asks for the modules of its own kernel instead (steps/lustre_client.sh).
_PER_KERNEL = {"lustre-client-modules-aws": ("lustre-client-modules-*-aws*", "lustre-client-utils")}

Writer = Callable[[Sequence[tuple[Package, str]]], dict[str, str]]
"""Writes the index of some packages, each with its file: text by path."""


def closure_of(
    release: Release, system: str, arch: str, cache: Path, archives: dict[str, Any]
) -> tuple[Closure, Writer]:
    """The packages of a release for one system and processor, and how their index is written.

    Raises:
        ClosureError: a package or a dependency is nowhere.
        DownloadError, IntegrityError, NoGpgError, OSError: an index cannot be read or trusted.
    """
    if is_apt(system):
        return _apt(release, system, arch, cache, archives), apt_repository.written
    return _dnf(release, system, arch, cache), dnf_repository.written


def _apt(release: Release, system: str, arch: str, cache: Path, archives: dict[str, Any]) -> Closure:
    index, first = apt_repository.new_index(), apt_repository.new_index()
    for source in _sources(release, system, arch):
        apt_repository.read(source, arch, cache, index)
    everywhere: list[str] = []
    for archive in archives["archives"]:
        if (archive["os"], archive["arch"]) == (system, arch):
            suites = [
                apt_repository.AptSource(
                    archive["url"], suite, archive["key_url"], archive["key_fingerprint"]
                )
                for suite in archive["suites"]
            ]
            # what an image has at least: the system as it was first published
            everywhere = apt_repository.read(suites[0], arch, cache, first)
            for suite in suites:
                apt_repository.read(suite, arch, cache, index)
    closure = Closure(
        index,
        image=apt_repository.of_every_image(everywhere, first),
        image_names=tuple(archives["kernel"]),
    )
    _fill(closure, release, system, arch)
    return closure


def _sources(release: Release, system: str, arch: str) -> Iterator[apt_repository.AptSource]:
    sources = {
        apt_repository.AptSource(
            where.url, where.suite or "/", where.key_url or "", where.key_fingerprint or ""
        ): None
        for _, entry in entries(release, system, arch)
        if (where := entry.repository)
    }
    yield from sources


def _dnf(release: Release, system: str, arch: str, cache: Path) -> Closure:
    index = dnf_repository.new_index()
    repositories = {
        (where.url, where.key_url or "", where.key_fingerprint or ""): None
        for _, entry in entries(release, system, arch)
        if (where := entry.repository)
    }
    for url, key_url, fingerprint in repositories:
        dnf_repository.read(url, key_url, fingerprint, arch, cache, index)
    closure = Closure(index)
    _fill(closure, release, system, arch)
    return closure


def _fill(closure: Closure, release: Release, system: str, arch: str) -> None:
    fixed: list[Package] = []
    variants: list[Package] = []
    for component, entry in entries(release, system, arch):
        if entry.repository is None and not is_apt(system):
            continue  # from the system's own repositories, which are S3 buckets of the Region
        where = entry.repository.url if entry.repository else None
        for name in (
            package
            for package_name in entry.names
            for package in _PER_KERNEL.get(package_name, (package_name,))
        ):
            packages = closure.index.matching(name, where)
            if not packages:
                raise ClosureError(f"{component}: {where or system} has no {name} for {arch}")
            (variants if "*" in name.partition("=")[0] and is_apt(system) else fixed).extend(packages)
    closure.add(*fixed)
    reasons: list[str] = []
    for package in variants:  # a node needs one of them: those for kernels that are gone are left out
        try:
            closure.add(package)
        except ClosureError as error:
            reasons.append(str(error))
    if variants and len(reasons) == len(variants):
        raise ClosureError(reasons[0])
