"""Who watches the account: each is asked, warns, and never stops a deploy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from preflight_account import World, rows_of, shipped
from project import ROOT

from ultracluster.account.preflight import Row, watch

WHAT = ["CloudTrail", "GuardDuty", "AWS Config"]


@pytest.fixture
def world(aws_account: None) -> World:
    return World(shipped("dev"))


def ask(world: World) -> dict[str, Row]:
    return {row.what: row for row in rows_of(watch, world)}


def test_an_account_that_is_watched(world: World) -> None:
    rows = ask(world)
    assert list(rows) == WHAT and {row.level for row in rows.values()} == {"green"}
    assert rows["CloudTrail"].found == "trail organization logs what is done in us-west-2"


def nothing(world: World) -> None:
    world.trails, world.detectors, world.recorders = {}, {}, {}


def switched_off(world: World) -> None:
    world.trails, world.detectors, world.recorders = {"a": False, "b": False}, {"d": "DISABLED"}, {"r": False}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (nothing, ["no trail logs what is done in us-west-2", "is off in", "has no recorder in"]),
        (switched_off, ["a, b do not log", "its detector in us-west-2 is DISABLED", "is stopped"]),
    ],
)
def test_what_is_off_warns(world: World, change: Callable[[World], None], found: list[str]) -> None:
    change(world)
    rows = ask(world)
    assert [row.level for row in rows.values()] == ["yellow"] * 3
    assert all(part in row.found for part, row in zip(found, rows.values(), strict=True))
    assert all("docs/security.md, What the account must have" in row.do for row in rows.values())


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ThrottlingException", "ResourceNotFoundException"]
)
def test_what_cannot_be_asked_is_not_off(world: World, code: str) -> None:
    world.refuse("cloudtrail", "DescribeTrails", code)
    world.refuse("guardduty", "ListDetectors", code)
    world.refuse("config", "DescribeConfigurationRecorderStatus", code)
    rows = ask(world).values()
    assert [row.level for row in rows] == ["unknown"] * 3
    assert not any(row.unread for row in rows), "it would count towards --strict"


def test_a_trail_that_only_the_organization_may_read(world: World) -> None:
    world.refuse("cloudtrail", "GetTrailStatus", "AccessDeniedException", "not authorized")
    assert ask(world)["CloudTrail"].level == "unknown"


def test_the_page_has_the_section() -> None:
    page, _, section = watch.PAGE.partition(", ")
    assert f"## {section}" in (ROOT / page).read_text()
