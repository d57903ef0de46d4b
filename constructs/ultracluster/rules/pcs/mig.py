"""Rules on: AWS PCS. GPUs that MIG cuts for jobs of Slurm."""

from __future__ import annotations

from ultracluster.catalog.pcs import pcs_since
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, drop
from ultracluster.config.slurm import Partition, named
from ultracluster.model import Cluster, Group
from ultracluster.model.mig import gpu_layouts
from ultracluster.model.slurm_gres import asked
from ultracluster.rules.eks.sharing import MIG, mig_layout_fits, mig_profile_exists
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.pcs.gres import MIG as PCS_MIG
from ultracluster.rules.pcs.gres import TOPOLOGY
from ultracluster.rules.sets import PCS

DATE = "2026-11-28"
CONSIDERATIONS = (
    "NVIDIA Multi-Instance GPU User Guide, Application Considerations: no peer-to-peer over NVLink or PCIe, "
    "and a process sees one instance"
)
TYPES = "Slurm documentation, MIG Management: the type in Gres is part of the name that slurmd finds (26.05)"


@PCS.error(110, MIG, DATE)
def gpu_has_mig_profile(group: Group) -> Breaches:
    """The GPU supports the MIG profile."""
    yield from mig_profile_exists(group)


@PCS.error(111, MIG, DATE)
def gpu_holds_mig_layout(group: Group) -> Breaches:
    """The instances of a MIG layout fit on its GPU."""
    yield from mig_layout_fits(group)


@PCS.error(112, PCS_MIG, DATE)
def mig_cuts_compute_nodes(group: Group, cluster: Cluster) -> Breaches:
    """MIG cuts GPUs of compute nodes, and nothing else names them."""
    key = group.settings.mig_key
    if not key:
        return
    if group.role != "compute":
        yield at(key).breach(
            f"nodes of role {group.role} run no jobs, to which Slurm would give GPUs.", drop()
        )
    elif not cluster.runs_scripts:
        yield at(key).breach(
            "with `lifecycle: none` nodes run none of our scripts, and nothing else cuts the GPUs before "
            "slurmd starts.",
            drop() | anywhere({("orchestrator", "lifecycle"): "node-bootstrapped"}),
        )
    for number, record in enumerate(group.settings.gres):
        if record.is_gpu:
            yield at("gres", number).breach(
                f"the record of GPUs is written by {key} (AutoDetect=nvml), and PCS takes one.",
                drop(),
            )
    name, entries = asked(group)
    if any(entry.name == "gpu" for entry in entries):
        yield at("slurm_settings", name).breach(f"the GPUs in {name} are counted by {key}.", drop())


@PCS.error(113, f"{PCS_MIG}; {TOPOLOGY}", DATE)
def slurm_version_detects_mig(group: Group, settings: Pcs) -> Breaches:
    """The Slurm version detects MIG instances, and knows the sockets."""
    key, own = group.settings.mig_key, pcs_since("detects_gpus")
    if not key or settings.slurm_version >= own:
        return
    newer = anywhere({("orchestrator", "slurm_version"): own})
    if settings.slurm_version < (since := pcs_since("auto_detect")):
        yield at(key).breach(
            f"PCS detects MIG instances from Slurm {since} on, and this cluster has "
            f"{settings.slurm_version}.",
            newer,
        )
    elif group.type and not group.type.numa_nodes and not named(group.settings.slurm_settings, "sockets")[1]:
        yield at(key).breach(
            f"before Slurm {own} detection requires Sockets, and the NUMA nodes of {group.type.name} are not "
            "known here.",
            newer.noting("or write slurm_settings: {Sockets: <NUMA nodes, which lscpu says>}"),
        )


@PCS.warning(114, f"{CONSIDERATIONS}; {PCS_MIG}", DATE)
def mig_jobs_take_one_instance(group: Group, settings: Pcs) -> Breaches:
    """MIG instances are not for jobs on whole nodes, or on several."""
    key = group.settings.mig_key
    if not key or group.role != "compute":
        return
    partition = group.settings.partition or group.name
    if settings.partitions.get(partition, Partition()).exclusive:
        yield at(key).breach(
            f"the partition {partition} gives each job whole nodes: one job would have all instances.",
            drop().noting(f"or write partitions: {{{partition}: {{exclusive: false}}}}"),
        )
    elif group.type and group.type.efa_interfaces != 0:
        yield at(key).breach(
            f"{group.type.name} has EFA, and NCCL joins no MIG instances: each job is "
            "one process on one instance, and the fabric is paid for without use.",
            drop().noting("or acknowledge it: notebooks and small models need no fabric"),
        )


@PCS.warning(115, TYPES, DATE)
def mig_devices_told_apart(group: Group) -> Breaches:
    """Devices of a node have names that do not contain one another."""
    key = group.settings.mig_key
    if not key or group.type is None:
        return
    layouts = gpu_layouts(group.settings, group.type)
    profiles = {profile for layout in layouts for profile in layout}
    plain = next((one.removesuffix("+me") for one in profiles if one.endswith("+me")), "")
    if plain in profiles or (profiles and not all(layouts)):
        what = (
            f"{plain} is part of {plain}+me" if plain in profiles else "a whole GPU's type is part of theirs"
        )
        yield at(key).breach(
            f"Slurm knows instances by a part of their name, and {what}: which device a job gets is not "
            "known.",
            drop().noting("or take profiles of different sizes, and other groups for whole GPUs"),
        )


@PCS.warning(
    116,
    "EKS User Guide, Use P6e-GB200 UltraServers with Amazon EKS: the driver's CDMM excludes MIG; of "
    "PCS's images no page says whether they have it",
    DATE,
)
def mig_excludes_coherent_memory(group: Group) -> Breaches:
    """GPUs of an UltraServer are not divided by MIG."""
    key = group.settings.mig_key
    if key and group.type and group.type.imex:
        yield at(key).breach(
            f"the driver of {group.type.name} excludes MIG where it runs with coherent memory (CDMM), as on "
            "EKS: nodes on which it does never join.",
            drop(),
        )
