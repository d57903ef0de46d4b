"""The role of tiered checkpoints: who has it, in which namespaces, and what Kubernetes is told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from templates import Template, templates_alone

from ultracluster.kubernetes.checkpoints import ACCOUNT

BASE = "hyperpod-eks-p5"
TIER = {"orchestrator.checkpoint_tier": {"bucket": "example-checkpoints", "prefix": "runs"}}
TEAMS = {"teams": {"research": {"quota": 16}, "product": {}}}
GOVERNED = {"orchestrator.task_governance": True, "orchestrator.scheduler": "none"}


def workloads(changes: dict[str, Any]) -> Template:
    config = loaded(changed(environment_data(BASE), changes)).environment
    return templates_alone(config)[f"{BASE}-workloads"]


def associated(template: Template) -> set[str]:
    """Namespaces in which the account has the role."""
    found = [
        one["Properties"]
        for one in template["Resources"].values()
        if one["Type"] == "AWS::EKS::PodIdentityAssociation"
    ]
    return {one["Namespace"] for one in found if one["ServiceAccount"] == ACCOUNT}


def accounts(template: Template) -> set[str]:
    """Namespaces in which the account is made."""
    manifests = [
        json.loads(one["Properties"]["Manifest"])
        for one in template["Resources"].values()
        if isinstance(one.get("Properties", {}).get("Manifest"), str)
    ]
    return {
        one["metadata"]["namespace"]
        for many in manifests
        for one in many
        if one["kind"] == "ServiceAccount" and one["metadata"]["name"] == ACCOUNT
    }


@pytest.mark.parametrize(
    ("changes", "have_it", "are_made"),
    [
        ({}, {"default"}, {"default"}),
        (TEAMS, {"default", "research", "product"}, {"default", "research", "product"}),
        # HyperPod makes these namespaces after the deploy
        ({**TEAMS, **GOVERNED}, {"default", "hyperpod-ns-research", "hyperpod-ns-product"}, {"default"}),
    ],
    ids=["alone", "teams", "governed"],
)
def test_each_namespace_of_jobs_has_the_role(
    changes: dict[str, Any], have_it: set[str], are_made: set[str]
) -> None:
    template = workloads({**TIER, **changes})

    assert associated(template) == have_it
    assert accounts(template) == are_made


def test_without_a_bucket_nobody_has_it() -> None:
    template = workloads({})

    assert associated(template) == accounts(template) == set()


@pytest.mark.parametrize(
    ("percent", "said"),
    [
        (None, None),
        (0, {"Mode": "Disable"}),
        (25, {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 25}),
    ],
    ids=str,
)
def test_memory_is_given_and_taken_back(percent: int | None, said: dict[str, Any] | None) -> None:
    changes = {"orchestrator.tiered_checkpoints_percent": percent}
    config = loaded(changed(environment_data(BASE), changes)).environment
    template = templates_alone(config)[f"{BASE}-cluster"]
    (cluster,) = [one for one in template["Resources"].values() if one["Type"] == "AWS::SageMaker::Cluster"]

    assert cluster["Properties"].get("TieredStorageConfig") == said
