"""The namespaces of jobs as resources: what is changed, what is made, what waits for what."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Environment, Stack, Validations
from cdk_nag import AwsSolutionsChecks
from kubernetes_support import environment
from scheduling_support import TEAMS
from templates import Synthesised, Template, app_in, cfn_lint, finish

from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.job_namespaces import isolate_namespaces
from ultracluster.clusters.job_scheduling import JobScheduling
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve

Get = Callable[[str], Synthesised]
APPLIED = "Custom::AWSCDK-EKS-KubernetesResource"
PATCHED = "Custom::AWSCDK-EKS-KubernetesPatch"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    folder = tmp_path_factory.mktemp("namespaces")
    cluster = resolve(environment({"teams": {**TEAMS, "own": {"uid": 2001}}}))
    app = app_in(folder)
    stack = Stack(app, "cluster", env=Environment(account="111122223333", region="us-east-2"))
    kubectl = EksControlPlane.from_cluster_attributes(
        stack,
        "Kubectl",
        cluster_name="example",
        kubectl_handler_arn="arn:aws:lambda:us-east-2:111122223333:function:handler",
        kubernetes_version="1.36",
    ).kubectl
    jobs = JobScheduling(
        stack, "Scheduling", kubectl=kubectl, cluster_name="example", scheduling=scheduling(cluster)
    )
    isolate_namespaces(kubectl, cluster, made=jobs.namespaces)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return finish(app, folder)


def applied(template: Template) -> dict[str, list[dict[str, Any]]]:
    return {
        key: json.loads(one["Properties"]["Manifest"])
        for key, one in template["Resources"].items()
        if one["Type"] == APPLIED and isinstance(one["Properties"]["Manifest"], str)
    }


def the(template: Template, kind: str) -> str:
    """Logical id of the one resource with objects of this kind for teams."""
    (found,) = [
        key
        for key, objects in applied(template).items()
        if any(one["kind"] == kind and one["metadata"].get("namespace") != "default" for one in objects)
    ]
    return found


def test_every_authority_accepts_it(made: Synthesised) -> None:
    assert made.findings == set()
    assert cfn_lint([made.folder / "cluster.template.json"], "us-east-2") == ""


def test_default_is_changed_and_never_deleted(made: Synthesised) -> None:
    """Kubernetes makes it, and refuses to delete it: a deleted stack gives it back."""
    template = made.templates["cluster"]
    patches = {
        one["Properties"]["ResourceName"]: one["Properties"]
        for one in template["Resources"].values()
        if one["Type"] == PATCHED
    }

    assert set(patches) == {"namespace/default", "serviceaccount/default"}
    labels = json.loads(patches["namespace/default"]["ApplyPatchJson"])["metadata"]["labels"]
    restored = json.loads(patches["namespace/default"]["RestorePatchJson"])["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert restored["pod-security.kubernetes.io/enforce"] == "privileged"
    assert set(labels) == set(restored)
    account = patches["serviceaccount/default"]
    assert json.loads(account["ApplyPatchJson"]) == {"automountServiceAccountToken": False}
    assert not [
        one
        for objects in applied(template).values()
        for one in objects
        if one["metadata"]["name"] == "default" and one["metadata"].get("namespace", "default") == "default"
    ]


def test_each_team_has_its_fences_and_they_wait_for_its_namespace(made: Synthesised) -> None:
    template = made.templates["cluster"]
    namespaces = the(template, "Namespace")
    fences, accounts = the(template, "ResourceQuota"), the(template, "ServiceAccount")
    teams = {*TEAMS, "own"}

    for key in (fences, accounts):
        assert namespaces in template["Resources"][key]["DependsOn"]
    objects = applied(template)
    for kind in ("NetworkPolicy", "ResourceQuota", "LimitRange"):
        assert {one["metadata"]["namespace"] for one in objects[fences] if one["kind"] == kind} == teams
    assert {one["metadata"]["namespace"] for one in objects[accounts]} == teams


def test_the_account_that_kubernetes_makes_is_changed(made: Synthesised) -> None:
    """Made again it would be refused: it is there with the namespace."""
    template = made.templates["cluster"]
    resources = template["Resources"]

    assert resources[the(template, "ServiceAccount")]["Properties"]["Overwrite"] is True
    assert "Overwrite" not in resources[the(template, "ResourceQuota")]["Properties"]


def test_what_gave_members_more_is_deleted_with_its_resource(made: Synthesised) -> None:
    """An object that only left a manifest would stay in the cluster; with its resource it goes."""
    template = made.templates["cluster"]
    assert not [key for key in template["Resources"] if "TeamRights" in key]
    names = {one["metadata"]["name"] for objects in applied(template).values() for one in objects}
    assert not names & {"ultracluster-team-jobs", "ultracluster-team-edit"}


@pytest.mark.parametrize(
    ("name", "collecting"),
    [("eks-p5en", set()), ("hyperpod-eks-p5", {"ultracluster-metrics", "ultracluster-state-metrics"})],
)
def test_shipped_clusters_enforce_policies_and_levels(
    name: str, collecting: set[str], synthesised: Get
) -> None:
    result = synthesised(name)
    (addon,) = [
        json.loads(one["Properties"]["ConfigurationValues"])
        for one in result.resources("AWS::EKS::Addon").values()
        if one["Properties"]["AddonName"] == "vpc-cni"
    ]
    policies = {
        one["metadata"]["name"]
        for template in result.templates.values()
        for objects in applied(template).values()
        for one in objects
        if one["kind"] == "NetworkPolicy"
    }

    assert addon["enableNetworkPolicy"] == "true"
    assert policies == {"ultracluster-default-deny", "ultracluster-training"} | collecting
    assert len(result.resources(PATCHED)) == 2


def test_another_plugin_enforces_its_own(tmp_path: Path) -> None:
    cluster = resolve(environment({"orchestrator.network_policies": False}))
    app = app_in(tmp_path, validate=False)
    stack = Stack(app, "cluster")
    kubectl = EksControlPlane.from_cluster_attributes(
        stack,
        "Kubectl",
        cluster_name="example",
        kubectl_handler_arn="arn:aws:lambda:us-east-2:111122223333:function:handler",
        kubernetes_version="1.36",
    ).kubectl
    isolate_namespaces(kubectl, cluster, made=None)
    app.synth()
    template = json.loads((tmp_path / "cluster.template.json").read_text())

    assert "NetworkPolicy" not in json.dumps(template)
    assert PATCHED in json.dumps(template)
