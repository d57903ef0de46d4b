"""Rules on node groups: roles, their nodes, and partitions of Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ultracluster.config.nodes import Role
from ultracluster.config.remedy import DROP, Remedy, ask, beside, drop, inside, whole, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GRP, SLURM, kinds_with
from ultracluster.rules.sources import PCLUSTER, PCS_GUIDE

DATE = "2026-11-21"
GETTING_STARTED = "SageMaker Developer Guide, Getting started with SageMaker HyperPod using the AWS CLI"
SCHEMA = f"{PCLUSTER}, schema"
_HEADED = kinds_with(lambda traits: "controller" in traits.roles)
"""Slurm's controller runs on a node of the cluster."""
_PARTITIONED = kinds_with(lambda traits: traits.named_partitions)

_MISSING_ROLES: Mapping[tuple[Literal["slurm", "kubernetes"], Role], tuple[str, Remedy]] = {
    ("slurm", "system"): (
        "the role `system` is for add-ons of Kubernetes, which Slurm does not have.",
        write("login"),
    ),
    ("slurm", "controller"): (
        "PCS runs Slurm's controller itself, in an account of AWS: no node of yours runs it.",
        whole(DROP).noting("orchestrator.size says how many nodes and jobs the controller takes"),
    ),
    ("kubernetes", "controller"): (
        "EKS runs the control plane itself; CoreDNS, drivers and operators run on nodes of role `system`.",
        write("system") & beside(count=2),
    ),
    ("kubernetes", "login"): (
        "Kubernetes needs no login nodes: people use kubectl as one of orchestrator.admins.",
        whole(DROP).noting("or role: system"),
    ),
}
"""Why a scheduler does not have a role, and what to do instead."""


@GRP.error(
    10,
    "SageMaker API reference, ClusterInstanceGroupSpecification (SlurmConfig); "
    f"{SCHEMA}; {PCS_GUIDE}, Key concepts; EKS User Guide, Amazon EKS architecture",
    DATE,
)
def role_exists(group: Group) -> Breaches:
    """Groups have only roles that the orchestrator has."""
    traits = group.traits
    if group.role not in traits.roles:
        why, remedy = _MISSING_ROLES.get(
            (traits.scheduler, group.role),
            (
                f"{traits.kind} only has nodes of these roles: {', '.join(traits.roles)}.",
                write(*traits.roles),
            ),
        )
        yield at("role").breach(why, remedy)


@GRP.error(11, f"{GETTING_STARTED}; {SCHEMA} (HeadNode)", DATE, kinds=_HEADED)
def one_controller_group(cluster: Cluster) -> Breaches:
    """There is exactly one controller group."""
    first, *others = cluster.with_role("controller") or [""]
    if not first:
        yield at("node_groups").breach(
            "no group has the role `controller`, on which Slurm's controller runs: the cluster is refused "
            "without one.",
            _a_controller(cluster),
        )
    for name in others:
        yield at("node_groups", name, "role").breach(
            f"`{first}` is already the controller group: {cluster.traits.one_controller}.",
            (whole(DROP) | write("login")).noting(
                "storage.accounting_database keeps the accounting off the controller"
            ),
        )


@GRP.error(
    12,
    "SageMaker Developer Guide, Setting up multiple controller nodes for a HyperPod cluster; "
    f"{SCHEMA} (HeadNode)",
    DATE,
    kinds=_HEADED,
)
def one_controller_node(group: Group) -> Breaches:
    """The controller group has one node."""
    if group.role != "controller":
        return
    for key, value in (("count", group.settings.count), ("max_count", group.settings.max_count)):
        if value in (1, None):
            continue
        why = "the other nodes fetch their Slurm configuration from it and never become ready"
        if value:
            why = group.traits.one_controller
        yield at(key).breach(f"{value} controllers: {why}.", write(1))


@GRP.error(
    13,
    f"{SCHEMA} (LoginNodes Pools Count); {PCS_GUIDE}, Using login nodes",
    DATE,
    kinds=kinds_with(lambda traits: "login" in traits.roles and "login" not in traits.service_roles),
)
def login_is_fixed(group: Group) -> Breaches:
    """A login group has a fixed number of nodes."""
    count, most = group.settings.count, group.settings.max_nodes
    if group.role == "login" and most != count:
        yield at("max_count").breach(
            f"{count} to {most} login nodes: nodes are only added for jobs, and no jobs run on login nodes.",
            drop() & beside(count=most),
        )


@GRP.error(14, f"{GETTING_STARTED}; AWS PCS API reference, CreateQueue", DATE, kinds=_PARTITIONED)
def compute_has_partition(group: Group) -> Breaches:
    """Each compute group has a partition."""
    if group.role == "compute" and group.settings.partition is None:
        yield at("partition").breach(
            "no job can run on a compute group without a partition, and HyperPod refuses it.",
            write(own_partition(group.name)),
        )


@GRP.error(
    15, f"{GETTING_STARTED}; {SCHEMA} (SlurmQueues); {PCS_GUIDE}, Using login nodes", DATE, kinds=SLURM
)
def partition_only_on_compute(group: Group) -> Breaches:
    """Only compute groups have a partition."""
    partition = group.settings.partition
    if group.role in ("controller", "login") and partition is not None:
        yield at("partition").breach(
            f"`{partition}` on a {group.role} group, but only compute groups run jobs and have partitions.",
            drop(),
        )


@GRP.error(16, "Slurm documentation, slurm.conf (PartitionName)", DATE, kinds=_PARTITIONED)
def partition_default(group: Group) -> Breaches:
    """No partition is called DEFAULT."""
    if group.partition and group.partition.upper() == "DEFAULT":
        yield at("partition").breach(
            f"`{group.partition}` cannot name a partition: in slurm.conf a line with PartitionName=DEFAULT "
            "sets the defaults of the lines after it.",
            write(own_partition(group.name)),
        )


@GRP.warning(
    17,
    "SageMaker API reference, ClusterInstanceGroupSpecification (InstanceCount); "
    "AWS PCS API reference, CreateComputeNodeGroup (scalingConfiguration)",
    DATE,
    # ParallelCluster takes no group without a node (PCL006); on EKS nodes may follow later
    kinds=kinds_with(lambda traits: traits.hyperpod or (traits.slurm and not traits.validates)),
)
def some_compute_nodes(cluster: Cluster) -> Breaches:
    """At least one compute group may have nodes."""
    compute = cluster.with_role("compute")
    if not any(group.most_nodes or cluster.autoscaling for group in compute.values()):
        name = next(iter(compute), None)
        yield at(*("node_groups", name, "count") if name else ("node_groups",)).breach(
            "every compute group is limited to 0 nodes: the cluster starts and cannot run a job.",
            write(1).noting("or more") if name else ask("decision", "a group with role: compute and a count"),
        )


def _a_controller(cluster: Cluster) -> Remedy:
    """One node; where it is in the user's account, of the architecture of the compute nodes."""
    types = (group.type for group in cluster.with_role("compute").values())
    arm = any(kind and kind.architecture == "arm64" for kind in types)
    name = next(one for one in ("controller", "head", "slurmctld") if one not in cluster.groups)
    machine = "m7g.4xlarge" if arm and not cluster.traits.hyperpod else "m5.4xlarge"
    return inside(**{name: {"role": "controller", "instance_type": machine, "count": 1}})


def own_partition(name: str) -> str:
    """The group's name as the name of its partition, unless that means something else."""
    return name if name.lower() not in ("dev", "default") else "train"
