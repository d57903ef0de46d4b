"""Rules on: AWS PCS. UltraServers, network cards, Spot pools and blocks of node groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.catalog import ultraservers
from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.pcs import PROLOG
from ultracluster.config.remedy import ask, beside, drop, write
from ultracluster.config.slurm import PROLOG_FLAGS, Partition
from ultracluster.model.capacity import fabric_of
from ultracluster.model.network_cards import network_card_plan, takes_combined_efa
from ultracluster.model.partitions import partitions
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.pcs.groups import API, GROUP_API, GUIDE, asked
from ultracluster.rules.sets import PCS

BLOCKS = f"{GUIDE}, Using Amazon EC2 Capacity Blocks for ML with AWS PCS"
ULTRASERVERS = f"{GUIDE}, UltraServers in AWS PCS"
IMEX = f"{GUIDE}, Configure UltraServer instances"


@PCS.rule(22, "error", "An UltraServer group fits into one UltraServer", source=f"{ULTRASERVERS}; {BLOCKS}")
def ultraserver_size(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known is None or fabric_of(known) != "ultraserver":
            continue
        most = max(ultraservers()[one].instances for one in known.ultraserver)
        if group.greatest > most:
            yield Breach(
                ("node_groups", name, "max_count" if group.max_count else "count"),
                f"{group.greatest} nodes: a group takes one Capacity Block, and the largest UltraServer of "
                f"{known.name} has {most}.",
                (
                    write(most) & beside(count=min(group.count, most)) if group.max_count else write(most)
                ).noting("and a group for each further UltraServer's block"),
            )


@PCS.rule(23, "error", "UltraServers have a partition to themselves, with whole nodes", source=ULTRASERVERS)
def ultraserver_partition(environment: Environment) -> Iterator[Breach]:
    settings = asked(environment).partitions
    for partition, groups in partitions(environment).items():
        ultra = [name for name, group in groups.items() if _is_ultra(environment, group)]
        if not ultra:
            continue
        for name in groups:
            if name not in ultra:
                yield Breach(
                    ("node_groups", name, "partition"),
                    f"partition `{partition}` has the UltraServer of `{ultra[0]}`: PCS writes Slurm's block "
                    "topology for queues of UltraServers alone.",
                    write(name),
                )
        if not settings.get(partition, Partition()).exclusive:
            yield Breach(
                ("orchestrator", "partitions", partition, "exclusive"),
                f"partition `{partition}` has UltraServers, whose jobs take whole nodes (`--exclusive`).",
                write(True),
            )


@PCS.rule(24, "error", "UltraServer groups of a partition differ by powers of two", source=ULTRASERVERS)
def ultraserver_ratio(environment: Environment) -> Iterator[Breach]:
    for groups in partitions(environment).values():
        ultra = {name: group.greatest for name, group in groups.items() if _is_ultra(environment, group)}
        least = min((count for count in ultra.values() if count), default=0)
        for name, count in ultra.items():
            ratio, rest = divmod(count, least) if least else (1, 0)
            if count and (rest or ratio & (ratio - 1)):
                yield Breach(
                    ("node_groups", name, "count"),
                    f"{count} nodes beside a group of {least}: the sizes of Slurm's blocks are one size "
                    "times powers of two.",
                    write(least * 2 ** (count // least).bit_length() // 2),
                )


def _is_ultra(environment: Environment, group: NodeGroup) -> bool:
    known = instance_type_of(environment, group)
    return known is not None and fabric_of(known) == "ultraserver"


@PCS.rule(
    25,
    "error",
    "The network cards of the type are known",
    source="EC2 User Guide, Maximize network bandwidth on instances with multiple network cards",
    by_hand="aws ec2 describe-instance-types --instance-types <type> --query 'InstanceTypes[].NetworkInfo'",
)
def cards_known(environment: Environment) -> Iterator[Breach]:
    kind = asked(environment).efa_interface
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known is None:
            continue
        try:
            network_card_plan(known, efa=kind if takes_combined_efa(known) else "efa-only")
        except ValueError as error:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"the launch template names each network interface of a node, and that fails: {error}.",
                ask("fact", "a type of the catalogue, or HyperPod, which lays interfaces out itself"),
            )


@PCS.rule(
    26,
    "warning",
    "EFA interfaces are of the kind that PCS's guide shows",
    source=f"{GUIDE}, Create or update an EC2 launch template; awslabs/awsome-distributed-ai, "
    "architectures/aws-pcs",
)
def efa_only_open(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known is None or known.efa_interfaces == 0:
            continue
        if not takes_combined_efa(known):
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"the EFA cards of {known.name} take `efa-only` alone, and AWS's guide for PCS shows `efa` "
                "alone: whether PCS accepts the other is not known.",
                ask("action", "try one node first, and acknowledge this"),
            )
        elif asked(environment).efa_interface == "efa-only":
            yield Breach(
                ("orchestrator", "efa_interface"),
                "AWS's guide for PCS shows `efa` alone, and AWS's own templates say that it must be that: "
                "whether PCS accepts `efa-only` is not known.",
                write("efa").noting("or try one node first and acknowledge this"),
            )
            return


@PCS.rule(
    27,
    "warning",
    "UltraServers run NVLink between nodes",
    source=IMEX,
    by_hand="nvidia-imex-ctl -N  # in an exclusive job, on each of its nodes",
)
def imex(environment: Environment) -> Iterator[Breach]:
    known = [instance_type_of(environment, group) for group in environment.groups("compute").values()]
    if not any(one and one.imex for one in known):
        return
    orchestrator = asked(environment)
    settings = {key.lower(): (key, str(value)) for key, value in orchestrator.slurm_settings.items()}
    if orchestrator.imex and orchestrator.lifecycle != "none":
        yield from _beside_our_prolog(settings, orchestrator.slurm_version)
    elif "prolog" not in settings:
        off = "lifecycle" if orchestrator.imex else "imex"
        yield Breach(
            ("orchestrator", off),
            "nobody writes the IMEX configuration of jobs: NCCL leaves NVLink between nodes unused, or "
            "fails.",
            write("node-bootstrapped" if orchestrator.imex else True).noting(
                "or a Prolog of the image in orchestrator.slurm_settings"
            ),
        )


def _beside_our_prolog(settings: Mapping[str, tuple[str, str]], version: str) -> Iterator[Breach]:
    if "prolog" in settings and settings["prolog"][1] != PROLOG:
        key, value = settings["prolog"]
        yield Breach(
            ("orchestrator", "slurm_settings", key),
            f"Slurm runs {value} in place of the IMEX prolog, which is on every node as {PROLOG}.",
            drop().noting(f"and run {PROLOG} from yours; or orchestrator.imex: false if yours does the same"),
        )
    key, value = settings.get("prologflags", ("", PROLOG_FLAGS))
    lacking = [flag for flag in ("Alloc", "NoHold") if flag.lower() not in value.lower().split(",")]
    if lacking:
        yield Breach(
            ("orchestrator", "slurm_settings", key),
            f"{value} without {' and '.join(lacking)}: the prologs of a job's nodes have to run at once, at "
            "its allocation, and wait for each other's IMEX.",
            (drop() | write(PROLOG_FLAGS)).noting("without it, it is set for UltraServers"),
        )
    if version < "25.05":
        yield Breach(
            ("orchestrator", "slurm_version"),
            f"AWS describes IMEX on PCS from Slurm 25.05 on, and this cluster has {version}.",
            write("25.11"),
        )


@PCS.rule(
    30,
    "warning",
    "Spot pools are not picked by price alone",
    source="EC2 User Guide, Use allocation strategies to determine how EC2 Fleet fulfills Spot capacity; "
    f"{API}, SpotOptions",
)
def spot_allocation(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "spot" and group.capacity.allocation == "lowest-price":
            yield Breach(
                ("node_groups", name, "capacity", "allocation"),
                "the cheapest pools are the ones that are interrupted most, and one node that goes ends a "
                "job on all.",
                write("price-capacity-optimized"),
            )


@PCS.rule(
    31,
    "warning",
    "A group on a Capacity Block keeps its nodes",
    source=f"{BLOCKS}; {GROUP_API} (scalingConfiguration)",
)
def block_is_elastic(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.capacity.kind == "capacity-block" and group.count < group.greatest:
            yield Breach(
                ("node_groups", name, "count"),
                f"{group.count} to {group.greatest} nodes from a block that is paid for as a whole: idle "
                "nodes end, and the next job waits for them to come back.",
                write(group.greatest),
            )
