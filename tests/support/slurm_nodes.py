"""A real slurmctld with one real slurmd, in one folder, on ports of their own: jobs run there."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from needs import need
from slurm_database import end, free_ports, munge, path, says, wait

TOOLS = ["slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "munged"]


def needed() -> None:
    """Skip the test where slurm-wlm is not there; slurmd is started by root only."""
    need(*TOOLS, root=True)


@contextlib.contextmanager
def slurm(name: str, *others: str) -> Iterator[dict[str, str]]:
    """Variables under which Slurm's commands speak to a cluster.

    Args:
        name: of the node that runs, whose address is 127.0.0.1.
        others: names of nodes that Slurm knows and that never come.
    """
    control, daemon, nobody = free_ports(
        3
    )  # slurmd listens on every address: others need a port of their own
    variables = {**os.environ, "PATH": path()}
    host = socket.gethostname()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        variables["SLURM_CONF"] = str(folder / "slurm.conf")

        def start(label: str, *command: str | Path) -> None:
            log = (folder / f"{label}.log").open("wb")
            process = subprocess.Popen(command, stdout=log, stderr=log, env=variables, start_new_session=True)
            stack.callback(end, process)

        munge(folder, start, variables)
        for one in ("state", "spool"):
            (folder / one).mkdir()
        (folder / "slurm.conf").write_text(
            f"ClusterName=jobs\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
            f"AuthType=auth/munge\nAuthInfo=socket={folder / 'munge' / 'socket'}\n"
            f"SlurmctldPort={control}\nSlurmdPort={daemon}\nStateSaveLocation={folder / 'state'}\n"
            f"SlurmdSpoolDir={folder / 'spool'}\nSlurmctldPidFile={folder / 'slurmctld.pid'}\n"
            f"SlurmdPidFile={folder / 'slurmd.pid'}\nReturnToService=2\nMpiDefault=none\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n"
            "SelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\n"
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN\n"
            + "".join(
                f"NodeName={one} NodeAddr=127.0.0.2 Port={nobody} CPUs=8 State=DOWN\n" for one in others
            )
            + "PartitionName=gpu Nodes=ALL Default=YES\n"
        )
        start("slurmctld", "slurmctld", "-D")
        start("slurmd", "slurmd", "-D", "-N", name)
        wait(
            lambda: says(
                ["bash", "-c", f"sinfo --noheader --nodes={name} --format=%T | grep -x idle"], variables
            ),
            folder / "slurmd.log",
        )
        yield variables
