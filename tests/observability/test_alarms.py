"""Alarms: what they watch, when they speak, and that each names the environment. Thresholds are worked out
here once more, from the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from templates import Synthesised, templates_alone
from watching import properties, watched, watching  # noqa: F401 - a fixture

from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.observability.log_patterns import log_watches, namespace

Get = Callable[[str], Synthesised]


def by_name(made: Synthesised) -> dict[str, dict[str, Any]]:
    return {one["AlarmName"]: one for one in properties(made, "AWS::CloudWatch::Alarm").values()}


def dimensions(alarm: dict[str, Any]) -> dict[str, str]:
    return {one["Name"]: one["Value"] for one in alarm["Dimensions"]}


@pytest.mark.parametrize("name", ["dev", "hyperpod-eks-p5", "parallelcluster-p5", "pcs-p6-b200", "eks-p5en"])
def test_each_alarm_tells_the_topic_and_names_the_environment(
    watching: Get,  # noqa: F811
    name: str,
) -> None:
    made = watching(name)
    for alarm, one in by_name(made).items():
        assert alarm.startswith(f"{name}-")
        assert [action for action in one["AlarmActions"] if action.startswith("Topic")] == one["AlarmActions"]
        text = one["AlarmDescription"]
        assert text.startswith(f"Ultracluster {name}: ")
        assert len(text) <= 300
        assert one["TreatMissingData"] == ("breaching" if alarm.endswith("silent") else "notBreaching")


def test_the_fullest_disk_of_lustre_is_weighed_against_the_capacity_of_the_file(watching: Get) -> None:  # noqa: F811
    alarm = by_name(watching("dev"))["dev-lustre-full"]
    lustre = watched("dev").lustre
    assert lustre and lustre.capacity_gib
    reckoned, *of = alarm["Metrics"]
    values = {one["Id"]: one["MetricStat"] for one in of}
    assert {one["Metric"]["MetricName"] for one in values.values()} == {"PhysicalDiskUsage"}
    assert {one["Period"] for one in values.values()} == {60}
    disks = 4
    usage = {"fullest": 0.95 * lustre.capacity_gib * 2**30 / disks, "disks": disks}
    expression = reckoned["Expression"]
    assert eval(expression, {"__builtins__": {}}, usage) == pytest.approx(95)  # noqa: S307
    assert alarm["Threshold"] < 95
    usage["fullest"] *= 0.5
    assert eval(expression, {"__builtins__": {}}, usage) < alarm["Threshold"]  # noqa: S307


def test_a_file_system_without_a_known_capacity_has_no_alarm_on_it() -> None:
    known = watched("dev")
    existing = {
        "deployment": "existing",
        "id": "fs-0123456789abcdef0",
        "dns_name": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
        "mount_name": "abcdefgh",
        "security_group_id": "sg-0123456789abcdef0",
    }
    changed = known.environment.model_dump()
    changed["storage"]["lustre"] = existing
    cluster = resolve(Environment.model_validate(changed))
    assert cluster.lustre and not cluster.lustre.capacity_gib


def test_changes_that_wait_for_s3_are_watched_where_folders_are_tied_to_it(watching: Get) -> None:  # noqa: F811
    tied = [
        name for name in ("dev", "pcs-p6-b200", "eks-p5en") if watched(name).environment.data_repositories
    ]
    assert tied, "some shipped environment has associations"
    for name in ("dev", "pcs-p6-b200", "eks-p5en"):
        late = {alarm for alarm in by_name(watching(name)) if alarm.endswith("-late")}
        expected = {f"{name}-lustre-autoexport-late", f"{name}-lustre-autoimport-late"}
        assert late == (expected if name in tied else set())
    alarm = by_name(watching(tied[0]))[f"{tied[0]}-lustre-autoexport-late"]
    assert dimensions(alarm) == {"FileSystemId": "fs-0123456789abcdef0", "Publisher": "AutoExport"}


def test_a_prometheus_workspace_is_watched_from_outside(watching: Get) -> None:  # noqa: F811
    alarms = by_name(watching("dev"))
    silent = alarms["dev-prometheus-silent"]
    assert dimensions(silent) == {
        "Type": "Resource",
        "ResourceId": "ws-1",
        "Resource": "IngestionRate",
        "Service": "Prometheus",
        "Class": "None",
    }
    assert silent["Period"] * silent["EvaluationPeriods"] == 1800
    assert alarms["dev-prometheus-series"]["Threshold"] == 1_600_000, "80 % of max_series"
    (sql,) = alarms["dev-prometheus-samples-discarded"]["Metrics"]
    assert (
        sql["Expression"] == "SELECT SUM(DiscardedSamples) FROM \"AWS/Prometheus\" WHERE Workspace = 'ws-1'"
    )


@pytest.mark.parametrize("name", ["dev", "pcs-p6-b200"])
def test_what_logs_count_has_an_alarm(watching: Get, name: str) -> None:  # noqa: F811
    counted = {
        (one["Namespace"], one["MetricName"])
        for one in by_name(watching(name)).values()
        if one.get("Namespace", "").startswith("Ultracluster/")
    }
    cluster = watched(name)
    assert counted == {(namespace(cluster), watch.metric) for watch in log_watches(cluster)}


def test_parallelcluster_counts_by_itself_and_is_only_listened_to(watching: Get) -> None:  # noqa: F811
    alarm = by_name(watching("parallelcluster-p5"))["parallelcluster-p5-lifecycle-failures"]
    reckoned, *of = alarm["Metrics"]
    assert reckoned["Expression"] == "SUM(METRICS())"
    assert len(alarm["Metrics"]) <= 11
    assert {one["MetricStat"]["Metric"]["Dimensions"][0]["Value"] for one in of} == {"parallelcluster-p5"}


def test_no_alarm_on_metric_math_has_more_metrics_than_cloudwatch_takes(watching: Get) -> None:  # noqa: F811
    for name in ("dev", "hyperpod-eks-p5", "parallelcluster-p5", "pcs-p6-b200", "eks-p5en"):
        for alarm in by_name(watching(name)).values():
            assert sum("MetricStat" in one for one in alarm.get("Metrics", [])) <= 10


def test_without_metrics_of_nodes_there_are_alarms_and_events_all_the_same() -> None:
    made = templates_alone(watched("dev", kind="cloudwatch").environment)
    alarms = {
        one["Properties"]["AlarmName"]
        for one in made["dev-alarms"]["Resources"].values()
        if one["Type"] == "AWS::CloudWatch::Alarm"
    }
    assert "dev-lustre-full" in alarms and "dev-health-events" in alarms
    assert not [name for name in alarms if "prometheus" in name]
    kinds = {one["Type"] for one in made["dev-observability"]["Resources"].values()}
    assert {"AWS::Events::Rule", "AWS::SNS::Topic", "AWS::Budgets::Budget"} <= kinds
    assert not [kind for kind in kinds if kind.startswith(("AWS::APS", "AWS::Grafana"))]
