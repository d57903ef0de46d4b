"""A node as slurmd registers it, and the numbers of slurm.conf that are above it.

slurmctld compares the line of a node in slurm.conf with what slurmd registers (SchedMD/slurm,
src/slurmctld/node_mgr.c, validate_node_specs; src/common/read_config.c, _parse_nodename): what is above makes
the node INVALID_REG and drains it, or is reset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ultracluster.catalog.slurm import service_settings
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.slurm import named
from ultracluster.model.cluster import Group
from ultracluster.model.slurm_gres import asked, device_files, largest

CLOUD_PERCENT = 90
"""Slurm's own share of RealMemory that a cloud node must have (DEFAULT_CLOUD_REG_MEM_PERCENT)."""
PARALLELCLUSTER_SHARE = 0.95
"""RealMemory that ParallelCluster writes (realmemory_to_ec2memory_ratio)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """Figures that slurmd registers of an instance; None is not known."""

    type: str
    cpus: int | None
    """Processors of Linux: threads, or cores where multithreading is off."""
    cores: int | None
    threads: int | None
    """Threads of one core."""
    numa_nodes: int | None
    memory_mib: int | None
    """At most: Linux keeps some of it."""
    gpus: int | None
    """NVIDIA GPUs with a device file each."""
    tmp_disk_mib: int | None
    """At most: the root volume, which has /tmp."""
    memory_percent: int
    """Share of RealMemory that the node must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """A number that is above what slurmd registers."""

    path: tuple[str | int, ...]
    """In the group."""
    what: str
    """The number in words: `Sockets`, or what a record of gres.conf counts."""
    value: int
    most: int
    says: str
    """Words that Slurm writes."""
    then: str
    """Consequence of it."""


def registered(group: Group, settings: HyperPodSlurm | ParallelCluster | Pcs) -> Registered | None:
    """Return what slurmd registers of a node of the group; None for an unknown type."""
    kind = group.type
    if kind is None:
        return None
    threads = max(kind.threads_per_core, default=None)
    single = group.settings.threads_per_core == 1
    cores = kind.vcpu // threads if kind.vcpu and threads else None
    maker = kind.accelerator.manufacturer if kind.accelerator else ""
    own_tmp = named(settings.slurm_settings, "TmpFS")[1]
    return Registered(
        type=kind.name,
        cpus=cores if single and cores else kind.vcpu or None,
        cores=cores,
        threads=1 if single else threads,
        numa_nodes=kind.numa_nodes,
        memory_mib=int(kind.memory_gib * 1024) or None,
        gpus=kind.accelerator.count if kind.accelerator and maker == "NVIDIA" else None if maker else 0,
        tmp_disk_mib=None if own_tmp or group.in_service else group.settings.root_volume_gib * 1024,
        memory_percent=_memory_percent(settings),
    )


def numbers(line: Mapping[str, object]) -> dict[str, int]:
    """The numbers of a line of slurm.conf by name in small letters."""
    return {
        name.lower(): int(str(value).strip('"'))
        for name, value in line.items()
        if re.fullmatch(r"\d+", str(value).strip('"'))
    }


