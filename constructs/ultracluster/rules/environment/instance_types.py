"""Rules on: instance types that are known, and those that the environment declares."""

from __future__ import annotations

from ultracluster.catalog import instance_type, instance_types, nearest_instance_types
from ultracluster.config import Environment
from ultracluster.config.remedy import ask, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV
from ultracluster.rules.sources import BOTOCORE


@ENV.error(
    6,
    f"EC2 DescribeInstanceTypes; {BOTOCORE} sagemaker: ClusterInstanceType",
    by_hand="aws ec2 describe-instance-types --instance-types <type>",
)
def instance_type_known(group: Group, environment: Environment | None) -> Breaches:
    """The catalogue or the file describes each instance type."""
    if group.type is not None:
        return
    name = group.settings.instance_type
    declared = environment.instance_types if environment else {}
    near = [other for other in declared if other.partition(".")[0] == name.partition(".")[0]]
    near += nearest_instance_types(name)
    if group.in_service:
        near = [other for other in near if not (known := instance_type(other)) or known.hyperpod]
    yield at("instance_type").breach(
        f"the catalogue has no instance type `{name}`: its network cards, addresses and "
        "place in HyperPod are unknown, and nothing about this group can be checked.",
        (write(*near) if near else ask("fact", "a type of the catalogue")).noting(
            f"one just announced is declared under instance_types: {{{name}: ...}}"
        ),
    )


@ENV.warning(
    35,
    'EC2 Instance Types guide, "Instance type naming conventions"',
    "2026-11-27",
    by_hand="aws ec2 describe-instance-types --instance-types <type>",
)
def instance_type_estimated(group: Group) -> Breaches:
    """The catalogue or the file should describe each instance type without accelerators."""
    type_ = group.type
    if type_ is None or not type_.estimated or group.in_service:  # HyperPod's own list refuses it
        return
    alike = [one.name for one in instance_types().values() if one.architecture == type_.architecture]
    yield at("instance_type").breach(
        f"the catalogue has no `{type_.name}`: {type_.vcpu} vCPUs, {type_.memory_gib:g} GiB and "
        f"{type_.ipv4_per_interface} addresses on an interface are estimates by its name, and no price is "
        "known.",
        write(*nearest_instance_types(type_.name, candidates=alike)).noting("or acknowledge the estimate"),
    )


@ENV.warning(7, "the catalogue: EC2 DescribeInstanceTypes")
def declaration_outdated(cluster: Cluster) -> Breaches:
    """A declared instance type is not in the catalogue yet."""
    for name in cluster.environment.instance_types:
        if instance_type(name):
            yield at("instance_types", name).breach(
                f"the catalogue now has `{name}`. Its figures are compared with AWS's, so they are "
                "used and this declaration is not.",
                drop(),
            )


@ENV.warning(8, "this file: `node_groups`")
def declaration_unused(cluster: Cluster) -> Breaches:
    """A declared instance type is used by a node group."""
    used = {group.settings.instance_type for group in cluster.groups.values()}
    for name, declared in cluster.environment.instance_types.items():
        if name not in used and not instance_type(name) and not declared.announced:
            yield at("instance_types", name).breach(
                f"`{name}` is declared and no node group uses it.",
                drop().noting(f"or write instance_type: {name} in a node group"),
            )


@ENV.warning(
    18,
    "the catalogue: instances.json, `families` and `types`",
    "2026-11-22",
    by_hand="nvidia-smi topo -m; lnetctl net show  (on a node of that type)",
)
def type_facts(cluster: Cluster) -> Breaches:
    """The catalogue or the file has every fact of an instance type that nodes need."""
    reported: set[str] = set()
    for name, group in cluster.groups.items():
        type_ = group.type
        if type_ is None or type_.name in reported or not (unknown := type_.unknown_facts):
            continue
        reported.add(type_.name)
        place = f"instance_types.{type_.name}" if type_.declared else "its row in the catalogue"
        yield at(
            *("instance_types", type_.name) if type_.declared else ("node_groups", name, "instance_type")
        ).breach(
            f"facts of {type_.name} are missing: {', '.join(unknown)}. Its nodes go by what they find in "
            "their hardware, and do without what cannot be found there; plans leave it out.",
            ask("fact", f"add {', '.join(unknown)} to {place}"),
        )
