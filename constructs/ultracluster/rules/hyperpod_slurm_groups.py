"""Rules on: HyperPod with Slurm. Node groups: roles, partitions, counts, capacity."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.rules.engine import Breach, RuleSet
from ultracluster.rules.hyperpod import GROUP_API

RULES = RuleSet("HPS", "HyperPod with Slurm", kinds=frozenset({"hyperpod-slurm"}))

GETTING_STARTED = "SageMaker Developer Guide, Getting started with SageMaker HyperPod using the AWS CLI"


def asked(environment: Environment) -> HyperPodSlurm:
    """The orchestrator of an environment that these rules are run on."""
    assert isinstance(environment.orchestrator, HyperPodSlurm)
    return environment.orchestrator


@RULES.rule(1, "error", "There is exactly one controller group", source=GETTING_STARTED)
def one_controller_group(environment: Environment) -> Iterator[Breach]:
    first, *others = environment.groups("controller") or [""]
    if not first:
        yield Breach(
            ("node_groups",),
            "no group has the role `controller`; HyperPod refuses a Slurm cluster without one.",
            "controller: {role: controller, instance_type: m5.4xlarge, count: 1}",
        )
    for name in others:
        yield Breach(
            ("node_groups", name, "role"),
            f"`{first}` is the controller group already; HyperPod refuses a second one. Several "
            "controllers exist only with the legacy provisioning file, not with the API's Slurm "
            "configuration.",
            "role: login or compute, or remove the group; storage.accounting_database keeps the "
            "accounting off the controller",
        )


@RULES.rule(
    2,
    "error",
    "The controller group has one node",
    source="SageMaker Developer Guide, Setting up multiple controller nodes for a HyperPod cluster",
)
def one_controller_node(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("controller").items():
        if group.count != 1:
            why = (
                "several controllers exist only with the legacy provisioning file, not with the "
                "API's Slurm configuration"
                if group.count
                else "the other nodes fetch their Slurm configuration from it and never come up"
            )
            yield Breach(
                ("node_groups", name, "count"),
                f"{group.count} controllers: {why}.",
                "1",
            )


@RULES.rule(3, "error", "There is at most one login group", source=GETTING_STARTED)
def one_login_group(environment: Environment) -> Iterator[Breach]:
    logins = environment.groups("login")
    first, *others = logins or [""]
    nodes = sum(group.count for group in logins.values())
    for name in others:
        yield Breach(
            ("node_groups", name, "role"),
            f"`{first}` is the login group already; HyperPod refuses a second one.",
            f"count: {nodes} in `{first}`, and remove `{name}`",
        )


@RULES.rule(4, "error", "No group has the role `system`", source=f"{GROUP_API} (SlurmConfig)")
def no_system_group(environment: Environment) -> Iterator[Breach]:
    for name in environment.groups("system"):
        yield Breach(
            ("node_groups", name, "role"),
            "`system` is for Kubernetes add-ons; on Slurm a group is controller, login or compute.",
            "role: login" if not environment.groups("login") else "role: compute, or remove it",
        )


@RULES.rule(5, "error", "A compute group has a partition", source=GETTING_STARTED)
def compute_has_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition is None:
            yield Breach(
                ("node_groups", name, "partition"),
                "a compute group without a partition: HyperPod wants exactly one for each.",
                f"partition: {_own_partition(name)}",
            )


@RULES.rule(6, "error", "Only compute groups have a partition", source=GETTING_STARTED)
def others_have_no_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.role in ("controller", "login") and group.partition is not None:
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` on a {group.role} group: HyperPod takes partitions on "
                "compute groups only.",
                "remove partition",
            )


@RULES.rule(
    7,
    "warning",
    "No partition is called `dev`",
    source=f"{GETTING_STARTED}; awslabs/awsome-distributed-ai, hyperpod-mental-model.md",
    by_hand="scontrol show partition dev",
)
def partition_dev(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition == "dev":
            yield Breach(
                ("node_groups", name, "partition"),
                "HyperPod puts every compute node, and login nodes with them, into a default "
                "partition `dev` of its own: this group would not have the partition to itself.",
                f"partition: {_own_partition(name)}",
            )


@RULES.rule(
    8,
    "error",
    "No partition is called DEFAULT",
    source="Slurm documentation, slurm.conf (PartitionName)",
)
def partition_default(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition and group.partition.upper() == "DEFAULT":
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` is not a partition to slurm.conf: a line with "
                "PartitionName=DEFAULT sets the defaults of the lines after it.",
                f"partition: {_own_partition(name)}",
            )


@RULES.rule(
    23,
    "warning",
    "Controller and login nodes are not Spot",
    source="SageMaker Developer Guide, Spot instances in Amazon SageMaker HyperPod",
)
def spot_for_compute(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "spot" and group.role in ("controller", "login"):
            lost = "the queue stops" if group.role == "controller" else "people are thrown out"
            yield Breach(
                ("node_groups", name, "capacity"),
                f"AWS takes Spot instances back at two minutes' notice: without the {group.role} {lost}.",
                "{kind: on-demand}",
            )


def _own_partition(name: str) -> str:
    """The group's name as the name of its partition, unless that means something else."""
    return name if name.lower() not in ("dev", "default") else "train"
