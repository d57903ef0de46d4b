"""Rules on EFA."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.catalog import InstanceType, instance_types, nearest_instance_types
from ultracluster.config.nodes import DeclaredInstanceType
from ultracluster.config.remedy import ask, beside, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EFA, HYPERPOD, kinds_with
from ultracluster.rules.sources import NETWORK_CARDS

EFA_GUIDE = "EC2 User Guide, Elastic Fabric Adapter for AI/ML and HPC workloads on Amazon EC2"
SHOW_EFA = (
    "aws ec2 describe-instance-types --instance-types <type> --query 'InstanceTypes[].NetworkInfo.EfaInfo'"
)


@EFA.warning(1, f"{EFA_GUIDE}, supported instance types", by_hand=SHOW_EFA)
def interface_without_efa(group: Group) -> Breaches:
    """`efa_interface` is only set on a type that has EFA."""
    interface, kind = group.settings.efa_interface, group.type
    if interface and kind and kind.efa_interfaces == 0:
        yield at("efa_interface").breach(
            f"`{interface}` has no effect: {kind.name} has no EFA.",
            drop() | beside(instance_type=_nearest_with_efa(kind)) if kind.accelerator else drop(),
        )


@EFA.warning(2, f"{EFA_GUIDE}, supported instance types", by_hand=SHOW_EFA)
def training_over_tcp(cluster: Cluster) -> Breaches:
    """Accelerated nodes that train together have EFA."""
    for partition, groups in _partitions(cluster).items():
        nodes = sum(group.settings.count for group in groups.values())
        if nodes < 2:
            continue
        for name, group in groups.items():
            kind = group.type
            if kind and kind.accelerator and kind.efa_interfaces == 0:
                yield at("node_groups", name, "instance_type").breach(
                    f"{kind.name} has no EFA and partition `{partition}` has {nodes} nodes: a job "
                    "on several of them exchanges gradients over TCP.",
                    write(_nearest_with_efa(kind)),
                )


@EFA.warning(3, f"{EFA_GUIDE}, limitations: no EFA traffic between P4d/P4de and other types")
def p4_partition(cluster: Cluster) -> Breaches:
    """P4d and P4de do not share a partition with other types."""
    for partition, groups in _partitions(cluster).items():
        for name, group in groups.items():
            peers, mine = _peers(group), group.settings.instance_type
            for other, another in groups.items():
                if peers and _family(another) not in peers and _has_efa(another):
                    yield at("node_groups", name, "partition").breach(
                        f"`{name}` ({mine}) and `{other}` ({another.settings.instance_type}) are both in "
                        f"partition `{partition}`: {' and '.join(map(str.capitalize, peers))} cannot "
                        "exchange EFA traffic with other types, so a job on both has no EFA between them.",
                        write(_family(group)),
                    )


@EFA.warning(4, f"{EFA_GUIDE}: EFA versions by Nitro generation; Slurm, sbatch: a job takes any node")
def partition_has_one_type(cluster: Cluster) -> Breaches:
    """The accelerated nodes of a partition have one instance type."""
    for partition, groups in _partitions(cluster).items():
        accelerated = {name: group for name, group in groups.items() if group.type and group.type.accelerator}
        first = next(iter(accelerated.values()), None)
        for name, group in accelerated.items():
            mine = group.settings.instance_type
            if first is None or mine == first.settings.instance_type:
                continue
            if _peers(group) != _peers(first) and _has_efa(group, first):
                continue  # EFA003 says more
            yield at("node_groups", name, "partition").breach(
                f"partition `{partition}` has {first.settings.instance_type} and {mine}: "
                "Slurm may give one job nodes of both types, and the job then runs at the pace of the slower "
                "one.",
                write(_family(group)),
            )


@EFA.warning(5, "EC2 API reference, DescribeInstanceTypes (EfaInfo.MaximumEfaInterfaces)", by_hand=SHOW_EFA)
def efa_published(group: Group) -> Breaches:
    """AWS publishes how many EFA interfaces the type has."""
    kind = group.type
    if group.role == "compute" and kind and kind.efa_interfaces is None:
        numbers = " or ".join(map(str, kind.recommended_efa_interfaces))
        described = f"; the EC2 User Guide describes {numbers}" if numbers else ""
        yield at("instance_type").breach(
            f"AWS's API does not say how many EFA interfaces {kind.name} has{described}. "
            + _attached(group, kind),
            ask("action", "count the devices on the first node (fi_info -p efa) and acknowledge this"),
        )


@EFA.error(6, f"{NETWORK_CARDS}: one EFA per network card")
def declared_interfaces(declared: DeclaredInstanceType) -> Breaches:
    """A declared type has no more EFA interfaces than network cards."""
    if declared.efa_interfaces > declared.network_cards:
        yield at("efa_interfaces").breach(
            f"{declared.efa_interfaces} EFA interfaces on {declared.network_cards} network "
            "cards: a card takes at most one.",
            write(declared.network_cards),
        )


@EFA.warning(
    7,
    "SageMaker Developer Guide, Prerequisites for using SageMaker HyperPod: P5 takes 32 "
    "addresses with 32 cards; other types are estimated by the same rule",
    kinds=HYPERPOD,
)
def declared_addresses(declared: DeclaredInstanceType) -> Breaches:
    """A declared type takes at least one address per network card."""
    if declared.addresses < declared.network_cards:
        yield at("addresses").breach(
            f"{declared.addresses} addresses for {declared.network_cards} network cards; a P5 node "
            "takes 32 for its 32 cards. A subnet that is too small cannot be "
            "enlarged later.",
            write(declared.network_cards),
        )


@EFA.warning(
    13,
    "EC2 DescribeInstanceTypes, NetworkInfo.NetworkCards",
    "2026-11-27",
    by_hand="aws ec2 describe-instance-types --instance-types <type> --query 'InstanceTypes[].NetworkInfo'",
    kinds=kinds_with(lambda traits: traits.has_instances and not traits.validates),  # ours lay them out
)
def network_cards_published(group: Group) -> Breaches:
    """AWS has published the network cards of the instance type."""
    kind = group.type
    if group.role == "compute" and group.interfaces and kind and kind.efa_cards_assumed:
        first, last = kind.efa_cards[0], kind.efa_cards[-1]
        published = [
            one.name for one in instance_types().values() if one.accelerator and one.network_cards_api
        ]
        yield at("instance_type").breach(
            f"the launch template assumes one EFA on each of the cards {first} to {last}, because the row of "
            f"{kind.name} in catalog/instances.json has no `network_cards_api`; EC2 refuses to launch a node "
            "with a wrong layout.",
            write(*nearest_instance_types(kind.name, candidates=published, count=1)).noting(
                "or that key, from DescribeInstanceTypes"
            ),
        )


def _partitions(cluster: Cluster) -> Mapping[str, dict[str, Group]]:
    """Compute groups that have nodes, by partition."""
    return {
        partition: {name: group for name, group in groups.items() if group.settings.count}
        for partition, groups in cluster.partitions.items()
    }


def _attached(group: Group, kind: InstanceType) -> str:
    if group.in_service:
        return "HyperPod attaches them; whether it attaches all of them cannot be told here."
    numbers = kind.recommended_efa_interfaces
    return f"Nodes are launched with {numbers[0] if numbers else 'none'}."


def _family(group: Group) -> str:
    return group.settings.instance_type.partition(".")[0]


def _peers(group: Group) -> tuple[str, ...]:
    """The only families with which nodes of the group exchange EFA traffic; empty where there is no limit."""
    return group.type.efa_peers if group.type else ()


def _has_efa(*groups: Group) -> bool:
    return all(group.type is not None and group.type.efa_interfaces != 0 for group in groups)


def _nearest_with_efa(kind: InstanceType) -> str:
    """The accelerated type with EFA nearest in size, of the same family if there is one."""
    with_efa = (
        one for one in instance_types().values() if one.efa_interfaces and one.hyperpod and one.accelerator
    )
    return min(
        with_efa,
        key=lambda one: (one.family != kind.family, abs(one.vcpu - kind.vcpu), one.name),
    ).name
