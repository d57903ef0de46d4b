"""Slurm's reading of its files: each row of the facts, broken and corrected, and each type of value."""

from __future__ import annotations

import pytest

from ultracluster.catalog.slurm_refusals import (
    RefusalFacts,
    SlurmFile,
    slurm_defaults,
    slurm_keys,
    slurm_refusals,
    slurm_releases,
)
from ultracluster.model.slurm_reading import Given, Refusal, refusals

ROWS = slurm_refusals()
NEWEST = slurm_releases()[-1]


def name(row: RefusalFacts) -> str:
    return f"{row.file} {' '.join(f'{key}={value}' for key, value in row.bad.items())} {row.since}"


def read(row: RefusalFacts, given: dict[str, str], release: str) -> list[Refusal]:
    beside: Given = slurm_defaults() if row.file == "slurm.conf" else {}
    return list(refusals(row.file, given, release, beside))


def corrected(row: RefusalFacts) -> dict[str, str]:
    """The bad settings with the advice taken."""
    kept = {key: value for key, value in row.bad.items() if key.lower() != row.key.lower()}
    if row.name:
        return kept | {row.name: row.bad[row.key]}
    return kept | ({row.key: row.instead} if row.instead else {})


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_a_row_speaks_in_its_releases_only_and_its_advice_ends_it(row: RefusalFacts) -> None:
    for release in slurm_releases():
        found = read(row, dict(row.bad), release)
        if row.holds_in(release):
            assert any(one.source == row.source and one.key in row.bad for one in found), release
            assert not read(row, corrected(row), release)
        else:
            assert not any(one.source == row.source and one.says in row.says for one in found)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_case_and_quotes_make_no_difference(row: RefusalFacts) -> None:
    release = row.until or NEWEST
    given = {key.upper(): f'"{value.lower()}"' for key, value in row.bad.items()}
    assert read(row, given, release)


@pytest.mark.parametrize("row", [row for row in ROWS if len(row.conditions) > 1], ids=name)
def test_what_a_service_sets_to_an_unknown_value_is_not_judged(row: RefusalFacts) -> None:
    for key, _, _ in row.conditions:
        given = {one: value for one, value in row.bad.items() if one.lower() != key.lower()}
        assert not list(refusals(row.file, given, row.until or NEWEST, {key.lower(): None}))


@pytest.mark.parametrize(
    ("file", "setting", "value", "says"),
    [
        ("slurm.conf", "KillWait", "65535", ""),
        ("slurm.conf", "KillWait", "65536", "greater than 65535"),
        ("slurm.conf", "KillWait", "-1", "less than zero"),
        ("slurm.conf", "KillWait", "1m", "not a valid number"),
        ("slurm.conf", "KillWait", "INFINITE", ""),
        ("slurm.conf", "MaxJobCount", "100k", ""),
        ("slurm.conf", "MaxJobCount", "4294967296", "greater than 4294967295"),
        ("slurm.conf", "DefMemPerNode", "100G", "not a valid number"),
        ("slurm.conf", "DefMemPerNode", "100000", ""),
        ("slurm.conf", "TrackWCKey", "up", ""),
        ("slurm.conf", "TrackWCKey", "on", "not a valid option"),
        ("slurm.conf", "Killwaits", "60", "unrecognized key"),
        ("NodeName", "RealMemory", "1900G", "not a valid number"),
        ("NodeName", "Weight", "1.5", "not a valid number"),
        ("PartitionName", "GraceTime", "2-0", "not a valid number"),
        ("PartitionName", "Hidden", "maybe", "not a valid option"),
        ("cgroup.conf", "ConstrainCores", "yes", ""),
        ("cgroup.conf", "ConstrainCores", "always", "not a valid option"),
        ("slurmdbd.conf", "PurgeJobsAfter", "1", "unrecognized key"),
    ],
)
def test_values_of_each_type(file: SlurmFile, setting: str, value: str, says: str) -> None:
    found = list(refusals(file, {setting: value}, NEWEST))
    assert [one.key for one in found] == ([setting] if says else [])
    assert all(says in one.says for one in found)


def test_a_name_that_is_mistyped_is_told_the_nearest_and_one_of_another_release_is_not() -> None:
    (mistyped,) = refusals("slurm.conf", {"KillWeight": 60}, NEWEST)
    (later,) = refusals("slurm.conf", {"MetricsParameters": "ignore_private_data"}, "25.11")
    assert (mistyped.name, later.name) == ("KillWait", "")


def test_every_parameter_is_known_in_its_releases_only() -> None:
    for key in slurm_keys("slurm.conf").values():
        for release in slurm_releases():
            found = [one.says for one in refusals("slurm.conf", {key.name: "1"}, release)]
            unknown = any("unrecognized key" in says for says in found)
            assert unknown is not key.known_in(release), (key.name, release)


def test_a_defunct_parameter_is_reported_and_ends_nothing() -> None:
    (before,) = [list(refusals("slurm.conf", {"PowerPlugin": "power/none"}, "23.11"))]
    (found,) = refusals("slurm.conf", {"PowerPlugin": "power/none"}, "25.11")
    assert not before and not found.ends and "defunct" in found.says


def test_an_unknown_release_is_not_judged() -> None:
    assert not list(refusals("slurm.conf", {"NoSuchThing": "1"}, "27.11"))
