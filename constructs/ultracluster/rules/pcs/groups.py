"""Rules on: AWS PCS. Node groups: names, numbers, images, login nodes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from ultracluster.catalog import region
from ultracluster.catalog.pcs import pcs_image_parameter, pcs_limit, pcs_name_limits, pcs_regions
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.orchestrator import Pcs
from ultracluster.config.remedy import Remedy, anywhere, ask, drop, inside, rename, write
from ultracluster.model.partitions import partitions
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import moved_to
from ultracluster.rules.sets import PCS

GUIDE = "AWS PCS User Guide"
API = "AWS PCS API reference 2023-02-10"
GROUP_API = f"{API}, CreateComputeNodeGroup"
QUEUE_API = f"{API}, CreateQueue"
QUOTAS = f"{GUIDE}, Endpoints and service quotas for AWS PCS"


def asked(environment: Environment) -> Pcs:
    """The orchestrator of an environment that these rules are run on."""
    assert isinstance(environment.orchestrator, Pcs)
    return environment.orchestrator


@PCS.rule(
    1,
    "error",
    "PCS is in the Region",
    source=f"{QUOTAS}; CloudFormation schemas of 2026-10-20, AWS::PCS::Cluster",
    date="2026-11-22",
    by_hand="aws pcs list-clusters --region <region>",
)
def region_has_pcs(environment: Environment) -> Iterator[Breach]:
    known = region(environment.region)
    if known and known.pcs is False and known.name not in pcs_regions():
        yield Breach(
            ("region",),
            f"AWS PCS has no endpoint in {known.name}, and CloudFormation does not know it there.",
            moved_to(environment, _with_pcs(known.name)),
        )


@PCS.rule(
    2,
    "warning",
    "The guide has PCS in the Region",
    source=f"{QUOTAS}; CloudFormation schemas of 2026-10-20, AWS::PCS::Cluster",
    date="2026-11-22",
    by_hand="aws pcs list-clusters --region <region>",
)
def region_in_guide(environment: Environment) -> Iterator[Breach]:
    known = region(environment.region)
    if known and known.pcs is not False and known.name not in pcs_regions():
        yield Breach(
            ("region",),
            f"the guide names no endpoint of AWS PCS in {known.name}, though CloudFormation's schemas "
            + ("have it there." if known.pcs else "could not be read for it."),
            moved_to(environment, _with_pcs(known.name)).noting(
                "or ask with the command of this rule and acknowledge this"
            ),
        )


def _with_pcs(name: str) -> str:
    return difflib.get_close_matches(name, pcs_regions(), n=1, cutoff=0)[0]


@PCS.rule(3, "warning", "There are at most 10 groups, or a raised quota", source=QUOTAS, date="2026-11-22")
def group_limit(environment: Environment) -> Iterator[Breach]:
    groups = [*environment.groups("login"), *environment.groups("compute")]
    most = pcs_limit("groups")
    if len(groups) > most:
        yield Breach(
            ("node_groups",),
            f"{len(groups)} login and compute groups: by default PCS makes {most} compute node groups in a "
            "cluster, login groups included, and refuses the next (ServiceLimitExceeded). A support case "
            "raises that; Service Quotas does not have it.",
            ask(
                "decision",
                f"{most} groups or fewer: those of one type, partition and capacity can be one; or "
                "acknowledge that AWS raised the quota",
            ),
        )


@PCS.rule(
    4, "warning", "There are at most 10 partitions, or a raised quota", source=QUOTAS, date="2026-11-22"
)
def partition_limit(environment: Environment) -> Iterator[Breach]:
    count, most = len(partitions(environment)), pcs_limit("queues")
    if count > most:
        yield Breach(
            ("node_groups",),
            f"{count} partitions: by default PCS makes {most} queues in a cluster; a support case raises "
            "that.",
            ask(
                "decision",
                f"{most} partitions or fewer: several groups can be in one; or acknowledge that "
                "AWS raised the quota",
            ),
        )


@PCS.rule(5, "error", "Group names are 3 to 25 letters, digits and hyphens", source=GROUP_API)
def group_names(environment: Environment) -> Iterator[Breach]:
    for name in environment.node_groups:
        yield from _named(name, ("node_groups", name), "a compute node group")


@PCS.rule(6, "error", "Partition names are 3 to 25 letters, digits and hyphens", source=QUEUE_API)
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
        write(near) if path[-1] == "partition" else rename(near),
    )


@PCS.rule(
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
            f"{asked(environment).slurm_version}.",
            write(parameter).noting(
                "whose value is read when the group is made or changed; or the id of an AMI"
            ),
        )


@PCS.rule(12, "warning", "The settings of a partition are of one that there is", source=QUEUE_API)
def partition_used(environment: Environment) -> Iterator[Breach]:
    there = partitions(environment)
    for name in asked(environment).partitions:
        if name not in there:
            near = difflib.get_close_matches(name, there.keys() - asked(environment).partitions.keys(), n=1)
            yield Breach(
                ("orchestrator", "partitions", name),
                f"no compute group is in partition `{name}`: no queue is made of it.",
                rename(near[0]) if near else drop(),
            )


@PCS.rule(14, "warning", "The cluster has a login group", source=f"{GUIDE}, Using login nodes")
def some_login_nodes(environment: Environment) -> Iterator[Breach]:
    if not any(group.count for group in environment.groups("login").values()):
        yield Breach(
            ("node_groups",),
            "no login node: PCS has none of its own, and people would work on the nodes that run jobs.",
            _a_login_node(environment),
        )


@PCS.rule(
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
            drop().noting("or max_count above count in a compute group"),
        )


def _a_login_node(environment: Environment) -> Remedy:
    """One node of the architecture that most compute nodes have."""
    for name in environment.groups("login"):
        return anywhere({("node_groups", name, "count"): 1})
    types = [instance_type_of(environment, group) for group in environment.groups("compute").values()]
    arm = any(known and known.architecture == "arm64" for known in types)
    name = next(one for one in ("login", "login-nodes") if one not in environment.node_groups)
    group = {
        "role": "login",
        "instance_type": "m7g.2xlarge" if arm else "m7i.2xlarge",
        "count": 1,
        "image": pcs_image_parameter("arm64" if arm else "x86_64"),
    }
    return inside(**{name: group})
