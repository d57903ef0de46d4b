"""A real slurmctld or slurmd that reads one configuration after the other."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from slurm_twin.root import root_of

STARTED = "Running as primary controller"
SLURMD_STARTED = "slurmd started"
_BASE = {
    "ClusterName": "reading",
    "SlurmctldHost": "ctl",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/slurm",
    "CredType": "cred/slurm",
    "MpiDefault": "none",
    "ProctrackType": "proctrack/linuxproc",
    "StateSaveLocation": "/var/lib/slurm/slurmctld",
    "SlurmdSpoolDir": "/var/spool/slurmd",
}
_NODE = {"NodeName": "n1", "CPUs": "8", "RealMemory": "1000", "State": "CLOUD"}
_PARTITION = {"PartitionName": "p", "Nodes": "n1"}


def conf(
    settings: Mapping[str, str],
    node: Mapping[str, str] | None = None,
    partition: Mapping[str, str] | None = None,
) -> str:
    """A slurm.conf of one node that nobody starts, with these settings."""
    lines = [f"{name}={value}" for name, value in {**_BASE, **settings}.items()]
    for line in (_NODE | dict(node or {}), _PARTITION | dict(partition or {})):
        lines.append(" ".join(f"{name}={value}" for name, value in line.items()))
    return "\n".join([*lines, ""])


def said(
    version: str, confs: Mapping[str, str], folder: Path, files: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What slurmctld writes with each configuration; the last line has `STARTED` where it starts.

    `files` are further ones, as `NAME.topology.yaml`; with `NAME.plugstack` slurmd starts, not slurmctld.

    Raises:
        NoTwinError: this machine cannot run it.
    """
    root = root_of(version)
    for name, text in confs.items():
        (folder / f"{name}.conf").write_text(text)
    for name, text in (files or {}).items():
        (folder / name).write_text(text)
    subprocess.run(
        ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child",
         "sh", Path(__file__).with_name("read.sh"), root, folder],
        check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=600,
    )  # fmt: skip
    return {name: (folder / f"{name}.log").read_text() for name in confs}
