"""What the add-on of spaces is given, and what its roles may do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import ROOT
from templates import Template, many, statements, templates_alone

from ultracluster.config import load

NAME = "spaces"
OVERLAY = ROOT / "environments" / "wishes" / "spaces.yaml"


@pytest.fixture(scope="module")
def templates() -> dict[str, Template]:
    return templates_alone(load(OVERLAY).environment)


def of_role(template: Template, begins: str) -> dict[str, dict[str, Any]]:
    return {one["Sid"]: one for name, one in statements(template) if name.startswith(begins) and "Sid" in one}


def addon(template: Template, name: str) -> tuple[str, dict[str, Any]]:
    (found,) = [
        (logical, one["Properties"])
        for logical, one in template["Resources"].items()
        if one["Type"] == "AWS::EKS::Addon" and one["Properties"]["AddonName"] == name
    ]
    return found


def test_the_add_on_has_a_role_and_comes_before_templates(templates: dict[str, Template]) -> None:
    template = templates[f"{NAME}-workloads"]
    logical, made = addon(template, "amazon-sagemaker-spaces")
    manifests = [
        one
        for one in template["Resources"].values()
        if "Manifest" in one.get("Properties", {}) and "WorkspaceTemplate" in json.dumps(one)
    ]

    accounts = [one["ServiceAccount"] for one in made["PodIdentityAssociations"]]
    assert accounts == ["jupyter-k8s-controller-manager"]
    assert made["AddonVersion"].startswith("v0.2.")
    assert "ssmManagedNodeRole" in json.dumps(made["ConfigurationValues"])
    assert len(manifests) == 1 and logical in many(manifests[0]["DependsOn"])
    addon(templates[f"{NAME}-system"], "cert-manager")


def test_the_controller_touches_only_what_is_tagged_as_this_clusters(templates: dict[str, Template]) -> None:
    found = of_role(templates[f"{NAME}-workloads"], "AddonsSpacesRolesController")
    anywhere = {sid for sid, one in found.items() if one["Resource"] == "*"}

    assert anywhere == {"RegisterSpaces", "FindSpaces"}
    tagged = (
        "RegisterSpaces",
        "TagSpaces",
        "EnterSpaces",
        "EndSpaces",
        "MakeSessionDocument",
        "TagSessionDocument",
    )
    for sid in tagged:
        condition = json.dumps(found[sid]["Condition"])
        assert "sagemaker.amazonaws.com/eks-cluster-arn" in condition
        assert "control-plane-ClusterArn" in condition
    (passed,) = found["PassAgentRole"]["Condition"].values()
    assert passed == {"iam:PassedToService": "ssm.amazonaws.com"}
    assert "kms:" not in json.dumps([one["Action"] for one in found.values()])


def test_the_agent_in_a_space_opens_channels_and_no_more(templates: dict[str, Template]) -> None:
    found = of_role(templates[f"{NAME}-workloads"], "AddonsSpacesRolesAgent")
    actions = {action for one in found.values() for action in many(one["Action"])}

    assert {one.partition(":")[0] for one in actions} == {"ssm", "ssmmessages"}
    assert len(actions) == 5
