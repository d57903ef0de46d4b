"""Each rule of EventBridge, tried by moto's matcher on events in the form that AWS documents: it fires on
what it is for, and on nothing else. moto's matcher is not AWS's, and knows nothing of ours."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any, cast

import pytest
from moto.events.models import EventPattern
from project import ROOT
from templates import Synthesised, cfn_lint
from watching import ACCOUNT, REGION, properties, resolved, watched, watching  # noqa: F401 - a fixture

from ultracluster.observability.event_table import SILENT, Watch, watches

Get = Callable[[str], Synthesised]
Event = dict[str, Any]
KINDS = ("dev", "hyperpod-eks-p5", "parallelcluster-p5", "pcs-p6-b200", "eks-p5en")
BLOCK = "cr-0123456789abcdef0"
STACKS = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/"


def event(source: str, kind: str, detail: dict[str, Any], resources: list[str] | None = None) -> Event:
    """An event in EventBridge's envelope."""
    return {
        "version": "0",
        "id": "12345678-1234-1234-1234-123456789012",
        "detail-type": kind,
        "source": source,
        "account": ACCOUNT,
        "time": "2026-11-22T10:00:00Z",
        "region": REGION,
        "resources": resources or [],
        "detail": detail,
    }


def stack(name: str, status: str) -> Event:
    """AWS CloudFormation User Guide, Stack Status Change event detail."""
    arn = f"{STACKS}{name}/1a2b3c4d-0000-1111-2222-333344445555"
    detail = {
        "stack-id": arn,
        "status-details": {"status": status, "status-reason": "No export named x found"},
        "client-request-token": "",
    }
    return event("aws.cloudformation", "CloudFormation Stack Status Change", detail, [arn])


def state(cluster: str, status: str) -> Event:
    """SageMaker Developer Guide, SageMaker HyperPod cluster state change."""
    detail = {
        "ClusterName": cluster,
        "ClusterArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghijkl",
        "ClusterStatus": status,
        "FailureMessage": "",
        "InstanceGroups": [
            {"InstanceGroupName": "gpu", "Status": "Failed", "CurrentCount": 1, "TargetCount": 2}
        ],
    }
    return event("aws.sagemaker", "SageMaker HyperPod Cluster State Change", detail)


def node_health(cluster: str, status: str) -> Event:
    """SageMaker Developer Guide, SageMaker HyperPod cluster node health."""
    detail = {
        "ClusterName": cluster,
        "InstanceId": "i-0123456789abcdef0",
        "Tags": {},
        "HealthSummary": {
            "HealthStatus": status,
            "HealthStatusReason": "HMA has detected fault type NvidiaErrorTerminate on this node.",
            "RepairAction": "Replace",
            "Recommendation": "Replace the node.",
        },
    }
    return event("aws.sagemaker", "SageMaker HyperPod Cluster Node Health Event", detail)


def hyperpod(cluster: str, level: str, resource: str) -> Event:
    """SageMaker Developer Guide, SageMaker HyperPod cluster events reference."""
    inner = {
        "EventId": "83ea0bb5-be77-45e8-a458-0a87f778a205",
        "ClusterName": cluster,
        "InstanceGroupName": "gpu",
        "ResourceType": resource,
        "EventTime": 1748794825350,
        "EventLevel": level,
        "Description": f"Instance creation in Cluster {cluster} and InstanceGroup gpu failed",
        "EventDetails": {"EventMetadata": {"Instance": {"FailureMessage": "no capacity"}}},
    }
    return event("aws.sagemaker", "SageMaker HyperPod Cluster Event", {"EventDetails": inner})


def health(code: str, category: str, *, service: str = "EC2", status: str = "open", **more: Any) -> Event:
    """AWS Health User Guide, AWS Health events Amazon EventBridge schema."""
    resources = more.pop("resources", ["i-0123456789abcdef0"])
    detail = {
        "eventArn": f"arn:aws:health:{REGION}::event/EC2/{code}/{code}_1",
        "service": service,
        "eventTypeCode": code,
        "eventTypeCategory": category,
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "startTime": "Thu, 27 Nov 2026 13:19:03 GMT",
        "statusCode": status,
        "eventRegion": REGION,
        "affectedEntities": [{"entityValue": one, "status": "PENDING"} for one in resources],
        "page": "1",
        "totalPages": "1",
        "backupEvent": "false",
        "affectedAccount": ACCOUNT,
    }
    return event("aws.health", "AWS Health Event", detail | more, resources)


