"""Packages that a release names."""

from __future__ import annotations

from ultracluster.software import load_release, release_names
from ultracluster.supply.package_entries import entries, is_apt


def test_entries_are_those_of_the_system_and_processor() -> None:
    for name in release_names():
        release = load_release(name)
        for system in release.systems:
            for _, entry in entries(release, system, "x86_64"):
                assert system in entry.os and "x86_64" in entry.arch


def test_debian_and_its_children_use_apt() -> None:
    assert [is_apt(name) for name in ("ubuntu24.04", "debian12", "al2023")] == [True, True, False]
