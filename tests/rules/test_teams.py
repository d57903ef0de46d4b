"""Rules on teams, each broken and mended; and who schedules, with how many accelerators."""

from __future__ import annotations

import pytest
from rules_table import cases, found, table_tests

from ultracluster.config.teams import Team
from ultracluster.rules import check
from ultracluster.rules.sets import TEA

test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("teams"))


def test_a_team_is_judged_without_a_file() -> None:
    assert [(one.code, one.dotted) for one in check(Team(quota=16, limit=8))] == [("TEA003", "limit")]


@pytest.mark.parametrize("base", ["eks-p5en", "hyperpod-eks-p5", "prod", "pcs-p6-b200", "eks-trn2"])
def test_an_environment_without_teams_has_no_findings(base: str) -> None:
    assert found(TEA, {}, base) == []


def test_one_team_alone_may_be_root_on_its_files() -> None:
    assert found(TEA, {"teams": {"research": {"pod_security": "baseline"}}}, "eks-p5en") == []
