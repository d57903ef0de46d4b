"""Rules on: AWS PCS. UltraServers, network cards, Spot pools and blocks of node groups."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.catalog import ultraservers
from ultracluster.config.pcs import PROLOG, Pcs
from ultracluster.config.remedy import ask, beside, drop, write
from ultracluster.config.slurm import PROLOG_FLAGS, Partition
from ultracluster.model import Cluster, Group
from ultracluster.model.capacity import fabric_of
from ultracluster.model.network_cards import network_card_plan, takes_combined_efa
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.pcs.groups import API, GROUP_API
from ultracluster.rules.sets import PCS
from ultracluster.rules.sources import NETWORK_CARDS, PCS_GUIDE

BLOCKS = f"{PCS_GUIDE}, Using Amazon EC2 Capacity Blocks for ML with AWS PCS"
ULTRASERVERS = f"{PCS_GUIDE}, UltraServers in AWS PCS"
IMEX = f"{PCS_GUIDE}, Configure UltraServer instances"


@PCS.error(22, f"{ULTRASERVERS}; {BLOCKS}")
def ultraserver_size(group: Group) -> Breaches:
    """An UltraServer group fits into one UltraServer."""
    kind, count = group.type, group.settings.count
    if group.role != "compute" or kind is None or fabric_of(kind) != "ultraserver":
        return
    most = max(ultraservers()[name].instances for name in kind.ultraserver)
    if group.most_nodes > most:
        elastic = bool(group.settings.max_count)
        yield at("max_count" if elastic else "count").breach(
            f"{group.most_nodes} nodes do not fit: a group takes one Capacity Block, and the largest "
            f"UltraServer of {kind.name} has {most}.",
            (write(most) & beside(count=min(count, most)) if elastic else write(most)).noting(
                "and add a group for each further UltraServer's block"
            ),
        )


@PCS.error(23, ULTRASERVERS)
def ultraserver_partition(cluster: Cluster, settings: Pcs) -> Breaches:
    """UltraServers have an exclusive partition of their own."""
    for partition, groups in cluster.partitions.items():
        ultra = [name for name, group in groups.items() if _is_ultra(group)]
        if not ultra:
            continue
        for name in groups:
            if name not in ultra:
                yield at("node_groups", name, "partition").breach(
                    f"partition `{partition}` contains the UltraServer of `{ultra[0]}`: PCS writes Slurm's "
                    "block topology only for queues that contain nothing but UltraServers.",
                    write(name),
                )
        if not settings.partitions.get(partition, Partition()).exclusive:
            yield at("orchestrator", "partitions", partition, "exclusive").breach(
                f"partition `{partition}` contains UltraServers, whose jobs require whole nodes "
                "(`--exclusive`).",
                write(True),
            )


@PCS.error(24, ULTRASERVERS)
def ultraserver_ratio(cluster: Cluster) -> Breaches:
    """Sizes of UltraServer groups in a partition differ by powers of two."""
    for groups in cluster.partitions.values():
        ultra = {name: group.most_nodes for name, group in groups.items() if _is_ultra(group)}
        least = min((count for count in ultra.values() if count), default=0)
        for name, count in ultra.items():
            ratio, rest = divmod(count, least) if least else (1, 0)
            if count and (rest or ratio & (ratio - 1)):
                yield at("node_groups", name, "count").breach(
                    f"{count} nodes do not go with a group of {least}: the sizes of Slurm's blocks must be "
                    "one size times powers of two.",
                    write(least * 2 ** (count // least).bit_length() // 2),
                )


def _is_ultra(group: Group) -> bool:
    return group.type is not None and fabric_of(group.type) == "ultraserver"


@PCS.error(
    25,
    NETWORK_CARDS,
    by_hand="aws ec2 describe-instance-types --instance-types <type> --query 'InstanceTypes[].NetworkInfo'",
)
def network_cards_known(group: Group) -> Breaches:
    """The network cards of the instance type are known."""
    if group.role != "compute" or group.type is None:
        return
    try:
        network_card_plan(group.type, efa=group.efa if takes_combined_efa(group.type) else "efa-only")
    except ValueError as error:
        yield at("instance_type").breach(
            f"the launch template must name each network interface of a node, and cannot: {error}.",
            ask("fact", "use a type of the catalogue, or HyperPod, which sets interfaces up itself"),
        )


@PCS.warning(
    26,
    f"{PCS_GUIDE}, Create or update an EC2 launch template; awslabs/awsome-distributed-ai, "
    "architectures/aws-pcs",
)
def efa_interface_kind(cluster: Cluster, settings: Pcs) -> Breaches:
    """EFA interfaces are of the kind that the PCS guide shows."""
    for name, group in cluster.with_role("compute").items():
        kind = group.type
        if kind is None or kind.efa_interfaces == 0:
            continue
        if not takes_combined_efa(kind):
            yield at("node_groups", name, "instance_type").breach(
                f"the EFA cards of {kind.name} take only `efa-only`, and AWS's guide for PCS shows only "
                "`efa`: whether PCS accepts `efa-only` is not known.",
                ask("action", "try one node first, and acknowledge this"),
            )
        elif settings.efa_interface == "efa-only":
            yield at("orchestrator", "efa_interface").breach(
                "AWS's guide for PCS shows only `efa`, and AWS's own templates say that it must be `efa`: "
                "whether PCS accepts `efa-only` is not known.",
                write("efa").noting("or try one node first and acknowledge this"),
            )
            return


@PCS.warning(
    27,
    IMEX,
    by_hand="nvidia-imex-ctl -N  # in an exclusive job, on each of its nodes",
)
def imex_setup(settings: Pcs, cluster: Cluster) -> Breaches:
    """UltraServers are set up for NVLink between nodes."""
    if not any(group.type and group.type.imex for group in cluster.with_role("compute").values()):
        return
    given = {key.lower(): (key, str(value)) for key, value in settings.slurm_settings.items()}
    if settings.imex and settings.lifecycle != "none":
        yield from _beside_our_prolog(given, settings.slurm_version)
    elif "prolog" not in given:
        yield at("lifecycle" if settings.imex else "imex").breach(
            "jobs have no IMEX configuration: NCCL does not use NVLink between nodes, or fails.",
            write("node-bootstrapped" if settings.imex else True).noting(
                "or a Prolog of the image in orchestrator.slurm_settings"
            ),
        )


def _beside_our_prolog(given: Mapping[str, tuple[str, str]], version: str) -> Breaches:
    if "prolog" in given and given["prolog"][1] != PROLOG:
        key, value = given["prolog"]
        yield at("slurm_settings", key).breach(
            f"Slurm runs {value} in place of the IMEX prolog, which is on every node as {PROLOG}.",
            drop().noting(
                f"and start {PROLOG} from your own; or set orchestrator.imex: false if yours does the same"
            ),
        )
    key, value = given.get("prologflags", ("", PROLOG_FLAGS))
    lacking = [flag for flag in ("Alloc", "NoHold") if flag.lower() not in value.lower().split(",")]
    if lacking:
        yield at("slurm_settings", key).breach(
            f"{value} without {' and '.join(lacking)}: the prologs of a job's nodes must run at the same "
            "time, at its allocation, because they wait for each other's IMEX.",
            (drop() | write(PROLOG_FLAGS)).noting("PrologFlags are set for UltraServers by default"),
        )
    if version < "25.05":
        yield at("slurm_version").breach(
            f"AWS describes IMEX on PCS from Slurm 25.05 on, and this cluster has {version}.", write("25.11")
        )


@PCS.warning(
    30,
    "EC2 User Guide, Use allocation strategies to determine how EC2 Fleet fulfills Spot capacity; "
    f"{API}, SpotOptions",
)
def spot_allocation(group: Group) -> Breaches:
    """Spot pools are not chosen by price only."""
    if group.capacity.kind == "spot" and group.capacity.allocation == "lowest-price":
        yield at("capacity", "allocation").breach(
            "the cheapest pools are interrupted most often, and one interrupted node ends the job on all "
            "nodes.",
            write("price-capacity-optimized"),
        )


@PCS.warning(31, f"{BLOCKS}; {GROUP_API} (scalingConfiguration)")
def block_group_fixed(group: Group) -> Breaches:
    """A group from a Capacity Block keeps all of its nodes."""
    count, most = group.settings.count, group.most_nodes
    if group.role == "compute" and group.capacity.kind == "capacity-block" and count < most:
        yield at("count").breach(
            f"{count} to {most} nodes use a block that is paid for completely: idle nodes end, and the next "
            "job waits until they are back.",
            write(most),
        )
