"""Resources of another Region than the stack are refused, by whoever they are given to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_kms as kms
from foreign import imported_vpc, warnings
from foreign_clusters import SLURM

from ultracluster import HyperPodSlurmCluster, LustreFileSystem
from ultracluster.guard import same_region

KEY = "arn:aws:kms:{}:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
FOREIGN: dict[str, Callable[[Stack], Any]] = {
    "key": lambda stack: kms.Key.from_key_arn(stack, "Key", KEY.format("eu-west-1")),
    "subnet": lambda stack: imported_vpc(_stack("eu-west-1", stack.node.root)).private_subnets[0],
}


def _stack(region: str | None, app: Any = None) -> Stack:
    env = Environment(account="123456789012", region=region) if region else None
    return Stack(app or App(analytics_reporting=False), f"in-{region}", env=env)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_cluster_refuses_what_is_elsewhere(name: str) -> None:
    stack = _stack("us-east-1")
    vpc = imported_vpc(stack)
    given = {"vpc": vpc, "subnet": vpc.private_subnets[0], name: FOREIGN[name](stack)}
    HyperPodSlurmCluster(stack, "Cluster", node_groups=SLURM, **given)

    (told,) = [text for text in stack.node.find_child("Cluster").node.validate() if text.startswith(name)]
    assert told.startswith(f"{name}: it is of Region eu-west-1, and this stack of us-east-1")
    assert "Instead: one of us-east-1" in told


@pytest.mark.parametrize(("here", "there"), [(None, "eu-west-1"), ("eu-west-1", "eu-west-1")])
def test_what_is_here_or_not_known_is_taken(here: str | None, there: str) -> None:
    stack = _stack(here)
    same_region(stack, key=kms.Key.from_key_arn(stack, "Key", KEY.format(there)), vpc=None)
    assert stack.node.validate() == []


@pytest.mark.parametrize(("efa", "count"), [(True, 1), (False, 0)])
def test_efa_does_not_leave_a_zone(efa: bool, count: int) -> None:
    stack = _stack("us-east-1")
    vpc = imported_vpc(stack)
    lustre = LustreFileSystem(
        stack, "Scratch", vpc=vpc, subnet=vpc.private_subnets[1], capacity_gib=38_400, efa=efa
    )
    nodes = vpc.private_subnets[0]
    HyperPodSlurmCluster(stack, "Cluster", vpc=vpc, subnet=nodes, node_groups=SLURM, lustre=lustre)

    texts = [text for text in warnings(stack) if "leave a zone" in text]
    assert len(texts) == count
    assert all("lustre: it is in zone us-east-1b, and the nodes in us-east-1a" in text for text in texts)
