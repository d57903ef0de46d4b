"""Rules on: Kubernetes on EKS. Room for pods on system nodes, and for groups in a template."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.remedy import Remedy, ask, inside
from ultracluster.model import resolve
from ultracluster.model.team_shares import scheduler_of
from ultracluster.model.types import instance_type_of
from ultracluster.rules.eks.groups import EKS_ALONE, launched_by_karpenter, settings
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EKS

GROUPS_THAT_FIT = 100
"""Managed groups whose template was seen to stay below 1 MB, with 33 interfaces each."""
_RESOURCES, _OF_A_GROUP, _OTHERS = 500, 2, 4  # launch template and group; role, policy, schedule, wait handle


@EKS.rule(
    30,
    "warning",
    "System nodes have room for the pods of the cluster",
    source="EKS User Guide, Choosing an Amazon EC2 instance type: maximum pods; catalog/system_pods.json",
    date="2026-11-22",
)
def room_for_pods(environment: Environment) -> Iterator[Breach]:
    every, once = _pods(environment)
    room = 0
    for group in environment.groups("system").values():
        known = instance_type_of(environment, group)
        most = most_pods(known) if known else None
        if most is None:
            return  # unknown is not too small
        room += group.count * max(0, most - every)
    first = next(iter(environment.groups("system")), None)
    if first and once > room and environment.groups("system")[first].count:
        yield Breach(
            ("node_groups", first),
            f"add-ons, schedulers and operators are about {once} pods beside {every} on each node; system "
            f"nodes have addresses for {room}: what does not fit waits, and its add-on or chart fails.",
            _more_room(environment.groups("system")[first], every, once - room),
        )


@EKS.rule(
    31,
    "warning",
    "The managed groups fit into one template",
    source="CloudFormation User Guide, CloudFormation quotas: template body size in an S3 object, resources",
    date="2026-11-22",
    kinds=EKS_ALONE,
)
def groups_that_fit(environment: Environment) -> Iterator[Breach]:
    count = len(_managed(environment))
    if GROUPS_THAT_FIT < count <= _most_groups():
        yield Breach(
            ("node_groups",),
            f"{count} compute groups; the template of {GROUPS_THAT_FIT} is known to stay below "
            "CloudFormation's 1 MB, that of more may not.",
            ask("decision", f"{GROUPS_THAT_FIT} or fewer, or groups that Karpenter launches"),
        )


@EKS.rule(
    32,
    "error",
    "The managed groups are no more resources than a stack may have",
    source="CloudFormation User Guide, CloudFormation quotas: resources in a template",
    date="2026-11-22",
    kinds=EKS_ALONE,
)
def resources_of_groups(environment: Environment) -> Iterator[Breach]:
    count = len(_managed(environment))
    if count > _most_groups():
        yield Breach(
            ("node_groups",),
            f"{count} compute groups are {_OF_A_GROUP * count + _OTHERS} resources or more; a stack may have "
            f"{_RESOURCES}.",
            ask("decision", f"{GROUPS_THAT_FIT} or fewer, or groups that Karpenter launches"),
        )


def most_pods(known: InstanceType) -> int | None:
    """Pods that EKS lets run on a node of a type: by its addresses, and at most 110 or 250."""
    if known.network_interfaces is None or known.ipv4_per_interface is None:
        return None
    cap = 110 if known.vcpu < 30 else 250
    return min(cap, known.network_interfaces * (known.ipv4_per_interface - 1) + 2)


def _managed(environment: Environment) -> list[str]:
    others = launched_by_karpenter(environment)
    return [name for name in environment.groups("compute") if name not in others]


def _most_groups() -> int:
    return (_RESOURCES - _OTHERS) // _OF_A_GROUP


def _pods(environment: Environment) -> tuple[int, int]:
    """Pods on every node, and pods that run once in the cluster."""
    orchestrator = settings(environment)
    has = {
        "always": True,
        "lustre": environment.storage.lustre is not None,
        scheduler_of(resolve(environment)): True,
        "gpu-operator": orchestrator.gpu_plugin == "gpu-operator",
        "cert-manager": bool(
            getattr(orchestrator, "training_operator", False) or getattr(orchestrator, "inference", None)
        ),
    }

    def wanted(when: str) -> bool:
        return bool(has.get(when, getattr(orchestrator, when, False)))

    table = _table()
    return (
        sum(wanted(when) for when in table["on_every_node"].values()),
        sum(count for count, when in table["once"].values() if wanted(when)),
    )


@cache
def _table() -> Mapping[str, Any]:
    file = Path(__file__).parents[2] / "catalog" / "system_pods.json"
    return json.loads(file.read_text(encoding="utf-8"))


def _more_room(group: NodeGroup, every: int, lacking: int) -> Remedy:
    """A larger type where the nodes are as many as they should be, else more nodes of it."""
    large = "m5.4xlarge" if group.instance_type == "m5.2xlarge" else "m5.2xlarge"
    known, own = instance_types()[large], instance_types().get(group.instance_type)
    here = group.count * max(0, ((most_pods(own) if own else None) or 0) - every)
    each = (most_pods(known) or every + 1) - every
    nodes = max(group.count, -(-(here + lacking) // each))
    return inside(instance_type=large, count=nodes) if nodes > group.count else inside(instance_type=large)
