"""Rules on observability, each broken and mended, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest
from observability_cases import SAML, WORKSPACE, asks, grafana
from project import ROOT
from ruamel.yaml import YAML
from rules_support import codes
from rules_table import cases, found, table_tests

from ultracluster.rules.sets import OBS

test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("observability"))


@pytest.mark.parametrize("base", ["dev", "pcs-p6-b200", "parallelcluster-p5", "eks-p5en", "hyperpod-eks-p5"])
@pytest.mark.parametrize("wanted", [asks(), grafana(), asks(grafana=SAML)], ids=["plain", "sso", "saml"])
def test_what_is_as_it_should_be_has_no_findings(base: str, wanted: dict[str, Any]) -> None:
    # some tie folders to S3 without a log: test_told
    assert [one for one in found(OBS, wanted, base) if one.code != "OBS033"] == []


def test_the_page_shows_what_has_no_findings() -> None:
    page = (ROOT / "docs" / "observability-setup.md").read_text(encoding="utf-8")
    shown = [YAML(typ="safe").load(text.split("```", 1)[0]) for text in page.split("```yaml\n")[1:]]
    assert len(shown) == 3
    for one in shown:
        asked = {"observability": {"alerts": {"emails": ["oncall@example.com"]}, **one["observability"]}}
        assert {finding.code for finding in found(OBS, asked, "dev")} <= {"OBS002"}


def test_where_nothing_is_asked_for_nothing_is_said() -> None:
    assert found(OBS, {}, "dev") == []


def test_of_a_region_that_authorities_do_not_agree_on_nothing_is_said() -> None:
    assert found(OBS, grafana() | {"region": "us-gov-west-1"}, "dev") == []


def test_a_workspace_may_be_of_another_region_and_account_where_no_other_arn_may() -> None:
    there = {"arn": WORKSPACE.format("us-east-1", "444455556666")}
    assert not codes(asks(workspace=there) | {"account": "111122223333"}) & {"ENV012", "ENV013"}
    topic = {"topic_arn": "arn:aws:sns:us-east-1:111122223333:alerts"}
    assert "ENV012" in codes(asks(alerts=topic))


def test_hyperpod_s_add_on_asked_for_as_before_is_left_alone() -> None:
    old = {"orchestrator.observability.workspace_arn": WORKSPACE.format("us-east-2", "111122223333")}
    assert found(OBS, old | {"observability": ...}, "hyperpod-eks-p5") == []
    logged = {"storage.lustre.log_level": "warn-error"}
    assert found(OBS, old | asks(kind="cloudwatch") | logged, "hyperpod-eks-p5") == []