def block(kind: str, block_id: str = BLOCK) -> Event:
    """Amazon EC2 User Guide, Monitor Capacity Blocks using EventBridge."""
    return event("aws.ec2", kind, {"capacity-reservation-id": block_id, "end-date": "2026-12-01T11:30:00Z"})


def reservation(state: str, reservation_id: str = BLOCK) -> Event:
    """Amazon EC2 User Guide, Monitor state changes for future-dated Capacity Reservations."""
    detail = {"capacity-reservation-id": reservation_id, "state": state.lower()}
    return event("aws.ec2", f"EC2 Capacity Reservation {state}", detail)


def spot(kind: str = "EC2 Spot Instance Interruption Warning") -> Event:
    """Amazon EC2 User Guide, Spot Instance interruption notices."""
    return event("aws.ec2", kind, {"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"})


def launch(group: str, kind: str = "EC2 Instance Launch Unsuccessful") -> Event:
    """Amazon EC2 Auto Scaling User Guide, event reference."""
    detail = {
        "StatusCode": "Failed",
        "AutoScalingGroupName": group,
        "StatusMessage": "We currently do not have",
    }
    return event("aws.autoscaling", kind, detail)


def alarm(name: str, value: str) -> Event:
    """Amazon CloudWatch User Guide, Alarm events and EventBridge."""
    detail = {"alarmName": name, "state": {"value": value, "reason": "Threshold Crossed"}}
    return event("aws.cloudwatch", "CloudWatch Alarm State Change", detail)


