"""The scheduler as resources: what waits for what, who may enter, and what every authority says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import CfnWaitConditionHandle, Environment, Stack, Validations
from cdk_nag import AwsSolutionsChecks
from kubernetes_support import MEMBER, environment
from templates import Synthesised, Template, app_in, cfn_lint, finish

from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.job_scheduling import JobScheduling
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve

HANDLER = "arn:aws:lambda:us-east-2:111122223333:function:handler"
TEAMS: dict[str, Any] = {
    "research": {"quota": 32, "members": [MEMBER]},
    "product": {"quota": 16, "members": [MEMBER]},
}


def synthesised(folder: Path, changes: dict[str, Any]) -> Synthesised:
    app = app_in(folder)
    stack = Stack(app, "cluster", env=Environment(account="111122223333", region="us-east-2"))
    nodes = CfnWaitConditionHandle(stack, "SystemNodes")
    JobScheduling(
        stack,
        "Scheduling",
        kubectl=EksControlPlane.from_cluster_attributes(
            stack,
            "Kubectl",
            cluster_name="example",
            kubectl_handler_arn=HANDLER,
            kubernetes_version="1.36",
        ).kubectl,
        cluster_name="example",
        scheduling=scheduling(resolve(environment(changes))),
        after=[nodes],
    )
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return finish(app, folder)


def applied(template: Template, word: str) -> str:
    """Logical id of the one group of Kubernetes objects with this word in it."""
    (found,) = [
        key
        for key, one in template["Resources"].items()
        if one["Type"] == "Custom::AWSCDK-EKS-KubernetesResource" and word in str(one["Properties"])
    ]
    return found


@pytest.fixture(scope="module", params=["kueue", "volcano", "kai"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    changes = {"orchestrator.scheduler": request.param, "teams": TEAMS}
    return synthesised(tmp_path_factory.mktemp(request.param), changes)


def test_every_authority_accepts_it(made: Synthesised) -> None:
    assert made.findings == set()
    assert cfn_lint([made.folder / "cluster.template.json"], "us-east-2") == ""


def test_objects_wait_for_the_scheduler_and_that_for_nodes(made: Synthesised) -> None:
    template = made.templates["cluster"]
    resources = template["Resources"]
    (chart,) = [key for key, one in resources.items() if one["Type"] == "Custom::AWSCDK-EKS-HelmChart"]
    objects, namespaces = applied(template, "PriorityClass"), applied(template, '"kind":"Namespace"')

    assert resources[chart]["DependsOn"] == ["SystemNodes"]
    assert resources[chart]["Properties"]["Wait"] is True
    assert set(resources[objects]["DependsOn"]) == {chart, namespaces}
    assert "DependsOn" not in resources[namespaces]


def test_a_member_of_two_teams_has_one_entry(made: Synthesised) -> None:
    (entry,) = [
        one["Properties"]
        for one in made.templates["cluster"]["Resources"].values()
        if one["Type"] == "AWS::EKS::AccessEntry"
    ]

    assert entry == {
        "ClusterName": "example",
        "PrincipalArn": MEMBER,
        "KubernetesGroups": ["ultracluster:team:research", "ultracluster:team:product"],
        "Type": "STANDARD",
    }


def test_without_a_scheduler_there_is_nothing(tmp_path: Path) -> None:
    resources = synthesised(tmp_path, {"orchestrator.scheduler": "none"}).templates["cluster"]["Resources"]

    assert set(resources) == {"SystemNodes"}
