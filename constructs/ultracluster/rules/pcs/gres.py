"""Rules on: AWS PCS. Devices of nodes: records of gres.conf, what of them jobs may ask for, sockets."""

from __future__ import annotations

import math

from ultracluster.catalog.pcs import pcs_since
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, ask, beside, drop, write
from ultracluster.config.slurm import GresRecord, Partition, named
from ultracluster.model import Group
from ultracluster.model.slurm_gres import Gres, asked, counted, uncounted
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.pcs.settings import GRES
from ultracluster.rules.sets import PCS
from ultracluster.rules.sources import PCS_GUIDE

TOPOLOGY = f"{PCS_GUIDE}, Configuring hardware topology in AWS PCS"
MIG = f"{PCS_GUIDE}, Configuring Multi-Instance GPU (MIG) in AWS PCS"
DATE = "2026-11-23"
SHARDS = "Slurm documentation, Generic Resource (GRES) Scheduling, Sharding and MPS Management (26.05)"
TWIN = f"{SHARDS}; a job of each kind on one GPU in Slurm 26.05, tests/slurm_twin/test_sharing.py"
_SHARED = ("mps", "shard")
"""Parts of a GPU: PCS does not count them."""


@PCS.error(43, GRES, DATE)
def gres_has_record(group: Group) -> Breaches:
    """Each resource that Gres counts has a record in gres."""
    declared = {record.name or "gpu" for record in group.settings.gres}
    key, entries = asked(group)
    for entry in entries:
        if entry.name not in declared:
            yield at("slurm_settings", key).breach(
                "PCS refuses a Gres entry without a record of gres.conf, and `gres` of this group declares "
                f"no {entry.name}"
                + (
                    ". For the GPUs of a group without `gres` both are written, controlled by "
                    "orchestrator.gpu_types."
                    if entry.name == "gpu"
                    else "."
                ),
                drop(),
            )


@PCS.error(83, GRES, DATE)
def gres_record_complete(record: GresRecord) -> Breaches:
    """Each record of gres names devices or detects them."""
    if record.name is None and not record.detects:
        off = " (`off` detects nothing)" if record.auto_detect else ""
        yield at().breach(
            f"a record requires `name` or an active `auto_detect`{off}: PCS refuses it as Slurm does.", drop()
        )
    elif record.name == "gpu" and not record.files and not record.detects:
        yield at().breach(
            "a record of GPUs requires `file`, `multiple_files` or an active `auto_detect`: PCS refuses it.",
            write(record.model_dump(exclude_none=True) | {"file": "/dev/nvidia[0-7]"}),
        )


@PCS.error(84, GRES, DATE)
def gres_gpu_record_unique(group: Group) -> Breaches:
    """A group has one record of GPUs."""
    records = group.settings.gres
    gpus = [number for number, record in enumerate(records) if record.is_gpu]
    for number in gpus[1:]:
        yield at("gres", number).breach(
            "PCS takes one GPU record for a group: one with `name: gpu`, or with `auto_detect`.", drop()
        )


@PCS.error(85, f"{TOPOLOGY}; {GRES}", DATE)
def gres_detection(group: Group, settings: Pcs) -> Breaches:
    """The Slurm version detects devices, and knows the sockets."""
    version, since, own = settings.slurm_version, pcs_since("auto_detect"), pcs_since("detects_gpus")
    for number, record in enumerate(group.settings.gres):
        path = ("gres", number, "auto_detect")
        if record.auto_detect and version < since:
            yield at(*path).breach(
                f"PCS takes AutoDetect from Slurm {since} on, and this cluster has {version}.",
                anywhere({("orchestrator", "slurm_version"): own}).noting("which knows the sockets, too"),
            )
        elif record.detects and version < own and not named(group.settings.slurm_settings, "sockets")[1]:
            yield at(*path).breach(
                f"before Slurm {own} PCS knows no sockets by itself: nodes with detected GPUs become "
                "INVALID_REG without `Sockets` in slurm_settings.",
                anywhere({("node_groups", group.name, "slurm_settings", "Sockets"): 2}).noting(
                    "with the number of NUMA nodes, which lscpu says"
                )
                | anywhere({("orchestrator", "slurm_version"): own}),
            )


