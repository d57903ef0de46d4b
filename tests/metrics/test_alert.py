"""Alerts as data: each fires, stays silent just below, and ends, by promtool; each has its runbook."""

from __future__ import annotations

from pathlib import Path

import pytest
from metrics_stand import VERSIONS, tools
from project import ROOT
from promtool_cases import EVERYTHING, FOLDER, cases, run
from rows import for_each

from ultracluster.catalog.metrics import metric
from ultracluster.metrics.alert import GROUPS, Alert, alerts, records
from ultracluster.metrics.expressions import names
from ultracluster.metrics.facts import HAVES

pytestmark = pytest.mark.slow

ALERTS = {alert.name: alert for alert in alerts()}
RECORDS = {record.name for record in records()}


@pytest.mark.parametrize("group", GROUPS)
def test_promtool_sees_each_alert_fire_stay_silent_and_end(group: str, tmp_path: Path) -> None:
    names_ = [alert.name for alert in ALERTS.values() if alert.group == group]

    assert names_
    assert run(tools().promtool, tmp_path, names_) == ""


def test_the_next_prometheus_sees_the_same(tmp_path: Path) -> None:
    """Windows of 3.x are open to the left, and hold one sample less."""
    assert run(tools(VERSIONS[1]).promtool, tmp_path, ALERTS) == ""


@pytest.mark.parametrize("alert", ALERTS)
def test_cases_show_it_firing_ending_and_just_below(alert: str) -> None:
    found = cases(alert)
    ends = [[bool(firing) for firing in case["at"].values()] for case in found]

    assert any(True in times and times[-1] is False and times[0] is False for times in ends), (
        "fires, then ends"
    )
    assert any(True not in times for times in ends), "a case in which it stays silent"


def test_every_file_of_cases_is_of_an_alert() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == ALERTS.keys()


@for_each("one", [*alerts(), *records()], ids=lambda one: one.name)
def test_every_metric_is_in_the_catalogue(one: Alert) -> None:
    for name in names(EVERYTHING.filled(one.expr)) - RECORDS:
        metric(name)


def test_what_alerts_need_is_something_that_a_cluster_may_have() -> None:
    assert {need for one in (*alerts(), *records()) for need in one.needs} <= HAVES.keys()


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_has_its_runbook(alert: str) -> None:
    assert (ROOT / "docs" / "runbooks" / f"{alert}.md").is_file()


def test_texts_are_in_plain_words() -> None:
    for alert in ALERTS.values():
        assert alert.summary.count("\n") == 0, alert.name
        assert len(alert.why.split()) > 8, f"{alert.name}: why this threshold and this duration?"
        assert "{{" in alert.summary or alert.scope == "cluster", f"{alert.name} names nothing that is hit"


def test_a_command_names_a_machine_as_aws_knows_it() -> None:
    """Nodes of ParallelCluster and PCS have names of Slurm's own, which `nodes list` cannot find."""
    runs = [
        alert.run for alert in ALERTS.values() if "nodes list" in alert.run or "nodes replace" in alert.run
    ]

    assert len(runs) > 10
    assert all(run.endswith(" <<machine>>") for run in runs)
    assert "instance_id" in EVERYTHING.filled("<<machine>>")
