"""The files of a twin's Slurm: a small base, what the project generates, and what only a twin needs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from project import ROOT

FILES = ROOT / "lifecycle_scripts/files"
CONTROLLER = "ctl"
ADDRESS = "10.77.0.1"
BASE = {
    "ReturnToService": "1",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "GresTypes": "gpu",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "",
    "JobRequeue": "1",
    "KillWait": "5",
    "MinJobAge": "3600",
    "SlurmdTimeout": "30",
}
"""What a cluster has where nothing is generated."""
SOON = ("bf_interval=1", "sched_interval=5", "batch_sched_delay=0")


class NodeLine(Protocol):
    """A compute group as the package's `slurm.nodes` gives it."""

    @property
    def partition(self) -> str: ...
    @property
    def cpus(self) -> int | None: ...
    @property
    def memory_mib(self) -> int | None: ...
    @property
    def gpus(self) -> int: ...
    @property
    def gpu_type(self) -> str: ...


class Generated(Protocol):
    """What `slurm_configuration(cluster)` of the package gives."""

    def lines(
        self, version: str | None = None, *, service: bool = False, accounting: bool = True
    ) -> list[str]: ...
    @property
    def nodes(self) -> Mapping[str, NodeLine]: ...
    @property
    def partitions(self) -> Mapping[str, Mapping[str, str]]: ...
    @property
    def default_partition(self) -> str: ...


@dataclass(frozen=True)
class Group:
    """Nodes that are alike."""

    nodes: tuple[str, ...]
    partition: str = "gpu"
    cpus: int = 8
    memory_mib: int = 16000
    gpus: int = 8
    gpu_type: str = "h100"
    shared: str = ""
    """Parts of the GPUs, `shard:16`."""

    @property
    def hardware(self) -> str:
        shared = f",{self.shared}" if self.shared else ""
        gres = f" Gres=gpu:{self.gpu_type}:{self.gpus}{shared}" if self.gpus else ""
        return f"CPUs={self.cpus} RealMemory={self.memory_mib}{gres} State=UNKNOWN"


def groups_of(generated: Generated, nodes: Sequence[str]) -> list[Group]:
    """The nodes of a twin dealt out to the cluster's compute groups."""
    lines = list(generated.nodes.values())
    return [
        Group(
            tuple(nodes[place :: len(lines)]),
            line.partition,
            line.cpus or 8,
            line.memory_mib or 16000,
            line.gpus,
            line.gpu_type,
        )
        for place, line in enumerate(lines)
        if nodes[place :: len(lines)]
    ]


@dataclass(frozen=True)
class Shape:
    """What machines there are.

    Attributes:
        own: each node in its own network, uts, mount and process namespace.
        cgroups: "v1", "v2" or "disabled".
        partitions: lines of slurm.conf.
    """

    groups: Sequence[Group]
    own: bool
    cgroups: str
    partitions: Sequence[str]

    @property
    def names(self) -> list[str]:
        names = [name for group in self.groups for name in group.nodes]
        return sorted(names, key=lambda name: int(name[1:]))

    def address(self, name: str) -> str:
        number = int(name[1:])
        return f"10.77.{1 + number // 250}.{1 + number % 250}" if self.own else ADDRESS

    @property
    def gpus(self) -> dict[str, int]:
        """Device files, by machine."""
        if not self.own:
            return {CONTROLLER: max(group.gpus for group in self.groups)}
        return {name: group.gpus for group in self.groups for name in group.nodes}


PARTITION = "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE"


def partition_lines(generated: Generated, groups: Sequence[Group]) -> list[str]:
    lines: list[str] = []
    for name, parameters in generated.partitions.items():
        nodes = ",".join(node for group in groups if group.partition == name for node in group.nodes)
        given = dict(parameters)
        if name == generated.default_partition:
            given.setdefault("Default", "YES")
        if nodes:
            told = " ".join(f"{key}={value}" for key, value in given.items())
            lines.append(f"PartitionName={name} Nodes={nodes} {told}")
    return lines


def forced(shape: Shape) -> dict[str, str]:
    """What the twin itself decides, whatever is generated: names, paths, and what this machine lacks."""
    settings = {
        "ClusterName": "twin",
        "SlurmctldHost": CONTROLLER,
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "MpiDefault": "none",
        "StateSaveLocation": "/var/lib/slurm/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd" if shape.own else "/var/spool/slurmd/%n",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.pid" if shape.own else "/run/slurmd.%n.pid",
        "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
        "SlurmdLogFile": "/var/log/slurm/slurmd.log" if shape.own else "/var/log/slurm/slurmd.%n.log",
        "SlurmdParameters": "config_overrides",  # eight processors on a machine that has two
    }
    if shape.cgroups != "v2":
        settings["JobAcctGatherType"] = "jobacct_gather/linux"
    if shape.cgroups == "disabled":
        settings |= {"ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none"}
    return settings


