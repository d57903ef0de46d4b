"""Which service runs the nodes that are in the account, and how its instances are known."""

from __future__ import annotations

from typing import Any

import pytest
from account_fixtures import keys
from hyperpod_service import account, answer
from project import ROOT

from ultracluster.account.preflight.roles import LINKED
from ultracluster.account.services import service_of
from ultracluster.config import load
from ultracluster.config.kubernetes import Eks, Karpenter
from ultracluster.model import TRAITS, Cluster, resolve

__all__ = ["keys"]


def shipped(name: str) -> Cluster:
    return resolve(load(ROOT / "environments" / f"{name}.yaml").environment)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("dev", None),
        ("hyperpod-eks-p5", "EKS"),
        ("eks-p5en", "EKS"),
        ("parallelcluster-p5", "ParallelCluster"),
        ("pcs-p6-b200", "PCS"),
    ],
)
def test_every_orchestrator_has_its_service(name: str, title: str | None) -> None:
    cluster = shipped(name)
    service = service_of(cluster)
    assert (service.title if service else None) == title
    assert bool(cluster.in_account) == (service is not None)


def test_every_linked_role_has_a_service_that_makes_it() -> None:
    assert {role for row in TRAITS.values() for role in row.linked_roles} <= set(LINKED)


def test_karpenters_nodes_are_known_by_its_own_mark() -> None:
    cluster = shipped("eks-p5en")
    settings = cluster.settings
    assert isinstance(settings, Eks)
    service = service_of(cluster)
    assert service
    own = {"eks:eks-cluster-name": cluster.cluster_name, "karpenter.sh/nodepool": "train"}
    assert not service.marks(account(), cluster).on(own)
    group = next(iter(cluster.with_role("compute")))
    changed = settings.model_copy(update={"karpenter": Karpenter(groups=(group,))})
    with_karpenter = resolve(cluster.environment.model_copy(update={"orchestrator": changed}))
    marks = service.marks(account(), with_karpenter)
    assert marks.on(own) and marks.on({"eks:cluster-name": cluster.cluster_name})
    assert not marks.on({"eks:eks-cluster-name": "another"})
    assert marks.group_of({"karpenter.sh/nodepool": group.lower()}) == group
    assert marks.group_of({"eks:nodegroup-name": "system"}) == "system"


def test_instances_of_another_pcs_cluster_are_not_ours() -> None:
    cluster, made = shipped("pcs-p6-b200"), account()

    def groups(asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["clusterIdentifier"] == cluster.cluster_name
        row = {"name": "train", "id": "pcs_1", "arn": "arn:aws:pcs:x", "clusterId": "c"}
        times = dict.fromkeys(("createdAt", "modifiedAt"), "2026-01-01T00:00:00Z")
        return {"computeNodeGroups": [{**row, **times, "status": "ACTIVE"}]}

    answer(made.client("pcs"), "ListComputeNodeGroups", groups)
    service = service_of(cluster)
    assert service
    marks = service.marks(made, cluster)
    tag = "aws:pcs:compute-node-group-id"
    assert marks.on({tag: "pcs_1"}) and marks.group_of({tag: "pcs_1"}) == "train"
    assert not marks.on({tag: "pcs_2"}) and not marks.is_controller({tag: "pcs_1"})
