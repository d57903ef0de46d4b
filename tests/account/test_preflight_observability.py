"""preflight of what exists of Prometheus, Grafana and the topic of alerts."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from hyperpod_service import answer, refusal
from preflight_account import NOW, OWNER, World, ask, shipped

from ultracluster.account.preflight import observability, quotas
from ultracluster.config.observability import Alerts, ExistingWorkspace, Grafana, Observability
from ultracluster.config.storage import ExistingKey

pytestmark = pytest.mark.usefixtures("aws_account")

ABSENT = f"arn:aws:aps:us-west-2:{OWNER}:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
SERVICES = ["aps", "budgets", "cloudwatch", "events"]


def world(**wanted: Any) -> World:
    return World(shipped("dev", observability=Observability(**wanted)))


def level(there: World) -> str:
    (row,) = ask(observability, there).values()
    return row.level


def test_what_is_made_is_not_looked_for() -> None:
    assert ask(observability, world()) == {}


def test_a_workspace_that_is_there() -> None:
    arn = boto3.client("amp", "us-west-2").create_workspace()["arn"]
    assert level(world(workspace=ExistingWorkspace(arn=arn))) == "green"


def test_a_workspace_of_another_region_is_asked_for_there() -> None:
    arn = boto3.client("amp", "eu-west-1").create_workspace()["arn"]
    assert level(world(workspace=ExistingWorkspace(arn=arn))) == "green"


def test_a_workspace_that_is_not_there_and_one_of_another_account() -> None:
    assert level(world(workspace=ExistingWorkspace(arn=ABSENT))) == "red"
    theirs = ABSENT.replace(OWNER, "444455556666")
    assert level(world(workspace=ExistingWorkspace(arn=theirs))) == "unknown"


def topic(services: list[str], key: str = "") -> World:
    sns = boto3.client("sns", "us-west-2")
    arn = sns.create_topic(Name="alerts")["TopicArn"]
    allowed = [
        {
            "Effect": "Allow",
            "Principal": {"Service": f"{name}.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": arn,
        }
        for name in services
    ]
    sns.set_topic_attributes(
        TopicArn=arn, AttributeName="Policy", AttributeValue=json.dumps({"Statement": allowed})
    )
    if key:
        sns.set_topic_attributes(TopicArn=arn, AttributeName="KmsMasterKeyId", AttributeValue=key)
    return world(alerts=Alerts(topic_arn=arn), monthly_budget_usd=100.0)


def test_a_topic_lets_in_who_publishes() -> None:
    assert level(topic(SERVICES)) == "green"
    (row,) = ask(observability, topic(["aps", "events"])).values()
    assert row.level == "yellow"
    assert "cloudwatch.amazonaws.com, budgets.amazonaws.com" in row.found


def test_a_topic_with_the_key_of_sns_lets_nobody_publish() -> None:
    assert level(topic(SERVICES, key="alias/aws/sns")) == "red"


def test_a_topic_that_is_not_there() -> None:
    arn = f"arn:aws:sns:us-west-2:{OWNER}:nothing"
    assert level(world(alerts=Alerts(topic_arn=arn))) == "red"


@pytest.mark.parametrize(("services", "expected"), [(SERVICES, "green"), (["logs"], "red")])
def test_a_key_that_exists_lets_in_who_publishes(services: list[str], expected: str) -> None:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": [f"{name}.amazonaws.com" for name in services]},
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
        "Resource": "*",
    }
    kms = boto3.client("kms", "us-west-2")
    arn = kms.create_key(Policy=json.dumps({"Statement": [statement]}))["KeyMetadata"]["Arn"]
    there = world(monthly_budget_usd=100.0)
    storage = there.environment.storage.model_copy(update={"key": ExistingKey(arn=arn)})
    there.environment = there.environment.model_copy(update={"storage": storage})
    assert level(there) == expected


def grafana(reply: Any) -> World:
    there = world(grafana=Grafana(workspace_id="g-1234567890"))
    answer(there.account.client("grafana"), "DescribeWorkspace", reply)
    return there


def described(**changes: Any) -> Any:
    found = {
        "authentication": {"providers": ["AWS_SSO"]},
        "created": NOW,
        "modified": NOW,
        "dataSources": [],
        "endpoint": "g-1234567890.grafana-workspace.us-west-2.amazonaws.com",
        "grafanaVersion": "10.4",
        "id": "g-1234567890",
        "status": "ACTIVE",
        **changes,
    }
    return lambda _: {"workspace": found}


def test_a_grafana_that_is_there_in_a_version_that_takes_the_dashboards() -> None:
    assert {row.level for row in ask(observability, grafana(described())).values()} == {"green"}
    assert (
        ask(observability, grafana(described(grafanaVersion="9.4")))["Grafana g-1234567890 version"].level
        == "red"
    )
    assert level(grafana(described(status="DELETING"))) == "red"
    assert level(grafana(described(status="UNHEARD_OF"))) == "unknown"


def test_a_grafana_that_is_not_there() -> None:
    def refuse(_: Any) -> Any:
        raise refusal("ResourceNotFoundException")

    assert level(grafana(refuse)) == "red"


@pytest.mark.parametrize(("there", "expected"), [(True, "green"), (False, "yellow")])
def test_a_new_grafana_asks_for_identity_center(there: bool, expected: str) -> None:
    asked = world(grafana=Grafana())
    found = [{"InstanceArn": "arn:aws:sso:::instance/ssoins-1234567890abcdef"}] if there else []
    answer(asked.account.client("sso-admin"), "ListInstances", lambda _: {"Instances": found})
    assert level(asked) == expected
    assert ask(observability, world(grafana=Grafana(authentication="SAML"))) == {}


def test_workspaces_of_others_count_against_the_quota() -> None:
    amp = boto3.client("amp", "us-west-2")
    amp.create_workspace()
    amp.create_workspace(tags={"ultracluster:environment": "dev"})
    row = ask(quotas, world())["aps: Workspaces per region per account"]
    assert (row.level, "in use 1" in row.found) == ("green", True)