def slurm_conf(shape: Shape, generated: Mapping[str, str], own: Mapping[str, str], accounting: bool) -> str:
    """The file; a key of `own` wins over one of `generated`, and that over the base."""
    cgroup = {"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup"}
    database = {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": CONTROLLER,
        "AccountingStorageTRES": "gres/gpu",
        "PriorityType": "priority/multifactor",
    }
    settings: dict[str, str] = {}
    for layer in (cgroup, BASE, database if accounting else {}, generated, forced(shape), own):
        new = {key.lower() for key in layer}  # keys of slurm.conf have no case
        settings = {key: value for key, value in settings.items() if key.lower() not in new} | dict(layer)
    settings["SchedulerParameters"] = _soon(settings["SchedulerParameters"])
    lines = [f"{key}={value}" for key, value in settings.items()]
    return "\n".join([*lines, *node_lines(shape), *shape.partitions, ""])


def _soon(parameters: str) -> str:
    """The parameters with those intervals of the scheduler that are not given: seconds, not half a minute."""
    given = [one for one in parameters.split(",") if one]
    names = {one.partition("=")[0] for one in given}
    return ",".join([*given, *(one for one in SOON if one.partition("=")[0] not in names)])


def node_lines(shape: Shape) -> list[str]:
    if shape.own:
        return [f"NodeName={','.join(group.nodes)} {group.hardware}" for group in shape.groups]
    return [
        f"NodeName={name} NodeHostname={CONTROLLER} NodeAddr={ADDRESS} Port={20000 + int(name[1:])} "
        f"{group.hardware}"
        for group in shape.groups
        for name in group.nodes
    ]


def gres_conf(shape: Shape) -> str:
    rows = [
        f"NodeName={','.join(group.nodes)} Name=gpu Type={group.gpu_type} "
        f"File=/dev/nvidia[0-{group.gpus - 1}]"
        for group in shape.groups
        if group.gpus
    ]
    for group in shape.groups:
        for name, count in (one.split(":") for one in group.shared.split(",") if one):
            rows.append(f"NodeName={','.join(group.nodes)} Name={name} Count={count}")
    return "\n".join(["AutoDetect=off", *rows, ""])


def cgroup_conf(shape: Shape) -> str:
    if shape.cgroups == "disabled":
        return "CgroupPlugin=disabled\n"
    # neither cores nor memory: eight processors are two here
    systemd = "IgnoreSystemd=yes\n" if shape.cgroups == "v2" else ""
    return f"CgroupPlugin=cgroup/{shape.cgroups}\nConstrainDevices=yes\nConstrainRAMSpace=no\n{systemd}"


def slurmdbd_conf() -> str:
    return (
        f"AuthType=auth/munge\nDbdHost={CONTROLLER}\nSlurmUser=slurm\nLogFile=/var/log/slurm/slurmdbd.log\n"
        "PidFile=/run/slurmdbd.pid\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n"
        "StorageUser=slurm\nStoragePass=secret\nStorageLoc=slurm_acct_db\n"
    )


def programs(settings: Mapping[str, str]) -> dict[str, str]:
    """Programs that generated settings name and nobody has installed yet, by path: each does nothing.

    ParallelCluster's own prolog and epilog run what is in two folders, and so do these.
    """
    made: dict[str, str] = {}
    for key in ("Prolog", "Epilog", "HealthCheckProgram"):
        path = re.sub(r"\[(.)\]", r"\1", settings.get(key, ""))  # HyperPod's are patterns
        if "/pcluster/" in path:
            folder = f"/opt/slurm/etc/scripts/{key.lower()}.d"
            made[path] = (
                f'#!/bin/bash\nfor file in {folder}/*; do [ ! -x "$file" ] || "$file" || exit 1; done\n'
            )
        elif path and "/" not in path:
            # beside slurm.conf, from where slurmctld sends it to nodes without files of their own
            made[f"/etc/slurm/{path}"] = (FILES / f"slurm_conf_{key.lower()}.sh").read_text()
        elif path:
            made[path] = "#!/bin/bash\nexit 0\n"
    return made


def hosts(shape: Shape) -> str:
    rows = [(ADDRESS, CONTROLLER)]
    if shape.own:
        rows += [(shape.address(name), name) for name in shape.names]
    return "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for address, name in rows)


def accounts(lower: str, users: Sequence[str], kind: str) -> str:
    """`passwd`, `group` or `shadow` of the root with the users added; user ids from 2001 on."""
    rows = {
        "passwd": "{name}:x:{number}:{number}::/home/{name}:/bin/bash",
        "group": "{name}:x:{number}:",
        "shadow": "{name}:*:20000:0:99999:7:::",
    }
    added = [rows[kind].format(name=name, number=2001 + index) for index, name in enumerate(users)]
    return "\n".join([lower.rstrip("\n"), *added, ""])
