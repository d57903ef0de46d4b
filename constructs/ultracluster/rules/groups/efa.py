"""Rules on: EFA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD
from ultracluster.config.remedy import ask, beside, drop, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EFA

EFA_GUIDE = "EC2 User Guide, Elastic Fabric Adapter for AI/ML and HPC workloads on Amazon EC2"
CARDS_GUIDE = "EC2 User Guide, Maximize network bandwidth on instances with multiple network cards"
SHOW_EFA = (
    "aws ec2 describe-instance-types --instance-types <type> --query 'InstanceTypes[].NetworkInfo.EfaInfo'"
)


@EFA.rule(
    1,
    "warning",
    "efa_interface is set on a type that has EFA",
    source=f"{EFA_GUIDE}, supported instance types",
    by_hand=SHOW_EFA,
)
def interface_without_efa(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if group.efa_interface and known and known.efa_interfaces == 0:
            yield Breach(
                ("node_groups", name, "efa_interface"),
                f"`{group.efa_interface}` is asked for, and {known.name} has no EFA.",
                drop() | beside(instance_type=_nearest_with_efa(known)) if known.accelerator else drop(),
            )


@EFA.rule(
    2,
    "warning",
    "Accelerated nodes that train together have EFA",
    source=f"{EFA_GUIDE}, supported instance types",
    by_hand=SHOW_EFA,
)
def training_over_tcp(environment: Environment) -> Iterator[Breach]:
    for partition, groups in _partitions(environment).items():
        nodes = sum(group.count for group in groups.values())
        if nodes < 2:
            continue
        for name, group in groups.items():
            known = instance_type_of(environment, group)
            if known and known.accelerator and known.efa_interfaces == 0:
                yield Breach(
                    ("node_groups", name, "instance_type"),
                    f"{known.name} has no EFA and partition `{partition}` has {nodes} nodes: a job "
                    "on several of them exchanges gradients over TCP.",
                    write(_nearest_with_efa(known)),
                )


@EFA.rule(
    3,
    "warning",
    "P4d and P4de share no partition with other types",
    source=f"{EFA_GUIDE}, limitations: no EFA traffic between P4d/P4de and other types",
)
def p4_with_others(environment: Environment) -> Iterator[Breach]:
    for partition, groups in _partitions(environment).items():
        for name in groups:
            peers = _peers(environment, groups[name])
            for other, group in groups.items():
                if peers and _family(group) not in peers and _has_efa(environment, group):
                    yield Breach(
                        ("node_groups", name, "partition"),
                        f"`{name}` ({groups[name].instance_type}) and `{other}` "
                        f"({group.instance_type}) are both in partition `{partition}`: "
                        f"{' and '.join(map(str.capitalize, peers))} cannot exchange EFA traffic with other "
                        "types, so a job on both has no EFA between them.",
                        write(_family(groups[name])),
                    )


@EFA.rule(
    4,
    "warning",
    "The accelerated nodes of a partition are of one type",
    source=f"{EFA_GUIDE}: EFA versions by Nitro generation; Slurm, sbatch: a job takes any node",
)
def mixed_partition(environment: Environment) -> Iterator[Breach]:
    for partition, groups in _partitions(environment).items():
        accelerated = {
            name: group
            for name, group in groups.items()
            if (known := instance_type_of(environment, group)) and known.accelerator
        }
        first = next(iter(accelerated.values()), None)
        for name, group in accelerated.items():
            if first is None or group.instance_type == first.instance_type:
                continue
            apart = _peers(environment, group) != _peers(environment, first)
            if apart and _has_efa(environment, group, first):
                continue  # EFA003 says more
            yield Breach(
                ("node_groups", name, "partition"),
                f"partition `{partition}` has {first.instance_type} and {group.instance_type}: "
                "Slurm may give one job nodes of both, and then it runs at the pace of the slower "
                "accelerators and interfaces.",
                write(group.instance_type.partition(".")[0]),
            )


@EFA.rule(
    5,
    "warning",
    "The number of EFA interfaces of a type is published",
    source="EC2 API reference, DescribeInstanceTypes (EfaInfo.MaximumEfaInterfaces)",
    by_hand=SHOW_EFA,
)
def efa_unknown(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known and known.efa_interfaces is None:
            numbers = " or ".join(map(str, known.recommended_efa_interfaces))
            described = f"; the EC2 User Guide describes {numbers}" if numbers else ""
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"AWS's API does not say how many EFA interfaces {known.name} has{described}. "
                + _attached(environment, known),
                ask("action", "count the devices on the first node (fi_info -p efa) and acknowledge this"),
            )


@EFA.rule(
    6,
    "error",
    "A declared type has no more EFA interfaces than network cards",
    source=f"{CARDS_GUIDE}: one EFA per network card",
)
def declared_interfaces(environment: Environment) -> Iterator[Breach]:
    for name, declared in environment.instance_types.items():
        if declared.efa_interfaces > declared.network_cards:
            yield Breach(
                ("instance_types", name, "efa_interfaces"),
                f"{declared.efa_interfaces} EFA interfaces on {declared.network_cards} network "
                "cards: a card takes one at most.",
                write(declared.network_cards),
            )


@EFA.rule(
    7,
    "warning",
    "A declared type takes an address per network card",
    source="SageMaker Developer Guide, Prerequisites for using SageMaker HyperPod: P5 takes 32 "
    "addresses with 32 cards; other types are estimated by the same rule",
)
def declared_addresses(environment: Environment) -> Iterator[Breach]:
    for name, declared in environment.instance_types.items():
        if declared.addresses < declared.network_cards:
            yield Breach(
                ("instance_types", name, "addresses"),
                f"{declared.addresses} addresses for {declared.network_cards} network cards; P5 "
                "takes 32 on its 32 cards under HyperPod with Slurm. A subnet planned with too "
                "few cannot be changed later.",
                write(declared.network_cards),
            )


def _partitions(environment: Environment) -> Mapping[str, dict[str, NodeGroup]]:
    """Compute groups that have nodes, by partition."""
    result: dict[str, dict[str, NodeGroup]] = {}
    for name, group in environment.groups("compute").items():
        if group.partition and group.count:
            result.setdefault(group.partition, {})[name] = group
    return result


def _attached(environment: Environment, known: InstanceType) -> str:
    if environment.orchestrator.kind in HYPERPOD:
        return "HyperPod attaches them; nothing here can tell whether it attached all."
    numbers = known.recommended_efa_interfaces
    return f"Nodes are launched with {numbers[0] if numbers else 'none'}."


def _family(group: NodeGroup) -> str:
    return group.instance_type.partition(".")[0]


def _peers(environment: Environment, group: NodeGroup) -> tuple[str, ...]:
    """The only families with which nodes of the group exchange EFA traffic; empty where there is no limit."""
    known = instance_type_of(environment, group)
    return known.efa_peers if known else ()


def _has_efa(environment: Environment, *groups: NodeGroup) -> bool:
    known = [instance_type_of(environment, group) for group in groups]
    return all(one is not None and one.efa_interfaces != 0 for one in known)


def _nearest_with_efa(known: InstanceType) -> str:
    """The accelerated type with EFA nearest in size, of the same family if there is one."""
    with_efa = (
        one for one in instance_types().values() if one.efa_interfaces and one.hyperpod and one.accelerator
    )
    return min(
        with_efa,
        key=lambda one: (one.family != known.family, abs(one.vcpu - known.vcpu), one.name),
    ).name
