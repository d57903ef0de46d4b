"""Rules on: AWS PCS. GPUs that MIG cuts for jobs of Slurm."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog.pcs import pcs_since
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, drop
from ultracluster.config.slurm import Partition, named
from ultracluster.model import Cluster, Group
from ultracluster.model.mig import gpu_layouts
from ultracluster.model.slurm_gres import asked
from ultracluster.rules.eks.sharing import MIG, layout_fits, mig_profile_exists
from ultracluster.rules.engine import Breach
from ultracluster.rules.pcs.gres import MIG as PCS_MIG
from ultracluster.rules.pcs.gres import TOPOLOGY
from ultracluster.rules.sets import PCS

DATE = "2026-11-28"
CONSIDERATIONS = (
    "NVIDIA Multi-Instance GPU User Guide, Application Considerations: no peer-to-peer over NVLink or PCIe, "
    "and a process sees one instance"
)
TYPES = "Slurm documentation, MIG Management: the type in Gres is part of the name that slurmd finds (26.05)"

PCS.rule(110, "error", "The GPU supports the MIG profile", source=MIG, date=DATE)(mig_profile_exists)
PCS.rule(111, "error", "The instances of a MIG layout fit on its GPU", source=MIG, date=DATE)(layout_fits)


@PCS.rule(
    112, "error", "MIG cuts GPUs of compute nodes, and nothing else names them", source=PCS_MIG, date=DATE
)
def who_cuts(group: Group, cluster: Cluster) -> Iterator[Breach]:
    key = group.settings.mig_key
    if not key:
        return
    if group.role != "compute":
        yield Breach(
            (key,), f"nodes of role {group.role} run no jobs, to which Slurm would give GPUs.", drop()
        )
    elif not cluster.runs_scripts:
        yield Breach(
            (key,),
            "with `lifecycle: none` nodes run none of our scripts, and nothing else cuts the GPUs before "
            "slurmd starts.",
            drop() | anywhere({("orchestrator", "lifecycle"): "node-bootstrapped"}),
        )
    for number, record in enumerate(group.settings.gres):
        if record.is_gpu:
            yield Breach(
                ("gres", number),
                f"the record of GPUs is written by {key} (AutoDetect=nvml), and PCS takes one.",
                drop(),
            )
    name, entries = asked(group)
    if any(entry.name == "gpu" for entry in entries):
        yield Breach(("slurm_settings", name), f"the GPUs in {name} are counted by {key}.", drop())


@PCS.rule(
    113,
    "error",
    "The Slurm version detects MIG instances, and knows the sockets",
    source=f"{PCS_MIG}; {TOPOLOGY}",
    date=DATE,
)
def version_detects(group: Group, settings: Pcs) -> Iterator[Breach]:
    key, own = group.settings.mig_key, pcs_since("detects_gpus")
    if not key or settings.slurm_version >= own:
        return
    newer = anywhere({("orchestrator", "slurm_version"): own})
    if settings.slurm_version < (since := pcs_since("auto_detect")):
        yield Breach(
            (key,),
            f"PCS detects MIG instances from Slurm {since} on, and this cluster has "
            f"{settings.slurm_version}.",
            newer,
        )
    elif group.type and not group.type.numa_nodes and not named(group.settings.slurm_settings, "sockets")[1]:
        yield Breach(
            (key,),
            f"before Slurm {own} detection requires Sockets, and the NUMA nodes of {group.type.name} are not "
            "known here.",
            newer.noting("or write slurm_settings: {Sockets: <NUMA nodes, which lscpu says>}"),
        )


@PCS.rule(
    114,
    "warning",
    "MIG instances are not for jobs on whole nodes, or on several",
    source=f"{CONSIDERATIONS}; {PCS_MIG}",
    date=DATE,
)
def jobs_of_instances(group: Group, settings: Pcs) -> Iterator[Breach]:
    key = group.settings.mig_key
    if not key or group.role != "compute":
        return
    partition = group.settings.partition or group.name
    if settings.partitions.get(partition, Partition()).exclusive:
        yield Breach(
            (key,),
            f"the partition {partition} gives each job whole nodes: one job would have all instances.",
            drop().noting(f"or write partitions: {{{partition}: {{exclusive: false}}}}"),
        )
    elif group.type and group.type.efa_interfaces != 0:
        yield Breach(
            (key,),
            f"{group.type.name} has EFA, and NCCL joins no MIG instances: each job is "
            "one process on one instance, and the fabric is paid for without use.",
            drop().noting("or acknowledge it: notebooks and small models need no fabric"),
        )


@PCS.rule(115, "warning", "Slurm can tell the devices of a node apart", source=TYPES, date=DATE)
def alike(group: Group) -> Iterator[Breach]:
    key = group.settings.mig_key
    if not key or group.type is None:
        return
    layouts = gpu_layouts(group.settings, group.type)
    profiles = {profile for one in layouts for profile in one}
    plain = next((one.removesuffix("+me") for one in profiles if one.endswith("+me")), "")
    if plain in profiles or (profiles and not all(layouts)):
        what = (
            f"{plain} is part of {plain}+me" if plain in profiles else "a whole GPU's type is part of theirs"
        )
        yield Breach(
            (key,),
            f"Slurm knows instances by a part of their name, and {what}: which device a job gets is not "
            "known.",
            drop().noting("or take profiles of different sizes, and other groups for whole GPUs"),
        )


@PCS.rule(
    116,
    "warning",
    "GPUs of an UltraServer are not divided by MIG",
    source="EKS User Guide, Use P6e-GB200 UltraServers with Amazon EKS: the driver's CDMM excludes MIG; of "
    "PCS's images no page says whether they have it",
    date=DATE,
)
def with_coherent_memory(group: Group) -> Iterator[Breach]:
    key = group.settings.mig_key
    if key and group.type and group.type.imex:
        yield Breach(
            (key,),
            f"the driver of {group.type.name} excludes MIG where it runs with coherent memory (CDMM), as on "
            "EKS: nodes on which it does never join.",
            drop(),
        )
