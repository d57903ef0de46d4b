"""Collection of metrics as resources: who may write, what waits for what, and AWS's own collector."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from aws_cdk import Environment, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from cdk_nag import AwsSolutionsChecks
from kubernetes_support import environment
from ruamel.yaml import YAML
from templates import Synthesised, app_in, cfn_lint, finish

from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.system import add_system
from ultracluster.kubernetes.isolation import AGENT, METRICS_NAMESPACE
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.network.existing import existing_subnet
from ultracluster.observability.workspace import MetricsDestination

APPLIED = "Custom::AWSCDK-EKS-KubernetesResource"
WORKSPACE = "arn:aws:aps:us-east-2:111122223333:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
THEIRS = "arn:aws:iam::444455556666:role/metrics-writer"
WANTED: dict[str, dict[str, Any]] = {
    "agent": {"kind": "prometheus"},
    "foreign": {"kind": "prometheus", "workspace": {"arn": WORKSPACE, "role_arn": THEIRS}},
    "managed": {"kind": "prometheus", "collector": "managed"},
    "hyperpod": {"kind": "prometheus"},
}
Get = Callable[[str], Synthesised]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Get:
    done: dict[str, Synthesised] = {}

    def get(name: str) -> Synthesised:
        if name not in done:
            done[name] = synthesised_system(name, tmp_path_factory.mktemp(name))
        return done[name]

    return get


def synthesised_system(name: str, folder: Path) -> Synthesised:
    base = "hyperpod-eks-p5" if name == "hyperpod" else "eks-p5en"
    cluster = resolve(environment({"observability": WANTED[name]}, base=base))
    app = app_in(folder)
    stack = Stack(app, "system", env=Environment(account="111122223333", region="us-east-2"))
    plane = EksControlPlane.from_cluster_attributes(
        stack,
        "Plane",
        cluster_name="example",
        kubectl_handler_arn="arn:aws:lambda:us-east-2:111122223333:function:handler",
        kubernetes_version="1.36",
    )
    add_system(
        stack,
        cluster,
        configurations=script_configurations(cluster),
        plane=plane,
        subnet=existing_subnet(stack, "Nodes", "subnet-11111111"),
        security_groups=[
            ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-11111111", mutable=False)
        ],
        key=cast("kms.IKey", kms.Key(stack, "Key", enable_key_rotation=True)),
        metrics=MetricsDestination.of(WORKSPACE, role_arn=THEIRS if name == "foreign" else None),
        control_plane_subnets=[
            existing_subnet(stack, f"Zone{number}", f"subnet-{number}2222222") for number in (1, 2)
        ],
    )
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return finish(app, folder)


def resources(synthesised: Synthesised, kind: str) -> dict[str, dict[str, Any]]:
    rows = synthesised.templates["system"]["Resources"]
    return {key: one for key, one in rows.items() if one["Type"] == kind}


def manifests(synthesised: Synthesised) -> dict[str, list[dict[str, Any]]]:
    return {
        key: json.loads(one["Properties"]["Manifest"])
        for key, one in resources(synthesised, APPLIED).items()
        if isinstance(one["Properties"]["Manifest"], str)
    }


def manifest_with(synthesised: Synthesised, kind: str, name: str) -> str:
    (key,) = [
        key
        for key, objects in manifests(synthesised).items()
        if any(one["kind"] == kind and one["metadata"]["name"] == name for one in objects)
    ]
    return key


def statements(synthesised: Synthesised, role: str) -> list[dict[str, Any]]:
    return [
        statement
        for one in resources(synthesised, "AWS::IAM::Policy").values()
        if {"Ref": role} in one["Properties"]["Roles"]
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
    ]


@pytest.mark.parametrize("name", WANTED)
def test_every_authority_accepts_it(name: str, made: Get) -> None:
    assert made(name).findings == set()
    assert cfn_lint([made(name).folder / "system.template.json"], "us-east-2") == ""


@pytest.mark.parametrize(
    ("name", "action", "resource"),
    [
        ("agent", "aps:RemoteWrite", WORKSPACE),
        ("hyperpod", "aps:RemoteWrite", WORKSPACE),
        ("foreign", "sts:AssumeRole", THEIRS),
    ],
)
def test_the_agent_may_write_and_do_nothing_else(name: str, action: str, resource: str, made: Get) -> None:
    found = [
        one["Properties"]
        for one in resources(made(name), "AWS::EKS::PodIdentityAssociation").values()
        if one["Properties"]["Namespace"] == METRICS_NAMESPACE
    ]
    assert [(one["ServiceAccount"], one["ClusterName"]) for one in found] == [(AGENT, "example")]
    role = found[0]["RoleArn"]["Fn::GetAtt"][0]
    (statement,) = statements(made(name), role)
    assert (statement["Effect"], statement["Action"], statement["Resource"]) == ("Allow", action, resource)
    trust = resources(made(name), "AWS::IAM::Role")[role]["Properties"]["AssumeRolePolicyDocument"][
        "Statement"
    ]
    assert [one["Principal"] for one in trust] == [{"Service": "pods.eks.amazonaws.com"}]
    assert trust[0]["Condition"]["ArnEquals"]["aws:SourceArn"]


def test_pods_come_after_what_they_need_of_others(made: Get) -> None:
    """The class of their priority and their namespace; the agent's role, which a pod gets when it is made."""
    rows = made("agent").templates["system"]["Resources"]
    first = manifest_with(made("agent"), "PriorityClass", "ultracluster-metrics")
    agent = manifest_with(made("agent"), "Deployment", "agent-0")
    nodes = manifest_with(made("agent"), "DaemonSet", "ultracluster-node-metrics-train")
    (identity,) = [
        key
        for key, one in resources(made("agent"), "AWS::EKS::PodIdentityAssociation").items()
        if one["Properties"]["Namespace"] == METRICS_NAMESPACE
    ]
    assert {first, identity} <= set(rows[agent]["DependsOn"])
    assert first in rows[nodes]["DependsOn"]
    (dcgm,) = [
        one
        for one in resources(made("agent"), "Custom::AWSCDK-EKS-HelmChart").values()
        if one["Properties"]["Release"] == "dcgm-exporter"
    ]
    assert first in dcgm["DependsOn"]


