"""HyperPod's inference operator in its stack: what comes before it, who takes its roles, what they may do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from project import ROOT
from rules_support import changed, environment_data, loaded
from templates import Template, many, templates_alone

from ultracluster.config import load

OVERLAY = ROOT / "environments" / "wishes" / "inference.yaml"
ROLE = "arn:aws:iam::111122223333:role/"
GIVEN = {
    "execution_role_arn": f"{ROLE}SageMakerHyperPodInference-1",
    "load_balancer_role_arn": f"{ROLE}load-balancer",
    "autoscaler_role_arn": f"{ROLE}keda",
    "certificate_bucket": "hyperpod-tls-1",
    "model_buckets": ["models"],
}
ADDON = "amazon-sagemaker-hyperpod-inference"


@cache
def stacks() -> dict[str, Template]:
    return templates_alone(load(OVERLAY).environment)


@cache
def with_roles_of_others() -> dict[str, Template]:
    changes = {"orchestrator.inference": GIVEN, "orchestrator.addon_versions": {ADDON: "v1.6.0-eksbuild.1"}}
    config = loaded(changed(environment_data("hyperpod-eks-p5"), changes)).environment
    return templates_alone(config)


def of_type(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    return {name: one for name, one in template["Resources"].items() if one["Type"] == kind}


def addon(template: Template, name: str) -> dict[str, Any]:
    (found,) = [
        one for one in of_type(template, "AWS::EKS::Addon").values() if one["Properties"]["AddonName"] == name
    ]
    return found


def told(value: Any) -> str:
    """A text of CloudFormation, with functions as their JSON without quotes."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        return "".join(told(one) for one in value["Fn::Join"][1])
    return "<" + re.sub(r'["{}\[\] ]', "", json.dumps(value)) + ">"


def values(template: Template) -> dict[str, Any]:
    return json.loads(told(addon(template, ADDON)["Properties"]["ConfigurationValues"]))