@PCS.error(86, TOPOLOGY, DATE)
def gres_sockets(group: Group) -> Breaches:
    """Sockets divide the cores of the type, and L3 caches are counted."""
    key, value = named(group.settings.slurm_settings, "sockets")
    kind = group.type
    if value.isdigit() and kind and kind.vcpu and kind.threads_per_core:
        # as EC2 launches it, or with one thread for each core
        cores = {kind.vcpu, kind.vcpu // max(kind.threads_per_core)}
        if int(value) == 0 or all(number % int(value) for number in cores):
            fits = math.gcd(min(cores), 2)
            yield at("slurm_settings", key).breach(
                f"{key}={value} does not divide the {min(cores)} cores of {kind.name} evenly, as PCS "
                "requires.",
                write(fits).noting("the number of NUMA nodes, which lscpu says"),
            )
    key, value = named(group.settings.slurm_settings, "parameters")
    if (
        "l3cache_as_socket" in value.lower().split(",")
        and not named(group.settings.slurm_settings, "sockets")[1]
    ):
        yield at("slurm_settings", key).breach(
            "l3cache_as_socket requires Sockets: PCS knows the L3 caches of no type.",
            drop() | beside(Sockets=2).noting("with the number of L3 caches, which lscpu says"),
        )


@PCS.error(87, GRES, DATE)
def gres_counts_agree(group: Group) -> Breaches:
    """Gres counts no more than gres declares, and of its type."""
    key, entries = asked(group)
    for entry in entries:
        records = [record for record in group.settings.gres if (record.name or "gpu") == entry.name]
        wrong = _of_other_type(entry, records) or _too_many(entry, records)
        if wrong:
            yield at("slurm_settings", key).breach(f"PCS refuses {entry.name} here: {wrong}.", drop())


@PCS.warning(88, GRES, DATE)
def gres_schedulable(group: Group) -> Breaches:
    """Jobs may ask for what gres declares."""
    counted_names = {entry.name for entry in asked(group)[1]}
    for number, record in enumerate(group.settings.gres):
        name = record.name or "gpu"
        if name not in counted_names and group.role == "compute":
            yield at("gres", number).breach(
                f"no job can ask for {name}: the node has it, but Gres in slurm_settings does not count it.",
                drop().noting(f"or write slurm_settings: {{Gres: {name}:<number>}}"),
            )


@PCS.warning(89, MIG, DATE)
def gres_detection_needs_fixed_nodes(group: Group) -> Breaches:
    """Nodes whose devices are found at boot stay."""
    found = [record for record in group.settings.gres if record.detects and not record.name]
    by_mig = group.settings.mig_key
    if (found or by_mig) and group.role == "compute" and group.settings.count < group.most_nodes:
        yield at("count").breach(
            f"{group.settings.count} to {group.most_nodes} nodes, whose devices Slurm learns when they boot: "
            "powered-down nodes keep their old profiles, and a job given to one can start without a device.",
            write(group.most_nodes),
        )


@PCS.error(98, TWIN, "2026-11-28")
def gres_mps_or_shards(group: Group) -> Breaches:
    """GPUs are shared by MPS or by shards."""
    key, entries = asked(group)
    if {entry.name for entry in entries} >= set(_SHARED):
        yield at("slurm_settings", key).breach(
            "Slurm counts `mps` and `shard` apart, each for all GPUs: jobs of both get the same GPU and "
            "together more than all of it.",
            drop().noting("count one of the two"),
        )


@PCS.warning(99, SHARDS, "2026-11-28")
def gres_shares_divide(group: Group) -> Breaches:
    """Parts of GPUs divide evenly over them."""
    key, entries = asked(group)
    gpus = sum(entry.count for entry in entries if entry.name == "gpu")
    for entry in entries:
        if entry.name not in _SHARED:
            continue
        records = [record for record in group.settings.gres if record.name == entry.name]
        if not gpus:
            yield at("slurm_settings", key).breach(
                f"{entry.name} is a part of a GPU, and Gres counts no `gpu`.",
                drop().noting("or write gpu:<number> beside it"),
            )
        elif entry.count % gpus and not any(record.files for record in records):
            even = max(1, entry.count // gpus) * gpus
            yield at("slurm_settings", key).breach(
                f"{entry.count} {entry.name} on {gpus} GPUs: some have one more than others, and a job gets "
                f"all its parts on one GPU. {even} are {even // gpus} of each.",
                ask("decision", f"{entry.name}:{even}, in Gres and in gres"),
            )


@PCS.warning(100, SHARDS, "2026-11-28")
def gres_shares_exclude_whole_nodes(group: Group, settings: Pcs) -> Breaches:
    """Shared GPUs are not those of jobs on whole nodes."""
    key, entries = asked(group)
    shared = next((entry.name for entry in entries if entry.name in _SHARED), None)
    if shared is None or group.role != "compute":
        return
    partition = group.settings.partition or group.name
    if settings.partitions.get(partition, Partition()).exclusive:
        yield at("slurm_settings", key).breach(
            f"the partition {partition} gives each job whole nodes: no two would share a GPU by {shared}.",
            drop().noting(f"or write partitions: {{{partition}: {{exclusive: false}}}}"),
        )
    elif group.type and group.type.efa_interfaces != 0:
        yield at("slurm_settings", key).breach(
            f"{group.type.name} has EFA, and a job on several nodes is as slow as its slowest GPU: {shared} "
            "keeps neither memory nor time of a GPU for a job.",
            drop().noting("use a type without EFA, or MIG instances, which have memory of their own"),
        )


def _of_other_type(entry: Gres, records: list[GresRecord]) -> str:
    types = [record.type for record in records if record.type]
    if entry.name == "gpu" and entry.type and types and entry.type not in types:
        return f"its type is {entry.type}, and that of the record is {types[0]}"
    return ""


def _too_many(entry: Gres, records: list[GresRecord]) -> str:
    if entry.name in _SHARED or not records or any(uncounted(record) for record in records):
        return ""
    declared = sum(counted(record) for record in records)
    return f"Gres counts {entry.count}, and the records {declared}" if entry.count > declared else ""