def test_the_managed_collector_has_two_zones_and_a_role_to_write_with(made: Get) -> None:
    (scraper,) = resources(made("managed"), "AWS::APS::Scraper").values()
    properties = scraper["Properties"]
    assert properties["Source"]["EksConfiguration"]["SubnetIds"] == ["subnet-12222222", "subnet-22222222"]
    assert properties["Source"]["EksConfiguration"]["SecurityGroupIds"] == ["sg-11111111"]
    assert properties["Destination"] == {"AmpConfiguration": {"WorkspaceArn": WORKSPACE}}
    text = properties["ScrapeConfiguration"]["ConfigurationBlob"]["Fn::Base64"]
    jobs = [one["job_name"] for one in YAML(typ="safe").load(text)["scrape_configs"]]
    assert jobs == ["node", "dcgm", "kube-state-metrics"]
    comes, writes = (
        properties["RoleConfiguration"][key]["Fn::GetAtt"][0] for key in ("SourceRoleArn", "TargetRoleArn")
    )
    (assume,) = statements(made("managed"), comes)
    (write,) = statements(made("managed"), writes)
    assert (assume["Action"], assume["Resource"]) == ("sts:AssumeRole", {"Fn::GetAtt": [writes, "Arn"]})
    assert (write["Action"], write["Resource"]) == ("aps:RemoteWrite", WORKSPACE)
    roles = resources(made("managed"), "AWS::IAM::Role")
    (trust,) = roles[comes]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scraper.aps.amazonaws.com"}
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}
    (trust,) = roles[writes]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": {"Fn::GetAtt": [comes, "Arn"]}}


def test_with_a_managed_collector_there_is_no_agent(made: Get) -> None:
    objects = [one for some in manifests(made("managed")).values() for one in some]
    names = {(one["kind"], one["metadata"]["name"]) for one in objects}
    assert ("Deployment", "agent-0") not in names
    assert ("Deployment", "kube-state-metrics") in names
    assert not [
        one
        for one in objects
        if one["metadata"].get("namespace") == METRICS_NAMESPACE and one["kind"] == "NetworkPolicy"
    ]
    spaces = {
        one["Properties"]["Namespace"]
        for one in resources(made("managed"), "AWS::EKS::PodIdentityAssociation").values()
    }
    assert METRICS_NAMESPACE not in spaces


def test_on_hyperpod_every_group_is_watched_and_its_own_add_on_is_not_there(made: Get) -> None:
    cluster = resolve(environment({}, base="hyperpod-eks-p5"))
    objects = [one for some in manifests(made("hyperpod")).values() for one in some]
    sets = {one["metadata"]["name"] for one in objects if one["kind"] == "DaemonSet"}
    assert sets >= {f"ultracluster-node-metrics-{name}" for name in cluster.with_role("compute")}
    addons = {
        one["Properties"]["AddonName"] for one in resources(made("hyperpod"), "AWS::EKS::Addon").values()
    }
    assert "amazon-sagemaker-hyperpod-observability" not in addons


def test_no_event_of_a_function_grows_beyond_what_lambda_takes(made: Get) -> None:
    for name in ("agent", "managed", "hyperpod"):
        for one in resources(made(name), APPLIED).values():
            assert len(json.dumps(one["Properties"])) < 200_000
