"""Log groups that services make or write to: how long, with which key, and what is counted in them."""

from __future__ import annotations

import json
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from cdk_nag import AwsSolutionsChecks
from templates import Synthesised, app_in, finish, templates_alone
from watching import ACCOUNT, REGION, properties, resolved, watched

from ultracluster.observability.log_groups import DATABASE_LOGS, add_service_logs
from ultracluster.observability.log_patterns import log_watches

ARN = {
    "dev": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghijkl",
    "pcs-p6-b200": f"arn:aws:pcs:{REGION}:{ACCOUNT}:cluster/pcs_abc123de45",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Synthesised]:
    found: dict[str, Synthesised] = {}
    for name, arn in ARN.items():
        folder = tmp_path_factory.mktemp(name)
        app = app_in(folder)
        stack = cdk.Stack(app, "Logs", env=cdk.Environment(account=ACCOUNT, region=REGION))
        add_service_logs(
            stack,
            watched(name, log_retention_days=180),
            key=cast("kms.IKey", kms.Key(stack, "Key", enable_key_rotation=True)),
            service_id=arn.rpartition("/")[2],
            service_arn=arn,
            removal_policy=RemovalPolicy.DESTROY,
        )
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
        found[name] = finish(app, folder)
    return found


def calls(one: Synthesised) -> list[dict[str, Any]]:
    """What the custom resources ask, in the order in which they depend on each other."""
    resources = {name.partition("/")[2]: resource for name, resource in one.resources("Custom::AWS").items()}
    order = sorted(resources.values(), key=lambda resource: len(resource.get("DependsOn", [])))
    return [json.loads(resolved(resource["Properties"]["Create"])) for resource in order]


def test_hyperpods_group_gets_a_key_and_an_end_whoever_made_it(made: dict[str, Synthesised]) -> None:
    one = made["dev"]
    assert not one.findings
    asked = calls(one)
    assert [call["action"] for call in asked] == ["createLogGroup", "associateKmsKey", "putRetentionPolicy"]
    assert {call["parameters"]["logGroupName"] for call in asked} == {
        "/aws/sagemaker/Clusters/dev/abcdefghijkl"
    }
    assert asked[0]["ignoreErrorCodesMatching"] == "ResourceAlreadyExistsException"
    assert "ignoreErrorCodesMatching" not in asked[1]
    assert asked[2]["parameters"]["retentionInDays"] == 180
    assert asked[0]["parameters"]["kmsKeyId"] == asked[1]["parameters"]["kmsKeyId"]


def test_the_function_may_touch_the_groups_of_this_cluster_only(made: dict[str, Synthesised]) -> None:
    (policy,) = (
        one
        for one in properties(made["dev"], "AWS::IAM::Policy").values()
        if "logs:PutRetentionPolicy" in json.dumps(one)
    )
    for statement in policy["PolicyDocument"]["Statement"]:
        if statement.get("Sid") == "WriteLogs":
            continue
        assert statement["Resource"] == (
            f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/sagemaker/Clusters/dev/*"
        )
        assert statement["Action"] in (
            "logs:CreateLogGroup",
            "logs:AssociateKmsKey",
            "logs:PutRetentionPolicy",
        ) or set(statement["Action"]) <= {
            "logs:CreateLogGroup",
            "logs:AssociateKmsKey",
            "logs:PutRetentionPolicy",
        }


@pytest.mark.parametrize("name", ARN)
def test_each_pattern_is_a_filter_on_the_group(made: dict[str, Synthesised], name: str) -> None:
    filters = properties(made[name], "AWS::Logs::MetricFilter").values()
    assert {one["FilterPattern"] for one in filters} == {one.pattern for one in log_watches(watched(name))}
    for one in filters:
        (counted,) = one["MetricTransformations"]
        assert counted["MetricNamespace"] == f"Ultracluster/{watched(name).cluster_name}"
        assert "Dimensions" not in counted, "a filter on words can have none"
    # CloudWatch Logs User Guide, quotas: metric filters of one group
    assert len(filters) <= 100


def test_pcs_delivers_into_a_group_of_ours(made: dict[str, Synthesised]) -> None:
    one = made["pcs-p6-b200"]
    assert not one.findings
    (group,) = properties(one, "AWS::Logs::LogGroup").values()
    # below this name a delivery needs no policy of the account
    assert group["LogGroupName"].startswith("/aws/vendedlogs/")
    assert group["RetentionInDays"] == 180 and group["KmsKeyId"]
    sources = properties(one, "AWS::Logs::DeliverySource").values()
    assert {source["LogType"] for source in sources} == {"PCS_SCALING_LOGS", "PCS_SCHEDULER_LOGS"}
    assert {source["ResourceArn"] for source in sources} == {ARN["pcs-p6-b200"]}
    names = {source["Name"] for source in sources}
    assert {one["DeliverySourceName"] for one in properties(one, "AWS::Logs::Delivery").values()} == names
    assert all(len(name) <= 60 for name in names)


def test_the_logs_of_the_accounting_database_are_settled_after_it() -> None:
    made = templates_alone(watched("prod").environment)
    asked = json.dumps(made["prod-alarms"]["Resources"])
    (database,) = (
        one["Properties"]
        for one in made["prod-storage"]["Resources"].values()
        if one["Type"] == "AWS::RDS::DBInstance"
    )
    assert set(database["EnableCloudwatchLogsExports"]) == set(DATABASE_LOGS)
    settled = [one for one in made["prod-alarms"]["Resources"].values() if one["Type"] == "Custom::AWS"]
    assert len(settled) == 3 * len(DATABASE_LOGS)
    for log in DATABASE_LOGS:
        assert f"/{log}" in asked
    assert "/aws/rds/instance/" in asked and "AccountingId" in asked


def test_a_clusters_stack_has_them_only_where_observability_is_asked_for() -> None:
    with_it = templates_alone(watched("dev").environment)["dev-cluster"]
    kinds = [one["Type"] for one in with_it["Resources"].values()]
    assert kinds.count("AWS::Logs::MetricFilter") == len(log_watches(watched("dev")))
    plain = watched("dev").environment.model_copy(update={"observability": None})
    without = templates_alone(plain)
    assert "dev-alarms" not in without and "dev-observability" not in without
    assert "AWS::Logs::MetricFilter" not in {
        one["Type"] for one in without["dev-cluster"]["Resources"].values()
    }
