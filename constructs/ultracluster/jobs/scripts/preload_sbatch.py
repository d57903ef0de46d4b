"""Files loaded from S3 by a batch script, each node its part."""

from __future__ import annotations

import shlex

from ultracluster.jobs.preload import preload_script
from ultracluster.model.team_shares import Pool

CPUS = 8
"""Processors of a node: other jobs may run there, too."""
_RUN = """\
# shellcheck disable=SC2016 # nodes expand it
readonly PRELOAD='
@script@'
srun bash -c "$PRELOAD" preload @path@ | awk '
  { print; files += $2; bytes += $4 }
  END { printf "%d files, %.2f GB are on the file system\\n", files, bytes / 1e9 }
'
"""


def preload_sbatch(pool: Pool, path: str, *, nodes: int, name: str, team: str | None) -> str:
    """The script, ready for `sbatch`."""
    options = {
        "job-name": name, "account": team, "qos": "normal" if team else None,
        "partition": pool.settings.partition, "nodes": str(nodes), "ntasks-per-node": "1",
        "cpus-per-task": str(CPUS), "requeue": "", "output": "%x-%j.out",
    }  # fmt: skip
    lines = [
        f"#SBATCH --{key}={value}" if value else f"#SBATCH --{key}"
        for key, value in options.items()
        if value is not None
    ]
    text = _RUN.replace("@script@", preload_script()).replace("@path@", shlex.quote(path))
    return "\n".join(["#!/usr/bin/env bash", *lines, "set -euo pipefail", "", text])