def above(group: Group, node: Registered) -> Iterator[Above]:
    """Every number of the group that Slurm holds against the node and finds too large."""
    given = group.settings.slurm_settings
    line = numbers(given)

    def at(
        name: str, most: int | None, says: str, value: int | None = None, then: str = ""
    ) -> Iterator[Above]:
        number = line.get(name) if value is None else value
        if number is not None and most is not None and number > most:
            key = named(given, name)[0]
            yield Above(
                path=("slurm_settings", key),
                what=key,
                value=number,
                most=most,
                says=says,
                then=then or _DRAINED,
            )

    low = "Low socket*core*thread count"
    parts = node.cores or node.cpus  # no more than that, whatever a core has
    yield from at("cpus", node.cpus, "Low CPUs")
    yield from at("procs", node.cpus, "Low CPUs")
    yield from at("sockets", parts, low)
    yield from at("socketsperboard", parts, low, _sockets(line) if "socketsperboard" in line else None)
    yield from at("corespersocket", parts, low)
    yield from at("threadspercore", node.threads, low)
    if node.memory_mib:
        most = node.memory_mib * 100 // node.memory_percent
        yield from at("realmemory", most, f"Low RealMemory (reported < {node.memory_percent}% of configured)")
        real = min(line.get("realmemory", node.memory_mib), most)
        yield from at("memspeclimit", real - 1, "MemSpecLimit is invalid, reset to 0", then=_RESET)
    yield from at("tmpdisk", node.tmp_disk_mib, "Low TmpDisk")
    if node.cores:
        yield from at("corespeccount", node.cores - 1, "CoreSpecCount is invalid, reset to 1", then=_RESET)
    if node.cores and node.gpus:
        says = "RestrictedCoresPerGPU: We can't restrict these core(s) per gpu"
        yield from at("restrictedcorespergpu", node.cores // node.gpus, says)
    reserved = named(given, "CpuSpecList")[1].strip('"')
    if node.cpus and re.fullmatch(r"[\d,-]*\d[\d,-]*", reserved):
        says = "unable to convert it to bitmap of size CPUs. Ignoring CpuSpecList"
        yield from at("cpuspeclist", node.cpus - 1, says, largest(reserved), _RESET)
    yield from _devices(group, node)


_DRAINED = "the node becomes INVALID_REG and is drained"
_RESET = "slurmctld reports it and does without"
_NO_START = "slurmd does not start"


def _devices(group: Group, node: Registered) -> Iterator[Above]:
    key, entries = asked(group)
    for entry in entries:
        # an instance of MIG is no whole GPU
        whole = entry.name == "gpu" and not re.match(r".*\dg\.", entry.type)
        if whole and node.gpus is not None and entry.count > node.gpus:
            yield Above(
                path=("slurm_settings", key),
                what=f"{key}, GPUs,",
                value=entry.count,
                most=node.gpus,
                says=f"gres/gpu count reported lower than configured ({node.gpus} < {entry.count})",
                then=_DRAINED,
            )
    for number, record in enumerate(group.settings.gres):
        field = "file" if record.file else "multiple_files"
        files = [re.fullmatch(r"/dev/nvidia(\d+)", one) for one in device_files(record.files or "")]
        last = max((int(one[1]) for one in files if one), default=None)
        if last is not None and node.gpus is not None and last >= node.gpus:
            yield Above(
                path=("gres", number, field) if node.gpus else ("gres", number),
                what="the number of GPUs in gres",
                value=last + 1,
                most=node.gpus,
                says=f"can't stat gres.conf file /dev/nvidia{last}",
                then=_NO_START,
            )
        if record.cores and node.cpus and largest(record.cores) >= node.cpus:
            yield Above(
                path=("gres", number, "cores"),
                what="the last core in gres",
                value=largest(record.cores),
                most=node.cpus - 1,
                says=f"Invalid GRES data for {record.name or 'gpu'}, Cores={record.cores}",
                then=_NO_START,
            )


def reset_cpus(group: Group, node: Registered, written: int | None) -> int | None:
    """CPUs to which slurmctld resets a node whose sockets, cores and threads do not make up those that the
    service writes; None where they do, or where it is not known."""
    line = numbers(group.settings.slurm_settings)
    if written is None or not line.keys() & {
        "sockets",
        "socketsperboard",
        "corespersocket",
        "threadspercore",
    }:
        return None
    cores, threads = line.get("corespersocket", 1) or 1, line.get("threadspercore", 1) or 1
    sockets = _sockets(line)
    if sockets is None:
        each = cores * threads
        sockets = written // each if written >= each and written % each == 0 else line.get("boards", 1)
    whole = sockets * cores * threads
    return None if written in (sockets, sockets * cores, whole) else whole


def _sockets(line: Mapping[str, int]) -> int | None:
    if "socketsperboard" in line:
        return line["socketsperboard"] * line.get("boards", 1)
    return line.get("sockets")


def whole_product(group: Group) -> int | None:
    """Sockets times cores times threads, where the line says all that slurmctld multiplies."""
    line = numbers(group.settings.slurm_settings)
    sockets = _sockets(line)
    if sockets is None:
        return None
    return sockets * (line.get("corespersocket", 1) or 1) * (line.get("threadspercore", 1) or 1)


def _memory_percent(settings: HyperPodSlurm | ParallelCluster | Pcs) -> int:
    yours = named(settings.slurm_settings, "SlurmctldParameters")[1]
    theirs = service_settings(settings.kind).settings.get("SlurmctldParameters", "")
    found = re.search(r"node_reg_mem_percent=(\d+)", yours or theirs)
    return min(max(int(found[1]), 1), 100) if found else CLOUD_PERCENT


__all__ = ["Above", "Registered", "above", "numbers", "registered", "reset_cpus", "whole_product"]
