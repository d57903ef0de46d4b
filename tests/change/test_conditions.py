"""Conditions of facts: each with a change that it is about and one that it is not, made from the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from blast_radius_support import resource
from hypothesis import given
from hypothesis import strategies as st

import ultracluster.change
from tools.fact_contradictions import contradictions
from ultracluster.change import Change, blast_radius, conditions
from ultracluster.change.changes import MISSING
from ultracluster.change.conditions import Scope, filled, value_of

Flat = dict[str, Any]
TABLE = Path(ultracluster.change.__file__).with_name("change_facts.json")
FACTS = json.loads(TABLE.read_text(encoding="utf-8"))["facts"]
CONDITIONAL = [fact for fact in FACTS if "cases" in fact]
APART = [fact for fact in FACTS if "apart" in fact]
NO_CASES = {"UpgradePolicy.SupportType"}
"""What depends on the day: a test of its own."""


def named(fact: dict[str, Any]) -> str:
    return f"{fact['type']} {fact.get('path', 'apart')}: {fact['reason'][:40]}"


def nested(flat: Flat) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for path, value in flat.items():
        *above, last = path.split(".")
        here = whole
        for step in above:
            here = here.setdefault(step, {})
        here[last] = value
    return whole


def kin_type(condition: Any) -> str:
    if isinstance(condition, list):
        if condition[:1] == ["relative"]:
            return condition[1]
        return next(filter(None, map(kin_type, condition)), "")
    return ""


def judged(fact: dict[str, Any], sides: list[Flat]) -> list[Change]:
    shared, kin = fact["cases"].get("with", {}), fact["cases"].get("kin")
    made: list[dict[str, Any]] = []
    for side in sides:
        resources = {"R": resource(fact["type"], nested({**shared, **side}))}
        if kin:
            resources["Kin"] = resource(kin_type(fact["if"]), nested(kin))
        made.append({"s": {"Resources": resources}})
    return [one for one in blast_radius(*made) if one.logical_id == "R"]


def says(fact: dict[str, Any], change: Change) -> bool:
    """Whether a reason has the longest part of the fact's that holds no value."""
    return max(fact["reason"].replace("{", "}").split("}")[::2], key=len) in change.reason


def test_every_condition_has_cases() -> None:
    assert {
        fact["path"] for fact in FACTS if "if" in fact and not fact.keys() & {"cases", "apart"}
    } == NO_CASES


@pytest.mark.parametrize("fact", CONDITIONAL, ids=named)
def test_what_a_condition_is_about_gets_its_verdict_its_reason_and_an_order(fact: dict[str, Any]) -> None:
    about = [one for one in judged(fact, fact["cases"]["fits"]) if says(fact, one)]

    assert about
    for one in about:
        assert one.verdict == fact["verdict"]
        assert "{" not in one.reason
        assert bool(one.order) == one.refused


@pytest.mark.parametrize("fact", CONDITIONAL, ids=named)
def test_what_a_condition_is_not_about_does_not(fact: dict[str, Any]) -> None:
    changes = judged(fact, fact["cases"]["not"])

    assert changes
    assert not [one for one in changes if says(fact, one)]


@pytest.mark.parametrize("fact", CONDITIONAL, ids=named)
def test_equal_values_are_no_change(fact: dict[str, Any]) -> None:
    for side in (*fact["cases"]["fits"], {}):
        assert judged(fact, [side, side]) == []


@pytest.mark.parametrize("fact", CONDITIONAL, ids=named)
def test_where_nothing_was_before_only_what_must_not_be_added_is_refused(fact: dict[str, Any]) -> None:
    changes = judged(fact, [{}, fact["cases"]["fits"][1]])

    of_old = (
        str(fact["if"])
        .replace("'absent', 'old", "")
        .replace("'default', 'near-old", "")
        .replace("'default', 'old", "")
    )
    if "its-old" not in of_old:
        assert not [one for one in changes if says(fact, one) and "old" in of_old]


@pytest.mark.parametrize("fact", CONDITIONAL, ids=named)
def test_values_that_only_the_account_knows_make_it_silent(fact: dict[str, Any]) -> None:
    """A parameter in place of each value: unknown is never no."""
    if "absent" in str(fact["if"]) or "changes" in str(fact["if"]):
        return
    unknown = [
        {path: {"Ref": f"P{number}"} for path in side} for number, side in enumerate(fact["cases"]["fits"])
    ]

    assert not [one for one in judged(fact, unknown) if says(fact, one)]


@pytest.mark.parametrize("fact", APART, ids=named)
def test_changes_that_need_deployments_of_their_own(fact: dict[str, Any]) -> None:
    kind = fact.get("if", ["=", "new.Any", "Any"])[2]
    shared = {"FileSystemType": kind} if "if" in fact else {}
    paths = list(fact["apart"])
    old, new = (dict.fromkeys(paths, number) for number in (100, 200))

    def changes(after: Flat) -> list[Change]:
        sides = (nested({**shared, **one}) for one in (old, after))
        return blast_radius(*({"s": {"Resources": {"R": resource(fact["type"], one)}}} for one in sides))

    together = changes(new)
    assert {one.path for one in together if says(fact, one)} == set(paths)
    assert {one.order for one in together if says(fact, one)} == {tuple(fact["apart"].values())}
    for path in paths:
        assert not [one for one in changes({**old, path: 200}) if says(fact, one)], path


def refused(kind: str, old: Flat, new: Flat) -> list[Change]:
    sides = ({"s": {"Resources": {"R": resource(kind, nested(one))}}} for one in (old, new))
    return [one for one in blast_radius(*sides) if one.refused]


