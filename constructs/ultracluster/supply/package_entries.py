"""Packages that a release names, by operating system and processor."""

from __future__ import annotations

from ultracluster.software import PackageSet, Release


def entries(release: Release, system: str, arch: str) -> list[tuple[str, PackageSet]]:
    """Components and their packages on one system and processor."""
    return [
        (name, entry)
        for name, part in release.components.items()
        for entry in part.packages
        if system in entry.os and arch in entry.arch
    ]


def is_apt(system: str) -> bool:
    """Whether an operating system uses apt; the others use dnf."""
    return system.startswith(("ubuntu", "debian"))
