"""Rules on: AWS PCS. Node groups: roles, names, partitions, counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ultracluster.catalog.pcs import pcs_image_parameter, pcs_limit, pcs_name_limits
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import Pcs
from ultracluster.rules.engine import Breach, RuleSet
from ultracluster.rules.types import instance_type_of

RULES = RuleSet("PCS", "AWS PCS", kinds=frozenset({"pcs"}))

GUIDE = "AWS PCS User Guide"
API = "AWS PCS API reference 2023-02-10"
GROUP_API = f"{API}, CreateComputeNodeGroup"
QUEUE_API = f"{API}, CreateQueue"
QUOTAS = f"{GUIDE}, Quotas for AWS PCS; bioteam.net on PCS (the limits met in practice)"


def asked(environment: Environment) -> Pcs:
    """The orchestrator of an environment that these rules are run on."""
    assert isinstance(environment.orchestrator, Pcs)
    return environment.orchestrator


def partitions(environment: Environment) -> Mapping[str, dict[str, NodeGroup]]:
    """The compute groups by partition, and those without one by their own name."""
    found: dict[str, dict[str, NodeGroup]] = {}
    for name, group in environment.groups("compute").items():
        found.setdefault(group.partition or name, {})[name] = group
    return found


@RULES.rule(1, "error", "There is no controller group", source=f"{GUIDE}, Key concepts: the controller")
def no_controller(environment: Environment) -> Iterator[Breach]:
    for name in environment.groups("controller"):
        yield Breach(
            ("node_groups", name, "role"),
            "PCS runs Slurm's controller itself, in an account of its own: there are no nodes for it.",
            f"remove `{name}`; orchestrator.size says how many nodes and jobs the controller takes",
        )


@RULES.rule(2, "error", "No group has the role `system`", source=GROUP_API)
def no_system_group(environment: Environment) -> Iterator[Breach]:
    for name in environment.groups("system"):
        yield Breach(
            ("node_groups", name, "role"),
            "`system` is for Kubernetes add-ons; on PCS a group is login or compute.",
            f"role: compute, or remove `{name}`",
        )


@RULES.rule(3, "error", "There are at most 10 groups", source=QUOTAS)
def group_limit(environment: Environment) -> Iterator[Breach]:
    groups = [*environment.groups("login"), *environment.groups("compute")]
    most = pcs_limit("groups")
    if len(groups) > most:
        yield Breach(
            ("node_groups",),
            f"{len(groups)} login and compute groups: PCS makes {most} compute node groups in a cluster, "
            "login groups included, refuses the next (ServiceLimitExceeded), and does not raise that.",
            f"{most} groups or fewer: those of one type, partition and capacity can be one",
        )


@RULES.rule(4, "error", "There are at most 10 partitions", source=QUOTAS)
def partition_limit(environment: Environment) -> Iterator[Breach]:
    count, most = len(partitions(environment)), pcs_limit("queues")
    if count > most:
        yield Breach(
            ("node_groups",),
            f"{count} partitions: PCS makes {most} queues in a cluster, and does not raise that.",
            f"{most} partitions or fewer: several groups can be in one",
        )


@RULES.rule(5, "error", "Group names are 3 to 25 letters, digits and hyphens", source=GROUP_API)
def group_names(environment: Environment) -> Iterator[Breach]:
    for name in environment.node_groups:
        yield from _named(name, ("node_groups", name), "a compute node group")


@RULES.rule(6, "error", "Partition names are 3 to 25 letters, digits and hyphens", source=QUEUE_API)
def partition_names(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition:
            yield from _named(group.partition, ("node_groups", name, "partition"), "a queue")


def _named(name: str, path: Path, what: str) -> Iterator[Breach]:
    shortest, longest, form = pcs_name_limits()
    if shortest <= len(name) <= longest and re.fullmatch(form, name):
        return
    near = name if name[:1].isalpha() else f"n{name}"
    near = (near if len(near) >= shortest else f"{near}-nodes")[:longest].rstrip("-")
    yield Breach(
        path,
        f"`{name}` cannot be the name of {what}: PCS takes {shortest} to {longest} letters, digits and "
        "hyphens, a letter first.",
        near,
    )


@RULES.rule(7, "error", "A compute group has a partition", source=QUEUE_API)
def compute_has_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition is None:
            yield Breach(
                ("node_groups", name, "partition"),
                "a compute group without a partition is in no queue: no job can run on it.",
                f"partition: {name}",
            )


@RULES.rule(8, "error", "Only compute groups have a partition", source=f"{GUIDE}, Using login nodes")
def login_has_no_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("login").items():
        if group.partition is not None:
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` on a login group: jobs would be placed on the nodes where people work.",
                "remove partition",
            )


@RULES.rule(9, "error", "A login group has a fixed number of nodes", source=f"{GUIDE}, Using login nodes")
def login_is_static(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("login").items():
        if group.greatest != group.count:
            yield Breach(
                ("node_groups", name, "max_count"),
                f"{group.count} to {group.greatest} login nodes: PCS adds nodes for jobs, and none run "
                "there. Its login nodes are a group whose smallest and greatest number are equal.",
                f"count: {group.greatest}, and remove max_count",
            )


@RULES.rule(
    10,
    "error",
    "Each group names its image",
    source=f"{GUIDE}, PCS-ready DLAMI; {GROUP_API} (AmiId)",
    by_hand="aws ssm get-parameter --name "
    "/aws/service/pcs/ami/dlami-base-ubuntu2404/<x86_64|arm64>/latest/ami-id --query Parameter.Value",
)
def image_is_pinned(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.image is not None or group.role not in ("login", "compute"):
            continue
        known = instance_type_of(environment, group)
        parameter = pcs_image_parameter((known.architecture if known else "") or "x86_64")
        yield Breach(
            ("node_groups", name, "image"),
            "PCS has no image of its own, and its nodes need one with its agent and Slurm "
            f"{asked(environment).slurm_version}. A name that means the latest is read again at each "
            "deployment and then replaces the nodes, so it is the id that is named.",
            f"image: ami-..., which `aws ssm get-parameter --region {environment.region} --name {parameter} "
            "--query Parameter.Value --output text` prints",
        )


@RULES.rule(
    11,
    "error",
    "No partition is called DEFAULT",
    source="Slurm documentation, slurm.conf (PartitionName)",
)
def partition_default(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition and group.partition.upper() == "DEFAULT":
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` is not a partition to slurm.conf: a line with PartitionName=DEFAULT "
                "sets the defaults of the lines after it.",
                f"partition: {name if name.upper() != 'DEFAULT' else 'train'}",
            )


@RULES.rule(12, "warning", "The settings of a partition are of one that there is", source=QUEUE_API)
def partition_used(environment: Environment) -> Iterator[Breach]:
    there = partitions(environment)
    for name in asked(environment).partitions:
        if name not in there:
            yield Breach(
                ("orchestrator", "partitions", name),
                f"no compute group is in partition `{name}`: no queue is made of it.",
                f"{' or '.join(there) or 'remove it'}",
            )


@RULES.rule(13, "warning", "The cluster has compute nodes", source=f"{GROUP_API} (scalingConfiguration)")
def some_compute_nodes(environment: Environment) -> Iterator[Breach]:
    compute = environment.groups("compute")
    if not any(group.greatest for group in compute.values()):
        name = next(iter(compute), None)
        yield Breach(
            ("node_groups", name, "count") if name else ("node_groups",),
            "no compute group may have a node: the cluster comes up and cannot run a job.",
            "count or max_count: 1 or more"
            if name
            else "a group with role: compute, a partition and a count",
        )


@RULES.rule(14, "warning", "The cluster has a login group", source=f"{GUIDE}, Using login nodes")
def some_login_nodes(environment: Environment) -> Iterator[Breach]:
    if not any(group.count for group in environment.groups("login").values()):
        yield Breach(
            ("node_groups",),
            "no login node: PCS has none of its own, and people would work on the nodes that run jobs.",
            "login: {role: login, instance_type: m7i.2xlarge, count: 1, image: ami-...}",
        )


@RULES.rule(
    15,
    "warning",
    "scaledown_seconds is set where nodes end",
    source=f"{API}, ClusterSlurmConfigurationRequest (scaleDownIdleTimeInSeconds)",
)
def scaledown_says_something(environment: Environment) -> Iterator[Breach]:
    fields = asked(environment).model_fields_set
    if "scaledown_seconds" in fields and all(g.greatest == g.count for g in environment.node_groups.values()):
        yield Breach(
            ("orchestrator", "scaledown_seconds"),
            "every group has as many nodes as it may ever have: none ends for want of work.",
            "remove scaledown_seconds, or max_count above count in a compute group",
        )
