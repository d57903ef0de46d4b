"""Remedies for what is deployed: whatever one writes into the file, AWS takes the change."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_support import changed, environment_data, loaded
from templates import templates_alone

from ultracluster.change import blast_radius
from ultracluster.config import InvalidEnvironmentError
from ultracluster.config.remedy import apply
from ultracluster.rules import check
from ultracluster.rules.deployed import as_deployed, is_deployed
from ultracluster.rules.eks import releases as eks_releases

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


def test_a_newer_release_than_the_package_knows_does_not_go_back() -> None:
    with as_deployed():
        (finding,) = [one for one in check(loaded(with_release("1.40"))) if one.code == "EKS001"]

    assert not finding.remedy.options and "update this package" in finding.remedy.note


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_remedy_for_a_shipped_environment_is_refused_once_it_is_deployed(name: str) -> None:
    """Its acknowledged warnings, with what they offer instead."""
    data = environment_data(name)
    before = templates_alone(loaded(data).environment)
    with as_deployed():
        made = offered(data)
    for other in made:
        try:
            after = templates_alone(loaded(other).environment)
        except InvalidEnvironmentError:  # it needs a further change, which another finding names
            continue
        assert [one.reason for one in blast_radius(before, after) if one.refused] == []