def trusts(template: Template) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Roles whose trust is a text, with its statements."""
    for name, role in of_type(template, "AWS::IAM::Role").items():
        document = role["Properties"]["AssumeRolePolicyDocument"]
        if "Statement" not in document:
            yield name, json.loads(told(document))["Statement"]


def workloads() -> Template:
    return stacks()["inference-workloads"]


def test_add_ons_that_it_requires_come_before_it() -> None:
    template = workloads()
    before = {
        template["Resources"][name]["Properties"]["AddonName"]
        for name in many(addon(template, ADDON)["DependsOn"])
        if template["Resources"][name]["Type"] == "AWS::EKS::Addon"
    }
    assert before == {"aws-mountpoint-s3-csi-driver", "metrics-server"}
    system = stacks()["inference-system"]
    assert addon(system, "aws-fsx-csi-driver")
    assert addon(system, "cert-manager")["Properties"]["AddonVersion"] == "v1.18.2-eksbuild.2"


def test_each_service_account_has_a_role_that_nobody_else_may_take() -> None:
    subjects = {}
    for name, (own, *others) in trusts(workloads()):
        equal = own["Condition"]["StringEquals"]
        (subject,) = [value for key, value in equal.items() if key.endswith(":sub")]
        (audience,) = [value for key, value in equal.items() if key.endswith(":aud")]
        issuers = {key.rpartition(":")[0] for key in equal}
        assert len(issuers) == 1 and "IssuerUrl" in issuers.pop(), name
        assert (own["Action"], audience) == ("sts:AssumeRoleWithWebIdentity", "sts.amazonaws.com")
        assert "IdentityProvider" in own["Principal"]["Federated"]
        subjects[subject] = [one["Principal"] for one in others]
    place = "system:serviceaccount:hyperpod-inference-system"
    assert subjects == {
        f"{place}:hyperpod-inference-controller-manager": [{"Service": "sagemaker.amazonaws.com"}],
        f"{place}:aws-load-balancer-controller": [],
        f"{place}:keda-operator": [],
        f"{place}:inference-gateway-controller": [],
        "system:serviceaccount:kube-system:s3-csi-driver-sa": [],
    }


def test_the_add_on_is_told_of_them() -> None:
    made = values(workloads())

    assert set(made) == {
        "alb", "executionRoleArn", "hyperpodClusterArn", "inferenceGateway", "keda", "tlsCertificateS3Bucket",
    }  # fmt: skip
    assert made["inferenceGateway"]["enabled"] is made["alb"]["enabled"] is made["keda"]["enabled"] is True
    assert "GatewayRole" in made["inferenceGateway"]["serviceAccount"]["roleArn"]
    (role,) = [
        one["Properties"]["RoleName"]
        for one in of_type(workloads(), "AWS::IAM::Role").values()
        if "RoleName" in one["Properties"]
    ]
    assert role.startswith("SageMakerHyperPodInference-"), "the add-on accepts no other"


@pytest.mark.parametrize(
    ("role", "action", "allowed"),
    [
        ("OperatorRole", "sagemaker:UpdateClusterInference", True),
        ("OperatorRole", "iam:PassRole", True),
        ("OperatorRole", "s3:ListAllMyBuckets", False),
        ("LoadBalancerRole", "elasticloadbalancing:CreateLoadBalancer", True),
        ("LoadBalancerRole", "ec2:CreateTags", True),
        ("LoadBalancerRole", "ec2:RunInstances", False),
        ("AutoscalerRole", "aps:QueryMetrics", True),
        ("AutoscalerRole", "aps:RemoteWrite", False),
        ("ReaderRole", "s3:GetObject", True),
        ("ReaderRole", "s3:PutObject", False),
    ],
)
def test_roles_may_do_what_is_written_and_no_more(role: str, action: str, allowed: bool) -> None:
    found = {
        one
        for name, policy in of_type(workloads(), "AWS::IAM::Policy").items()
        if role in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for one in many(statement["Action"])
    }
    assert (action in found) is allowed
    assert not any("*" in one for one in found)


EXISTING = "arn:aws:aps:us-east-1:444455556666:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
OTHER = EXISTING.replace("ws-1", "ws-2")


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({}, {"<Fn::ImportValue:hyperpod-eks-p5-observability-WorkspaceArn>"}),
        ({"observability.workspace": {"arn": EXISTING}}, {EXISTING}),
        ({"observability": ..., "orchestrator.observability": {"workspace_arn": OTHER}}, {OTHER}),
        ({"observability.kind": "cloudwatch"}, set[str]()),
        ({"observability": ...}, set[str]()),
    ],
    ids=["made", "named", "of the add-on", "no metrics", "none"],
)
def test_keda_asks_the_workspace_of_the_file_alone(changes: dict[str, Any], asked: set[str]) -> None:
    found = changed(environment_data("hyperpod-eks-p5"), {"orchestrator.inference": {}, **changes})
    made = templates_alone(loaded(found).environment)["hyperpod-eks-p5-workloads"]
    (policy,) = [one for name, one in of_type(made, "AWS::IAM::Policy").items() if "AutoscalerRole" in name]
    statements = policy["Properties"]["PolicyDocument"]["Statement"]

    assert {one["Sid"] for one in statements} >= {"ReadCloudWatch"}
    assert {
        told(resource)
        for statement in statements
        if any(action.startswith("aps:") for action in many(statement["Action"]))
        for resource in many(statement["Resource"])
    } == asked


def test_models_are_read_from_the_named_buckets_only() -> None:
    (policy,) = [
        one for name, one in of_type(workloads(), "AWS::IAM::Policy").items() if "ReaderRole" in name
    ]
    resources = [
        told(one)
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for one in many(statement["Resource"])
    ]
    assert [one.partition(":s3:::")[2] for one in resources] == ["example-models", "example-models/*"]


def test_roles_made_elsewhere_are_named_and_their_identity_provider_is_there() -> None:
    template = with_roles_of_others()["hyperpod-eks-p5-workloads"]
    made = values(template)

    assert made["executionRoleArn"] == GIVEN["execution_role_arn"]
    assert made["tlsCertificateS3Bucket"] == "hyperpod-tls-1"
    assert "inferenceGateway" not in made, "an older add-on refuses a key that it does not know"
    assert not of_type(template, "AWS::IAM::OIDCProvider") and not of_type(template, "AWS::S3::Bucket")
    ((_, (reader,)),) = trusts(template)
    assert ":oidc-provider/" in reader["Principal"]["Federated"]


def test_what_makes_its_own_is_switched_off_on_request() -> None:
    asked = {"load_balancer_controller": False, "autoscaler": False}
    config = loaded(
        changed(environment_data("hyperpod-eks-p5"), {"orchestrator.inference": asked})
    ).environment
    template = templates_alone(config)["hyperpod-eks-p5-workloads"]
    made = values(template)

    assert made["alb"] == made["keda"] == {"enabled": False}
    assert made["inferenceGateway"] == {"enabled": False}, "on by default, without a role"
    assert len(list(trusts(template))) == 1
