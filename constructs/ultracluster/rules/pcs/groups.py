"""Rules on: AWS PCS. Node groups: names, numbers, images, login nodes."""

from __future__ import annotations

import difflib
import re

from ultracluster.catalog import Region
from ultracluster.catalog.pcs import pcs_image_parameter, pcs_limit, pcs_name_limits, pcs_regions
from ultracluster.config.findings import YamlPath
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import Remedy, anywhere, ask, drop, inside, rename, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.remedies import moved_to
from ultracluster.rules.sets import PCS
from ultracluster.rules.sources import PCS_GUIDE

API = "AWS PCS API reference 2023-02-10"
GROUP_API = f"{API}, CreateComputeNodeGroup"
QUEUE_API = f"{API}, CreateQueue"
QUOTAS = f"{PCS_GUIDE}, Endpoints and service quotas for AWS PCS"


@PCS.error(
    1,
    f"{QUOTAS}; CloudFormation schemas of 2026-10-20, AWS::PCS::Cluster",
    "2026-11-22",
    by_hand="aws pcs list-clusters --region <region>",
)
def region_has_pcs(home: Region, cluster: Cluster) -> Breaches:
    """AWS PCS is offered in the Region."""
    if home.pcs is False and home.name not in pcs_regions():
        yield at().breach(
            f"AWS PCS has no endpoint in {home.name}, and CloudFormation does not have it there.",
            moved_to(cluster, _with_pcs(home.name)),
        )


@PCS.warning(
    2,
    f"{QUOTAS}; CloudFormation schemas of 2026-10-20, AWS::PCS::Cluster",
    "2026-11-22",
    by_hand="aws pcs list-clusters --region <region>",
)
def region_in_guide(home: Region, cluster: Cluster) -> Breaches:
    """The PCS guide lists the Region."""
    if home.pcs is not False and home.name not in pcs_regions():
        yield at().breach(
            f"the guide lists no endpoint of AWS PCS in {home.name}, though CloudFormation's schemas "
            + ("have it there." if home.pcs else "could not be read for it."),
            moved_to(cluster, _with_pcs(home.name)).noting(
                "or check with `aws pcs list-clusters --region <region>` and acknowledge this"
            ),
        )


def _with_pcs(name: str) -> str:
    return difflib.get_close_matches(name, pcs_regions(), n=1, cutoff=0)[0]


@PCS.warning(3, QUOTAS, "2026-11-22")
def group_limit(cluster: Cluster) -> Breaches:
    """A PCS cluster has at most 10 node groups, or AWS raised the quota."""
    groups = [*cluster.with_role("login"), *cluster.with_role("compute")]
    most = pcs_limit("groups")
    if len(groups) > most:
        yield at("node_groups").breach(
            f"there are {len(groups)} login and compute groups: by default PCS creates {most} compute node "
            "groups in a cluster, login groups included, and refuses the next (ServiceLimitExceeded). A "
            "support case raises the quota; Service Quotas does not list it.",
            ask(
                "decision",
                f"use {most} groups or fewer: merge those of one type, partition and capacity; or "
                "acknowledge that AWS raised the quota",
            ),
        )


@PCS.warning(4, QUOTAS, "2026-11-22")
def partition_limit(cluster: Cluster) -> Breaches:
    """A PCS cluster has at most 10 partitions, or AWS raised the quota."""
    count, most = len(cluster.partitions), pcs_limit("queues")
    if count > most:
        yield at("node_groups").breach(
            f"there are {count} partitions: by default PCS creates {most} queues in a cluster; a support "
            "case raises the quota.",
            ask(
                "decision",
                f"use {most} partitions or fewer: several groups can share one; or acknowledge that AWS "
                "raised the quota",
            ),
        )


@PCS.error(5, GROUP_API)
def group_names(group: Group) -> Breaches:
    """Group names are 3 to 25 letters, digits and hyphens."""
    yield from _named(group.name, (), "a compute node group")


