"""Remedies for what is deployed: whatever one writes into the file, AWS takes the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_support import changed, environment_data, loaded
from rules_table import judged
from templates import templates_alone

from tools.rule_examples import base_of, on_the_day, the_finding
from ultracluster.catalog.fixed_settings import FixedSetting, fixed_settings
from ultracluster.change import blast_radius
from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.remedy import Option, apply
from ultracluster.model import resolve
from ultracluster.rules import check
from ultracluster.rules.deployed import as_deployed, fixed, is_deployed
from ultracluster.rules.eks import releases as eks_releases
from ultracluster.rules.examples import applied, examples

RELEASES = ["1.31", "1.32", "1.33", "1.34", "1.35"]


def offered(data: Any) -> list[Any]:
    """The files that the remedies of the findings make of one."""
    return [apply(data, option) for one in check(loaded(data)) for option in one.remedy.options]


def version(data: Any) -> str:
    return data["orchestrator"]["kubernetes_version"]


def with_release(release: str) -> Any:
    return changed(environment_data("eks-p5en"), {"orchestrator.kubernetes_version": release})


def refused_versions(old: str, new: str) -> list[str]:
    def stack(release: str) -> Any:
        plane = {"Type": "AWS::EKS::Cluster", "Properties": {"Name": "c", "Version": release}}
        return {"s": {"Resources": {"Plane": plane}}}

    return [one.reason for one in blast_radius(stack(old), stack(new)) if one.refused]


@pytest.mark.parametrize("day", [date(2026, 11, 28), date(2027, 12, 3)])
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_that_is_offered_to_a_deployed_control_plane_is_taken(
    release: str, day: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eks_releases, "today", lambda: day)
    data = with_release(release)
    with as_deployed():
        made = [one for one in offered(data) if version(one) != release]

    assert [
        refused_versions(release, version(one)) for one in made if refused_versions(release, version(one))
    ] == []
    assert made or release == "1.35"


def test_a_new_environment_gets_the_newest_and_the_words_for_a_deployed_one() -> None:
    data = with_release("1.33")
    (finding,) = [one for one in check(loaded(data)) if one.code == "EKS012"]

    assert version(apply(data, finding.remedy.options[0])) == "1.36"
    assert "where it is deployed already, 1.34" in finding.remedy.note
    with as_deployed():
        assert is_deployed()
        (finding,) = [one for one in check(loaded(data)) if one.code == "EKS012"]
    assert version(apply(data, finding.remedy.options[0])) == "1.34"
    assert "up to 1.36, one with each deployment" in finding.remedy.note
    assert not is_deployed()


def test_an_error_was_never_deployed_so_its_remedy_corrects_the_file() -> None:
    data = changed(
        environment_data("dev"), {"network.cidr": "10.0.0.0/16", "network.node_cidr": "10.0.0.0/16"}
    )
    with as_deployed():
        (finding,) = [one for one in check(loaded(data)) if one.code == "NET004"]

    assert finding.blocks and finding.remedy.options


def test_a_newer_release_than_the_package_knows_does_not_go_back() -> None:
    with as_deployed():
        (finding,) = [one for one in check(loaded(with_release("1.40"))) if one.code == "EKS001"]

    assert not finding.remedy.options and "update this package" in finding.remedy.note


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_remedy_for_a_shipped_environment_is_refused_once_it_is_deployed(name: str) -> None:
    """Its acknowledged warnings, with what they offer instead."""
    data = environment_data(name)
    with as_deployed():
        made = offered(data)
    assert refusals(data, made) == []


def refusals(data: Any, made: list[Any]) -> list[str]:
    """Why AWS refuses files that are deployed over one."""
    if not made:
        return []
    before = templates_alone(loaded(data).environment)
    found: list[str] = []
    for other in made:
        try:
            after = templates_alone(loaded(other).environment)
        except InvalidEnvironmentError:  # it needs a further change, which another finding names
            continue
        found += [one.reason for one in blast_radius(before, after) if one.refused]
    return found


@dataclass(frozen=True)
class Deployable:
    """The bad lines of an example that are no error, so that they may be deployed."""

    code: str
    data: Any
    options: tuple[Option, ...]
    """All of the remedy."""
    refused: tuple[FixedSetting, ...]
    """What the facts of fixed settings say of them."""

    @property
    def settings(self) -> set[str]:
        """The keys that the remedy writes, by their last names."""
        return {
            next(part for part in reversed(one.path) if isinstance(part, str))
            for o in self.options
            for one in o
        }


@cache
def deployable() -> Mapping[str, Deployable]:
    made: dict[str, Deployable] = {}
    with on_the_day():
        for code, example in examples().items():
            data = applied(base_of(example), example.bad)
            findings = [] if example.where else judged(data)
            hit = the_finding(example, findings)
            if hit and hit.remedy.options and not any(one.blocks for one in findings):
                cluster = resolve(loaded(data).environment)
                rows = [row for option in hit.remedy.options for row in fixed(code, option, cluster)]
                made[code] = Deployable(code, data, hit.remedy.options, tuple(rows))
    return made


def left(one: Deployable) -> list[Any]:
    """The files that the remedy makes where the environment is deployed."""
    with on_the_day(), as_deployed():
        hit = the_finding(examples()[one.code], check(loaded(one.data)))
    assert hit
    words = " ".join(hit.instead.split())
    assert all(row.way in words for row in one.refused), (one.code, words)
    assert hit.remedy.options or hit.remedy.lacking
    return [apply(one.data, option) for option in hit.remedy.options]


@pytest.mark.slow
@pytest.mark.parametrize("row", fixed_settings(), ids=lambda row: str(row.settings or row.rules))
def test_each_fixed_setting_is_refused(row: FixedSetting) -> None:
    """By the judgement of changes, for one example at least."""
    of = [one for one in deployable().values() if row in one.refused]
    if not of:
        assert row.roles == ("controller",), "no remedy of a warning writes it"
        return
    with on_the_day():
        assert any(refusals(one.data, [apply(one.data, option) for option in one.options]) for one in of[:3])


@pytest.mark.slow
def test_a_remedy_of_a_key_that_may_be_fixed_is_never_refused() -> None:
    """Of each key that is fixed somewhere, what is still offered; words say what is not."""
    watched = {path.rpartition(".")[2] for row in fixed_settings() for path in row.settings}
    for one in deployable().values():
        made = left(one)
        assert len(made) < len(one.options) or not one.refused, one.code
        if one.settings & watched:
            assert refusals(one.data, made) == [], one.code


@pytest.mark.deep
def test_no_remedy_of_any_rule_is_refused() -> None:
    for one in deployable().values():
        assert refusals(one.data, left(one)) == [], one.code
