"""Rules on: node groups. Roles, their nodes, and partitions of Slurm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.config import Environment
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM, OrchestratorKind
from ultracluster.config.remedy import DROP, Remedy, ask, beside, drop, inside, whole, write
from ultracluster.model.partitions import own_partition
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import GRP

DATE = "2026-11-21"
HEADED = frozenset[OrchestratorKind]({"hyperpod-slurm", "parallelcluster"})
"""Slurm's controller runs on a node of the cluster."""
PARTITIONED = frozenset[OrchestratorKind]({"hyperpod-slurm", "pcs"})
"""Every compute group names its partition, by names of Slurm's own."""
GETTING_STARTED = "SageMaker Developer Guide, Getting started with SageMaker HyperPod using the AWS CLI"
SCHEMA = "aws-parallelcluster 3.16.1, schema"
PCS_GUIDE = "AWS PCS User Guide"

_MISSING_ROLES: tuple[tuple[frozenset[OrchestratorKind], str, str, Remedy], ...] = (
    (
        SLURM,
        "system",
        "`system` is for the add-ons of Kubernetes, and Slurm has none.",
        write("login"),
    ),
    (
        frozenset({"pcs"}),
        "controller",
        "PCS runs Slurm's controller itself, in an account of its own: there are no nodes for it.",
        whole(DROP).noting("orchestrator.size says how many nodes and jobs the controller takes"),
    ),
    (
        KUBERNETES,
        "controller",
        "EKS runs the control plane itself; CoreDNS, drivers and operators run on nodes of role `system`.",
        write("system") & beside(count=2),
    ),
    (
        KUBERNETES,
        "login",
        "people speak to the Kubernetes API with kubectl, as one of orchestrator.admins, and log in nowhere.",
        whole(DROP).noting("or role: system"),
    ),
)
"""Orchestrators, the role that they lack, why, and what to do instead."""


@GRP.rule(
    10,
    "error",
    "The role of a group is one that its orchestrator has",
    source="SageMaker API reference, ClusterInstanceGroupSpecification (SlurmConfig); "
    f"{SCHEMA}; {PCS_GUIDE}, Key concepts; EKS User Guide, Amazon EKS architecture",
    date=DATE,
)
def role_of_another_orchestrator(environment: Environment) -> Iterator[Breach]:
    for kinds, role, why, remedy in _MISSING_ROLES:
        if environment.orchestrator.kind in kinds:
            for name in environment.groups(role):
                yield Breach(("node_groups", name, "role"), why, remedy)


_ONE_CONTROLLER: Mapping[OrchestratorKind, str] = {
    "hyperpod-slurm": "several controllers exist only with HyperPod's legacy provisioning file, not with the "
    "API's Slurm configuration",
    "parallelcluster": "ParallelCluster has one head node, without a standby",
}


@GRP.rule(
    11,
    "error",
    "There is exactly one controller group",
    source=f"{GETTING_STARTED}; {SCHEMA} (HeadNode)",
    date=DATE,
    kinds=HEADED,
)
def one_controller_group(environment: Environment) -> Iterator[Breach]:
    first, *others = environment.groups("controller") or [""]
    if not first:
        yield Breach(
            ("node_groups",),
            "no group has the role `controller`, on which Slurm's controller runs: the cluster is refused "
            "without one.",
            _a_controller(environment),
        )
    for name in others:
        yield Breach(
            ("node_groups", name, "role"),
            f"`{first}` is the controller group already: {_ONE_CONTROLLER[environment.orchestrator.kind]}.",
            (whole(DROP) | write("login")).noting(
                "storage.accounting_database keeps the accounting off the controller"
            ),
        )


@GRP.rule(
    12,
    "error",
    "The controller group has one node",
    source="SageMaker Developer Guide, Setting up multiple controller nodes for a HyperPod cluster; "
    f"{SCHEMA} (HeadNode)",
    date=DATE,
    kinds=HEADED,
)
def one_controller_node(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("controller").items():
        for key in ("count", "max_count"):
            value = getattr(group, key)
            if value in (1, None):
                continue
            why = "the other nodes fetch their Slurm configuration from it and never come up"
            if value:
                why = _ONE_CONTROLLER[environment.orchestrator.kind]
            yield Breach(("node_groups", name, key), f"{value} controllers: {why}.", write(1))


@GRP.rule(
    13,
    "error",
    "Login groups do not grow",
    source=f"{SCHEMA} (LoginNodes Pools Count); {PCS_GUIDE}, Using login nodes",
    date=DATE,
    kinds=frozenset({"parallelcluster", "pcs"}),
)
def login_is_fixed(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("login").items():
        if group.greatest != group.count:
            yield Breach(
                ("node_groups", name, "max_count"),
                f"{group.count} to {group.greatest} login nodes: nodes are added for jobs, and none run "
                "there.",
                drop() & beside(count=group.greatest),
            )


@GRP.rule(
    14,
    "error",
    "A compute group has a partition",
    source=f"{GETTING_STARTED}; AWS PCS API reference, CreateQueue",
    date=DATE,
    kinds=PARTITIONED,
)
def compute_has_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition is None:
            yield Breach(
                ("node_groups", name, "partition"),
                "a compute group without a partition: no job can run on it, and HyperPod refuses it.",
                write(own_partition(name)),
            )


@GRP.rule(
    15,
    "error",
    "Only compute groups have a partition",
    source=f"{GETTING_STARTED}; {SCHEMA} (SlurmQueues); {PCS_GUIDE}, Using login nodes",
    date=DATE,
    kinds=SLURM,
)
def others_have_no_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.role in ("controller", "login") and group.partition is not None:
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` on a {group.role} group, which runs no jobs: partitions are of compute "
                "groups.",
                drop(),
            )


@GRP.rule(
    16,
    "error",
    "No partition is called DEFAULT",
    source="Slurm documentation, slurm.conf (PartitionName)",
    date=DATE,
    kinds=PARTITIONED,
)
def partition_default(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition and group.partition.upper() == "DEFAULT":
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` is not a partition to slurm.conf: a line with PartitionName=DEFAULT "
                "sets the defaults of the lines after it.",
                write(own_partition(name)),
            )


@GRP.rule(
    17,
    "warning",
    "The cluster has compute nodes",
    source="SageMaker API reference, ClusterInstanceGroupSpecification (InstanceCount); "
    "AWS PCS API reference, CreateComputeNodeGroup (scalingConfiguration)",
    date=DATE,
    kinds=frozenset({*HYPERPOD, "pcs"}),
)
def some_compute_nodes(environment: Environment) -> Iterator[Breach]:
    compute = environment.groups("compute")
    scales = getattr(environment.orchestrator, "autoscaling", None) is not None
    if not any(group.greatest or scales for group in compute.values()):
        name = next(iter(compute), None)
        yield Breach(
            ("node_groups", name, "count") if name else ("node_groups",),
            "no compute group may have a node: the cluster comes up and cannot run a job.",
            write(1).noting("or more") if name else ask("decision", "a group with role: compute and a count"),
        )


def _a_controller(environment: Environment) -> Remedy:
    """One node, of the architecture that ParallelCluster's compute nodes have."""
    types = (instance_type_of(environment, group) for group in environment.groups("compute").values())
    arm = any(known and known.architecture == "arm64" for known in types)
    name = next(one for one in ("controller", "head", "slurmctld") if one not in environment.node_groups)
    kind = "m7g.4xlarge" if arm and environment.orchestrator.kind == "parallelcluster" else "m5.4xlarge"
    return inside(**{name: {"role": "controller", "instance_type": kind, "count": 1}})
