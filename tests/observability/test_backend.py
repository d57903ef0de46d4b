"""Workspace, topic and Grafana of an environment: in templates that CloudFormation's schemas and cdk-nag
accept, for every orchestrator, and who may write there."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import yaml
from rules_support import environment_data, loaded
from templates import Synthesised, assembly, cfn_lint, many, statements

from ultracluster.config import Environment

WORKSPACE = "arn:aws:aps:eu-west-1:444455556666:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
WRITER = "arn:aws:iam::444455556666:role/metrics-writer"
ADMIN = "12345678-90ab-cdef-1234-567890abcdef"
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "dev": (
        "dev",
        {
            "alerts": {"emails": ["oncall@example.com"]},
            "grafana": {"admins": [ADMIN]},
            "max_series": 100_000,
            "retention_days": 400,
        },
    ),
    "pcs": ("pcs-p6-b200", {"workspace": {"arn": WORKSPACE, "role_arn": WRITER}}),
    "parallelcluster": ("parallelcluster-p5", {"monthly_budget_usd": 50_000.0}),
    "eks": (
        "eks-p5en",
        {"grafana": {"authentication": "SAML", "admins": ["a"], "saml_metadata_url": "https://i.d/m"}},
    ),
    "hyperpod-eks": ("hyperpod-eks-p5", {"kind": "hyperpod"}),
    "extension": ("dev", {"kind": "hyperpod"}),
    "cloudwatch": ("dev", {"kind": "cloudwatch"}),
}
Made = Callable[[str], Synthesised]


def environment(name: str) -> Environment:
    base, wanted = ASKED[name]
    return loaded({**environment_data(base), "observability": wanted}).environment


@pytest.fixture(scope="module")
def made() -> Made:
    return cache(lambda name: assembly(environment(name)))


def only(made: Synthesised, kind: str) -> dict[str, Any]:
    """Of the stack `observability`; others have topics of their own."""
    (found,) = (one for key, one in made.resources(kind).items() if "-observability/Observability" in key)
    return found["Properties"]


@pytest.mark.parametrize("name", ASKED)
def test_authorities_accept_it(name: str, made: Made) -> None:
    found = made(name)
    assert found.findings == set()
    files = sorted(found.folder.glob("*-observability.template.json"))
    assert cfn_lint(files, environment(name).region) == ""


def test_a_workspace_has_the_key_its_logs_a_retention_and_limits(made: Made) -> None:
    workspace = only(made("dev"), "AWS::APS::Workspace")
    assert workspace["KmsKeyArn"] == {"Fn::ImportValue": "dev-foundation-KeyArn"}
    assert workspace["WorkspaceConfiguration"] == {
        "RetentionPeriodInDays": 400,
        "LimitsPerLabelSets": [
            {"LabelSet": [{"Name": "cluster", "Value": "dev"}], "Limits": {"MaxSeries": 100_000}}
        ],
    }
    groups = {
        one["Properties"]["LogGroupName"]: one["Properties"]
        for one in made("dev").resources("AWS::Logs::LogGroup").values()
        if str(one["Properties"].get("LogGroupName", "")).startswith("/aws/vendedlogs/ultracluster/dev/")
    }
    assert {name.rpartition("-")[2] for name in groups} == {"alerts", "queries"}
    assert all(one["KmsKeyId"] and one["RetentionInDays"] for one in groups.values())


def test_rules_are_in_the_workspace_and_alerts_go_to_the_topic(made: Made) -> None:
    found = made("dev")
    rules = [one["Properties"] for one in found.resources("AWS::APS::RuleGroupsNamespace").values()]
    assert rules and all(yaml.safe_load(one["Data"])["groups"] for one in rules)
    definition = json.dumps(only(found, "AWS::APS::Workspace")["AlertManagerDefinition"])
    keys = [key.partition("/")[2] for key in found.resources("AWS::SNS::Topic")]
    (topic,) = [key for key in keys if key.startswith("ObservabilityTopic")]
    assert json.dumps({"Ref": topic}) in definition


@pytest.mark.parametrize("name", ["hyperpod-eks", "extension", "pcs", "cloudwatch"])
def test_our_rules_are_not_in_other_s_workspaces_nor_over_other_s_metrics(name: str, made: Made) -> None:
    assert made(name).resources("AWS::APS::RuleGroupsNamespace") == {}


def test_the_topic_lets_in_four_services_for_this_account_only(made: Made) -> None:
    document = only(made("dev"), "AWS::SNS::TopicPolicy")["PolicyDocument"]
    allowed = [one for one in document["Statement"] if one["Effect"] == "Allow"]
    assert {one["Principal"]["Service"] for one in allowed} == {
        f"{name}.amazonaws.com" for name in ("aps", "budgets", "cloudwatch", "events")
    }
    for one in allowed:
        assert set(one["Condition"]) == {"ArnLike", "StringEquals"}
        assert "aws:SourceAccount" in one["Condition"]["StringEquals"]
    (denied,) = [one for one in document["Statement"] if one["Effect"] == "Deny"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert only(made("dev"), "AWS::SNS::Topic")["KmsMasterKeyId"]


def test_the_key_lets_services_tell_and_prometheus_store(made: Made) -> None:
    by_sid = {one.get("Sid"): one for _, one in statements(made("dev").templates["dev-foundation"])}
    assert set(many(by_sid["Alerts"]["Principal"]["Service"])) == {
        f"{name}.amazonaws.com" for name in ("aps", "budgets", "cloudwatch", "events")
    }
    assert "aps.us-west-2." in json.dumps(by_sid["Metrics"]["Condition"]["StringEquals"])


def written_by(found: Synthesised) -> dict[str, list[Any]]:
    """Resources of the statements that let anybody write metrics, or assume who may, by their Sid."""
    rights: dict[str, list[Any]] = {}
    for template in found.templates.values():
        for _, one in statements(template):
            if one.get("Sid") == "AssumeMetricsWriter" or "aps:RemoteWrite" in many(one["Action"]):
                rights.setdefault(one["Sid"], []).append(one["Resource"])
    return rights


@pytest.mark.parametrize(("name", "roles"), [("dev", 3), ("extension", 3), ("parallelcluster", 2)])
def test_nodes_write_to_this_workspace_and_no_other(name: str, roles: int, made: Made) -> None:
    exported = {"Fn::ImportValue": f"{environment(name).name}-observability-WorkspaceArn"}
    found = written_by(made(name))
    assert set(found) == {"SendMetrics"}
    assert len(found["SendMetrics"]) >= roles
    assert all(one == exported for one in found["SendMetrics"])


def test_nodes_assume_the_writer_of_another_account(made: Made) -> None:
    found = written_by(made("pcs"))
    assert set(found) == {"AssumeMetricsWriter"}
    assert set(found["AssumeMetricsWriter"]) == {WRITER}
    assert made("pcs").resources("AWS::APS::Workspace") == {}


def test_on_kubernetes_nodes_write_nothing_and_the_add_on_does(made: Made) -> None:
    (resource,) = written_by(made("hyperpod-eks"))["WriteMetrics"]
    assert resource == {"Fn::ImportValue": "hyperpod-eks-p5-observability-WorkspaceArn"}
    addons = made("hyperpod-eks").resources("AWS::EKS::Addon").values()
    (addon,) = [
        one["Properties"] for one in addons if str(one["Properties"]["AddonName"]).endswith("-observability")
    ]
    assert "observability-WorkspaceArn" in json.dumps(addon["ConfigurationValues"])


def test_cloudwatch_alone_has_a_topic_and_nobody_writes(made: Made) -> None:
    found = made("cloudwatch")
    assert found.resources("AWS::APS::Workspace") == {}
    assert only(found, "AWS::SNS::Topic")
    assert written_by(found) == {}


def test_grafana_reads_the_metrics_and_changes_nothing(made: Made) -> None:
    found = made("dev")
    grafana = only(found, "AWS::Grafana::Workspace")
    assert grafana["AuthenticationProviders"] == ["AWS_SSO"]
    assert grafana["PermissionType"] == "CUSTOMER_MANAGED"
    template = found.templates["dev-observability"]
    (role,) = [one for one in template["Resources"].values() if one["Type"] == "AWS::IAM::Role"]
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "grafana.amazonaws.com"}
    assert set(trust["Condition"]) == {"ArnLike", "StringEquals"}
    actions = {
        action for name, one in statements(template) if "Grafana" in name for action in many(one["Action"])
    }
    assert {"aps:QueryMetrics", "cloudwatch:GetMetricData"} <= actions
    assert not [one for one in actions if "Put" in one or "Write" in one or "Create" in one]


def test_saml_says_who_identifies_and_who_administers(made: Made) -> None:
    saml = only(made("eks"), "AWS::Grafana::Workspace")["SamlConfiguration"]
    assert saml["IdpMetadata"] == {"Url": "https://i.d/m"}
    assert (saml["RoleValues"], saml["AssertionAttributes"]) == ({"Admin": ["a"]}, {"Role": "role"})


def test_nodes_are_told_where_to_write_when_it_is_deployed(made: Made) -> None:
    url = {"Fn::ImportValue": "dev-observability-RemoteWriteUrl"}
    (upload,) = [
        one["Properties"]
        for one in made("dev").resources("Custom::CDKBucketDeployment").values()
        if url in [value for markers in one["Properties"]["SourceMarkers"] for value in markers.values()]
    ]
    (key,), (markers,) = upload["SourceObjectKeys"], upload["SourceMarkers"]
    marker = next(name for name, value in markers.items() if value == url)
    with zipfile.ZipFile(made("dev").folder / f"asset.{key}") as archive:
        files = [name for name in archive.namelist() if name.endswith("/cluster.json")]
        told = [json.loads(archive.read(name))["metrics"] for name in files]
    # what is known at synth stays beside it
    assert told and all(one["remote_write_url"] == marker and one["scrape_seconds"] == 30 for one in told)
    arguments = json.dumps(list(made("pcs").resources("AWS::PCS::ComputeNodeGroup").values()))
    assert "--metrics-url" in arguments
    assert WORKSPACE.rpartition("/")[2] in arguments


def test_without_a_word_nothing_is_made() -> None:
    plain = loaded(environment_data("dev")).environment
    assert plain.stack_name("observability") not in plain.stack_names
    assert "observability" not in {part.rpartition("-")[2] for part in plain.stack_names}


def test_the_stack_comes_before_the_cluster_and_its_metrics_are_guarded(made: Made) -> None:
    names = environment("dev").stack_names
    assert names.index("dev-observability") < names.index("dev-cluster")
    workspace = next(iter(made("eks").resources("AWS::APS::Workspace").values()))
    assert workspace["DeletionPolicy"] == workspace["UpdateReplacePolicy"] == "RetainExceptOnCreate" or (
        workspace["UpdateReplacePolicy"] == "Retain"
    )