RETIRED = health("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "scheduledChange")
UNUSED = "AWS_EC2_ODCR_UNDERUTILIZATION_NOTIFICATION"

FIRES: dict[tuple[str, str], list[Event]] = {
    ("dev", "stacks"): [
        stack("dev-cluster", "UPDATE_ROLLBACK_IN_PROGRESS"),
        stack("dev-storage", "CREATE_FAILED"),
        stack("dev-observability", "DELETE_FAILED"),
    ],
    ("parallelcluster-p5", "stacks"): [stack("parallelcluster-p5", "ROLLBACK_IN_PROGRESS")],
    ("dev", "aws-health"): [
        RETIRED,
        health("AWS_FSX_OPERATIONAL_ISSUE", "issue", service="FSX"),
        health("AWS_EC2_MAINTENANCE_SCHEDULED", "scheduledChange", status="upcoming"),
        health("AWS_IAM_OPERATIONAL_ISSUE", "issue", service="IAM", eventRegion="global"),
    ],
    ("dev", "hyperpod-state"): [
        state("dev", "Failed"),
        state("dev", "RollingBack"),
        state("dev", "Deleting"),
    ],
    ("dev", "hyperpod-node-health"): [node_health("dev", "Unhealthy"), node_health("dev", "Degraded")],
    ("hyperpod-eks-p5", "hyperpod-node-health"): [node_health("hyperpod-eks-p5", "Unhealthy")],
    ("dev", "hyperpod-errors"): [
        hyperpod("dev", "Error", "Cluster"),
        hyperpod("dev", "Error", "InstanceGroup"),
    ],
    ("dev", "hyperpod-node-errors"): [hyperpod("dev", "Error", "Instance")],
    ("pcs-p6-b200", "capacity-block"): [
        block("Capacity Block Reservation Expiration Warning"),
        block("EC2 Capacity Block Reservation Expiration Warning"),
        block("Capacity Block Reservation Delivered"),
    ],
    ("pcs-p6-b200", "reservation-state"): [reservation("Delayed"), reservation("Expired")],
    ("pcs-p6-b200", "reservation-unused"): [
        health(f"{UNUSED}_1_MONTH", "accountNotification", resources=[BLOCK])
    ],
    ("spot", "spot-interruption"): [
        spot(),
        spot("EC2 Interruptible Capacity Reservation Instance Interruption Warning"),
    ],
    ("lent", "reservation-interruption"): [
        # Amazon EC2 User Guide, Monitor interruptible Capacity Reservations with EventBridge and CloudTrail
        spot("EC2 Capacity Reservation Instance Interruption Warning"),
        spot("EC2 Interruptible Capacity Reservation Instance Interruption Warning"),
    ],
    ("eks-p5en", "launch-failures"): [launch("eks-system-8ac5c2f5-1111-2222-3333-444455556666")],
    ("parallelcluster-p5", "head-node"): [alarm("parallelcluster-p5-HeadNode", "ALARM")],
}
"""What each rule is for, by environment and name."""

SILENT_ON: dict[tuple[str, str], list[Event]] = {
    ("dev", "stacks"): [
        stack("dev-cluster", "UPDATE_COMPLETE"),
        stack("dev-cluster", "ROLLBACK_COMPLETE"),
        stack("dev-eu-cluster", "CREATE_FAILED"),
        stack("dev-cluster-of-others", "CREATE_FAILED"),
        stack("other", "CREATE_FAILED"),
    ],
    ("parallelcluster-p5", "stacks"): [stack("parallelcluster-p5-eu", "CREATE_FAILED")],
    ("dev", "aws-health"): [
        health("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "scheduledChange", status="closed"),
        health("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "scheduledChange", eventRegion="eu-west-1"),
        health("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "scheduledChange", backupEvent="true"),
        health("AWS_REDSHIFT_ISSUE", "issue", service="REDSHIFT"),
        health("AWS_EC2_NEWS", "accountNotification"),
    ],
    ("dev", "hyperpod-state"): [state("dev", "InService"), state("dev", "Updating"), state("prod", "Failed")],
    ("dev", "hyperpod-node-health"): [node_health("dev", "Healthy"), node_health("prod", "Unhealthy")],
    ("dev", "hyperpod-errors"): [
        hyperpod("dev", "Info", "Cluster"),
        hyperpod("dev", "Warn", "InstanceGroup"),
        hyperpod("dev", "Error", "Instance"),
        hyperpod("prod", "Error", "Cluster"),
    ],
    ("dev", "hyperpod-node-errors"): [
        hyperpod("dev", "Error", "Cluster"),
        hyperpod("dev", "Info", "Instance"),
        hyperpod("prod", "Error", "Instance"),
    ],
    ("pcs-p6-b200", "capacity-block"): [
        block("Capacity Block Reservation Expiration Warning", "cr-0fedcba9876543210"),
        reservation("Active"),
    ],
    ("pcs-p6-b200", "reservation-state"): [
        reservation("Scheduled"),
        reservation("Expired", "cr-0fedcba9876543210"),
        block("Capacity Block Reservation Delivered"),
    ],
    ("pcs-p6-b200", "reservation-unused"): [
        health(UNUSED, "accountNotification", resources=["cr-0fedcba9876543210"]),
        RETIRED,
    ],
    ("spot", "spot-interruption"): [spot("EC2 Instance Rebalance Recommendation")],
    ("lent", "reservation-interruption"): [
        spot(),
        spot("EC2 Interruptible Capacity Reservation Allocation Reclamation Completed"),
    ],
    ("eks-p5en", "launch-failures"): [
        launch("web"),
        launch("eks-system-1", kind="EC2 Instance Launch Successful"),
    ],
    ("parallelcluster-p5", "head-node"): [
        alarm("parallelcluster-p5-HeadNode", "OK"),
        alarm("parallelcluster-p5-HeadNode-Cpu", "ALARM"),
        alarm("other-HeadNode", "ALARM"),
    ],
}


TAKEN_BACK = {"spot": {"kind": "spot"}, "lent": {"kind": "reservation", "id": BLOCK, "interruptible": True}}
"""Capacity that ends at two minutes' notice."""


def table(name: str) -> dict[str, Watch]:
    """The rules of an environment, by name; `spot` and `lent` are what no shipped environment is."""
    if name not in TAKEN_BACK:
        return {watch.name: watch for watch in watches(watched(name), stacks=STACKS)}
    cluster = watched("parallelcluster-p5")
    groups = copy.deepcopy(cluster.environment.model_dump())["node_groups"]
    for group in groups.values():
        if group["role"] == "compute":
            group["capacity"] = TAKEN_BACK[name]
    return {
        watch.name: watch for watch in watches(watched("parallelcluster-p5", groups=groups), stacks=STACKS)
    }


def fires(watch: Watch, on: Event) -> bool:
    return EventPattern.load(json.dumps(watch.pattern)).matches_event(cast("Any", on))


@pytest.mark.parametrize("at", FIRES, ids="/".join)
def test_a_rule_fires_on_what_it_is_for(at: tuple[str, str]) -> None:
    watch = table(at[0])[at[1]]
    for one in FIRES[at]:
        assert fires(watch, one), one


@pytest.mark.parametrize("at", SILENT_ON, ids="/".join)
def test_a_rule_is_silent_on_everything_else(at: tuple[str, str]) -> None:
    watch = table(at[0])[at[1]]
    for one in SILENT_ON[at]:
        assert not fires(watch, one), one


@pytest.mark.parametrize("name", [*KINDS, *TAKEN_BACK])
def test_every_rule_of_every_orchestrator_has_events_that_it_was_tried_on(name: str) -> None:
    tried = {watch for _, watch in FIRES} & {watch for _, watch in SILENT_ON}
    assert not table(name).keys() - tried


@pytest.mark.parametrize("at", [at for at in FIRES if not table(at[0])[at[1]].counted], ids="/".join)
def test_a_message_names_the_cluster_what_happened_and_what_to_run(at: tuple[str, str]) -> None:
    watch = table(at[0])[at[1]]
    assert set(re.findall(r"<(\w+)>", watch.text)) >= set(watch.paths), "a path that is not told"
    said = watch.text
    for one in FIRES[at]:
        for word, path in watch.paths.items():
            value: Any = one
            for part in path.removeprefix("$.").split("."):
                assert part in value, f"{path} is not in the event"
                value = value[part]
            said = said.replace(f"<{word}>", str(value))
    assert said.startswith("Ultracluster ") and "Run: ultracluster " in said
    assert "<" not in said and "\n" not in said
    assert len(said) < 400


def test_hundreds_of_events_of_nodes_become_one_alarm(watching: Get) -> None:  # noqa: F811
    made = watching("dev")
    rules = properties(made, "AWS::Events::Rule")
    (single,) = (one for name, one in rules.items() if "HyperpodNodeErrors" in name)
    (target,) = single["Targets"]
    assert "SingleEvents" in target["Arn"]
    assert "InputTransformer" not in target, "machines get the whole event"
    alarms = properties(made, "AWS::CloudWatch::Alarm")
    (told,) = (one for name, one in alarms.items() if "HyperpodNodeErrorsAlarm" in name)
    assert (told["Namespace"], told["MetricName"]) == ("AWS/Events", "Invocations")
    assert told["AlarmActions"] != [target["Arn"]]


@pytest.mark.parametrize("name", KINDS)
def test_rules_and_alarms_pass_every_judge(watching: Get, name: str) -> None:  # noqa: F811
    made = watching(name)
    assert not made.findings
    problems = cfn_lint(made.files, REGION)
    assert not problems, problems
    for rule in properties(made, "AWS::Events::Rule").values():
        # Amazon EventBridge User Guide, quotas: size of an event pattern
        assert len(json.dumps(resolved(rule["EventPattern"]), separators=(",", ":"))) <= 2048


def stack_rules(name: str, more: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Watch], list[str]]:
    """Rules about stacks for an environment of this name with further stacks, and the stacks' names."""
    cluster = watched("hyperpod-eks-p5")
    renamed = cluster.environment.model_copy(update={"name": name})
    names = (*renamed.stack_names, *(renamed.stack_name(f"further-part-{one}") for one in range(more)))  # type: ignore[arg-type]
    monkeypatch.setattr(type(renamed), "stack_names", names)
    other = type(cluster)(**{**vars(cluster), "environment": renamed})
    stacks = "arn:aws-us-gov:cloudformation:us-gov-west-1:111122223333:stack/"
    return [one for one in watches(other, stacks=stacks) if one.name.startswith("stacks")], list(names)


@pytest.mark.parametrize(("length", "more", "rules"), [(15, 0, 1), (30, 0, 1), (40, 4, 2), (40, 40, 5)])
def test_stacks_of_any_number_and_length_of_name_fit_into_patterns(
    length: int, more: int, rules: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, names = stack_rules("n" * length, more, monkeypatch)
    ends = [
        one["prefix"].partition(":stack/")[2] for rule in found for one in rule.pattern["detail"]["stack-id"]
    ]

    assert ends == [f"{name}/" for name in names], "each once, and no stack of another environment"
    assert [one.name for one in found] == ["stacks", *(f"stacks-{number}" for number in range(2, rules + 1))]
    assert all(len(json.dumps(one.pattern, separators=(",", ":"))) <= 2048 for one in found)


def test_where_there_is_no_event_it_is_said_what_tells_instead() -> None:
    page = " ".join((ROOT / "docs" / "events.md").read_text(encoding="utf-8").split())
    for silent in SILENT:
        assert silent.what in page, silent.what
        assert silent.instead in page, silent.instead
    for name in (*KINDS, "spot"):
        for watch in table(name).values():
            assert f"`{watch.name}`" in page, watch.name
            assert watch.source.partition(";")[0] in page