@PCS.error(6, QUEUE_API)
def partition_names(group: Group) -> Breaches:
    """Partition names are 3 to 25 letters, digits and hyphens."""
    if group.role == "compute" and group.settings.partition:
        yield from _named(group.settings.partition, ("partition",), "a queue")


def _named(name: str, path: YamlPath, what: str) -> Breaches:
    shortest, longest, form = pcs_name_limits()
    if shortest <= len(name) <= longest and re.fullmatch(form, name):
        return
    near = name if name[:1].isalpha() else f"n{name}"
    near = (near if len(near) >= shortest else f"{near}-nodes")[:longest].rstrip("-")
    yield at(*path).breach(
        f"`{name}` cannot be the name of {what}: PCS takes {shortest} to {longest} letters, digits and "
        "hyphens, a letter first.",
        write(near) if path else rename(near),
    )


@PCS.error(
    10,
    f"{PCS_GUIDE}, PCS-ready DLAMI; {GROUP_API} (AmiId)",
    by_hand="aws ssm get-parameter --name "
    "/aws/service/pcs/ami/dlami-base-ubuntu2404/<x86_64|arm64>/latest/ami-id --query Parameter.Value",
)
def image_pinned(group: Group, settings: Pcs) -> Breaches:
    """Each PCS group names its image."""
    if group.settings.image is None and group.role in ("login", "compute"):
        parameter = pcs_image_parameter((group.type.architecture if group.type else "") or "x86_64")
        yield at("image").breach(
            "PCS has no default image, and its nodes require one with its agent and Slurm "
            f"{settings.slurm_version}.",
            write(parameter).noting(
                "whose value is read when the group is created or changed; or the id of an AMI"
            ),
        )


@PCS.warning(12, QUEUE_API)
def partition_exists(settings: Pcs, cluster: Cluster) -> Breaches:
    """Settings of partitions belong to partitions that exist."""
    for name in settings.partitions:
        if name not in cluster.partitions:
            free = [queue for queue in cluster.partitions if queue not in settings.partitions]
            near = difflib.get_close_matches(name, free, n=1)
            yield at("partitions", name).breach(
                f"no compute group is in partition `{name}`: no queue is created for it.",
                rename(near[0]) if near else drop(),
            )


@PCS.warning(14, f"{PCS_GUIDE}, Using login nodes")
def login_node_exists(cluster: Cluster) -> Breaches:
    """The cluster has a login node."""
    if not any(group.settings.count for group in cluster.with_role("login").values()):
        yield at("node_groups").breach(
            "there is no login node. PCS has none of its own, so people would work on the nodes that run "
            "jobs.",
            _a_login_node(cluster),
        )


@PCS.warning(15, f"{API}, ClusterSlurmConfigurationRequest (scaleDownIdleTimeInSeconds)")
def scaledown_has_effect(settings: Pcs, cluster: Cluster) -> Breaches:
    """scaledown_seconds is set only where idle nodes can end."""
    elastic = any(group.most_nodes > group.settings.count for group in cluster.groups.values())
    if "scaledown_seconds" in settings.model_fields_set and not elastic:
        yield at("scaledown_seconds").breach(
            "no group has a max_count above its count: no idle node is ever ended, so this has no effect.",
            drop().noting("or set max_count above count in a compute group"),
        )


def _a_login_node(cluster: Cluster) -> Remedy:
    """One node of the architecture that compute nodes have."""
    for name in cluster.with_role("login"):
        return anywhere({("node_groups", name, "count"): 1})
    compute = cluster.with_role("compute").values()
    arm = any(group.type and group.type.architecture == "arm64" for group in compute)
    name = next(name for name in ("login", "login-nodes") if name not in cluster.groups)
    group = {
        "role": "login",
        "instance_type": "m7g.2xlarge" if arm else "m7i.2xlarge",
        "count": 1,
        "image": pcs_image_parameter("arm64" if arm else "x86_64"),
    }
    return inside(**{name: group})
