"""A folder in which the acceptance job for Slurm runs, with programs of our own instead of Slurm's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from cluster_schema import node_scripts
from nccl_logs import GIB, Log
from project import ROOT

SCRIPT = ROOT / "lifecycle_scripts" / "acceptance" / "nccl_tests.sbatch"
# Instead of Slurm: `srun` writes the log that a run on its nodes would give, and records how it was called.
SRUN = """#!/usr/bin/env bash
echo "$* [${NCCL_NET-} ${NCCL_DEBUG-} ${NCCL_DEBUG_SUBSYS-} ${NCCL_MNNVL_ENABLE-}]" >>"$FAKE/calls"
[[ " $* " != *' test -e '* ]] || exit "${IMEX:-0}"
if [[ $* == *fabric.sh* ]]; then
  cat >"$FAKE/tools"
  for node in $(scontrol show hostnames); do
    echo "{\\"host\\": \\"$node\\", \\"verdict\\": \\"pass\\", \\"summary\\": \\"5 checks passed\\"}"
  done
  exit
fi
[[ $* =~ --nodelist=([^ ]+) ]]
cat "$FAKE/logs/${BASH_REMATCH[1]}"
exit "${SRUN_STATUS:-0}"
"""


SCONTROL = """#!/usr/bin/env bash
if [[ $2 == hostnames ]]; then exec cat "$FAKE/nodes"; fi
echo "   Command=$HOME_OF_SCRIPTS/acceptance/nccl_tests.sbatch"
"""


class Cluster:
    """A sandbox in which the script runs."""

    def __init__(self, folder: Path, nodes: int, kind: str) -> None:
        self.folder, self.kind = folder, kind
        self.nodes = [f"ip-10-1-0-{21 + index}" for index in range(nodes)]
        (folder / "logs").mkdir()
        (folder / "nodes").write_text("\n".join(self.nodes) + "\n")
        (folder / "bin").mkdir()
        for name, text in {"srun": SRUN, "scontrol": SCONTROL, "all_reduce_perf": "#!/bin/sh\n"}.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        self.home = node_scripts(folder, kind.removeprefix("ml."))
        for name in [
            "bash",
            "cat",
            "cut",
            "grep",
            "gzip",
            "head",
            "mkdir",
            "python3",
            "sed",
            "tar",
            "tee",
            "uname",
        ]:
            (folder / "bin" / name).symlink_to(str(shutil.which(name)))

    def answers(self, nodes: list[str], figures: dict[int, float], **fields: Any) -> None:
        log = Log(hosts=nodes, figures=figures, **fields)
        (self.folder / "logs" / ",".join(nodes)).write_text(log.text())

    def submit(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.folder / "bin"),
            "FAKE": str(self.folder),
            "HOME_OF_SCRIPTS": str(self.home),
            "SLURM_JOB_NODELIST": "ip-10-1-0-[21-]",
            "SLURM_JOB_ID": "17",
            "SLURM_SUBMIT_DIR": str(self.folder),
            "ACCEPTANCE_TYPE": self.kind,
            "ULTRACLUSTER_ROOT": str(self.folder / "root"),
        } | variables
        return subprocess.run(["bash", SCRIPT], capture_output=True, text=True, env=environment, check=False)

    @property
    def logs(self) -> list[Path]:
        return sorted((self.folder / "ultracluster-acceptance-17").iterdir())

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


def with_figures(folder: Path, nodes: int, *, slow: str = "", fabric: float = 364.87) -> Cluster:
    cluster = Cluster(folder, nodes, "p5en.48xlarge")
    names = cluster.nodes
    for index, name in enumerate(names):
        cluster.answers([name], {16 * GIB: 482.0})
        other = names[(index + 1) % nodes]
        cluster.answers([name, other], {4 * GIB: 150.0 if slow in (name, other) else 365.0})
    cluster.answers(names, {4 * GIB: fabric, 16 * GIB: fabric})
    return cluster