@pytest.mark.parametrize(("day", "said"), [(date(2026, 11, 28), False), (date(2027, 2, 1), True)])
def test_extended_support_is_not_given_up_once_it_has_begun(
    monkeypatch: pytest.MonkeyPatch, day: date, said: bool
) -> None:
    monkeypatch.setattr(conditions, "today", lambda: day)
    old, new = ({"Version": "1.34", "UpgradePolicy.SupportType": one} for one in ("EXTENDED", "STANDARD"))

    assert bool(refused("AWS::EKS::Cluster", old, new)) is said


LUSTRE, ZFS, DB = "AWS::FSx::FileSystem", "AWS::FSx::FileSystem", "AWS::RDS::DBInstance"
EFA = {
    "FileSystemType": "LUSTRE",
    "LustreConfiguration.DeploymentType": "PERSISTENT_2",
    "LustreConfiguration.EfaEnabled": True,
    "LustreConfiguration.PerUnitStorageThroughput": 500,
}
TENTH = [
    (ZFS, {"FileSystemType": "OPENZFS"}, "StorageCapacity", int, 524288),
    (DB, {"Engine": "mysql"}, "AllocatedStorage", str, 65536),
]
"""With the largest capacity."""
SIZES = st.integers(1, 200_000)


def first_number(order: tuple[str, ...]) -> int:
    return int(next(word for word in order[0].split() if word.isdigit()))


@given(SIZES, SIZES)
def test_capacity_in_steps(old: int, new: int) -> None:
    """Refused is what is smaller or between two steps; what the order offers is not."""
    start, target = {**EFA, "StorageCapacity": old}, {**EFA, "StorageCapacity": new}
    found = refused(LUSTRE, start, target)

    assert bool(found) is (new < old or (new > old and new % 9600 != 0))
    if new > old and found:
        offered = first_number(found[0].order)
        assert new < offered < new + 9600
        assert refused(LUSTRE, start, {**EFA, "StorageCapacity": offered}) == []


@pytest.mark.parametrize(("kind", "shared", "path", "written", "end"), TENTH)
@given(old=SIZES, new=SIZES)
def test_growth_of_at_least_a_tenth(
    kind: str, shared: Flat, path: str, written: Callable[[int], Any], end: int, old: int, new: int
) -> None:
    old, new = min(old, 10 * end // 11), min(new, end)
    start = {**shared, path: written(old)}
    found = refused(kind, start, {**shared, path: written(new)})

    assert bool(found) is (new < old or (old < new and 10 * new < 11 * old))  # whole numbers: no rounding
    if new > old and found:
        assert refused(kind, start, {**shared, path: written(first_number(found[0].order))}) == []


@given(st.integers(20, 60), st.integers(20, 60))
def test_releases_one_at_a_time(old: int, new: int) -> None:
    """Each of the deployments that the order names is legal."""
    kind, start = "AWS::EKS::Cluster", {"Version": f"1.{old}"}
    found = refused(kind, start, {"Version": f"1.{new}"})

    assert bool(found) is (new < old or new > old + 1)
    if new > old and found:
        at = f"1.{old}"
        for step in found[0].order:
            following = step.split()[1].rstrip(":")
            assert refused(kind, {"Version": at}, {"Version": following}) == []
            at = following
        assert at == f"1.{new}"


SLURM = st.sampled_from(["23.11", "24.05", "24.11", "25.05", "25.11", "26.05"])


@given(SLURM, SLURM)
def test_releases_of_slurm_that_have_an_update(old: str, new: str) -> None:
    kind, path = "AWS::PCS::Cluster", "Scheduler.Version"
    found = refused(kind, {path: old}, {path: new})

    if new > old and found:
        at = old
        for step in found[0].order:
            following = step.split()[1].rstrip(",")
            assert refused(kind, {path: at}, {path: following}) == []
            at = following
        assert at == new
    assert not found or new != old


NOTHING = Scope((), MISSING, MISSING, {}, {})
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just({"Ref": "A"})


@given(VALUES, VALUES, st.sampled_from([fact for fact in FACTS if "if" in fact and "path" in fact]))
def test_any_two_values_can_be_judged(old: Any, new: Any, fact: dict[str, Any]) -> None:
    sides = (
        {"s": {"Resources": {"R": resource(fact["type"], nested({fact["path"]: one}))}}} for one in (old, new)
    )
    blast_radius(*sides)


def test_what_is_unknown_stays_unknown() -> None:
    for condition in (
        ["<", "old", 1],
        ["not", ["=", "new", 1]],
        ["minor", "new"],
        ["all", ["=", "old", 1], True],
    ):
        assert value_of(condition, NOTHING) is None
    assert value_of(["any", ["=", "old", 1], True], NOTHING) is True
    assert value_of(["all", ["=", "old", 1], False], NOTHING) is False


def test_values_in_a_sentence() -> None:
    assert filled("to {new} GiB", {"new": 48000.0}) == ["to 48000 GiB"]
    assert filled("release {each}", {"each": ["1.34", "1.35"]}) == ["release 1.34", "release 1.35"]
    assert filled("release {each}", {"each": None}) == []


def test_facts_do_not_contradict_each_other() -> None:
    assert contradictions(FACTS) == []


def test_a_contradiction_names_both_facts() -> None:
    one = next(fact for fact in CONDITIONAL if "10 percent, from" in fact["reason"])
    other = {**one, "verdict": "in place", "reason": "it grows", "source": "another page"}
    other["if"] = ["<", "old", "new"]
    (found,) = contradictions([one, other])

    assert one["reason"] in found and "it grows" in found and "another page" in found
    assert "read both pages again" in found
