"""The step of a batch script that unpacks a working folder on Lustre, before the job's own."""

from __future__ import annotations

import re

from ultracluster.jobs.workdir.bucket import Workdir
from ultracluster.model import Cluster

VARIABLE = "ULTRACLUSTER_WORKDIR"
"""Path of the folder, in a job's environment."""
_BASH = re.compile(r"#!\s*(/usr/bin/env\s+)?\S*bash(\s|$)")
_STEP = r"""# The submitted folder, by its content: the same code whenever this job starts again
export ULTRACLUSTER_WORKDIR=@shared@/.ultracluster-workdirs-$UID/@digest@
ultracluster_workdir() {
  local place=${ULTRACLUSTER_WORKDIR%/*}
  umask 077
  stop() {
    echo "workdir: $1" >&2
    exit 1
  }
  clean() {
    chmod -R u+w "$@" 2>/dev/null
    rm -rf "$@"
  }
  mkdir -p "$place" || stop "$place cannot be made"
  [[ -d $place && ! -L $place && -O $place ]] || stop "$place is not your folder"
  [[ ! -d $ULTRACLUSTER_WORKDIR ]] || return 0
  exec 9>>"$place/.lock"
  if flock --wait 1800 9; then
    clean "$place"/.new-*
  else
    echo "workdir: no lock on $place; continues without one" >&2
  fi
  [[ ! -d $ULTRACLUSTER_WORKDIR ]] || return 0 # another job was first
  new=$(mktemp -d "$place/.new-XXXXXX") || stop "$place takes no folder"
  trap 'clean "$new" "$new.tar"' EXIT
  if [[ -z ${AWS_CONFIG_FILE:-} && ! -e ~/.aws/config ]]; then
    export AWS_CONFIG_FILE=/opt/ultracluster/jobs/aws_config
  fi
  aws s3 cp --only-show-errors --region @region@ "@object@" "$new.tar" || stop "@object@ cannot be read"
  sha256sum --check --status <<<"@digest@  $new.tar" || stop "@object@ is not what was submitted"
  tar -xf "$new.tar" -C "$new" || stop "it cannot be unpacked on $place"
  chmod -R a-w "$new" || stop "it cannot be made read-only on $place"
  # within one parent: a read-only folder cannot move to another
  mv -T "$new" "$ULTRACLUSTER_WORKDIR" || [[ -d $ULTRACLUSTER_WORKDIR ]] || stop "$place takes no folder"
}
(ultracluster_workdir) || exit 1
cd "$ULTRACLUSTER_WORKDIR" || exit 1
"""


def with_workdir(cluster: Cluster, text: str, workdir: Workdir, *, group: str | None = None) -> str:
    """A batch script that begins in the folder.

    Args:
        text: of the script.
        group: node group of the job, whose first file system it is; by default the cluster's first.

    Raises:
        ValueError: there is no Lustre file system, or the script is not for bash.
    """
    lustre = cluster.lustre_of(group) if group else next(iter(cluster.lustres.values()), None)
    if lustre is None:
        raise ValueError(
            "--workdir: the folder is unpacked on Lustre, and the job's nodes have none: storage.lustre"
        )
    first, *lines = text.splitlines(keepends=True)
    if not _BASH.match(first):
        raise ValueError(
            "--workdir: the folder is unpacked by lines of bash in the script: begin it with `#!/bin/bash`"
        )
    # sbatch reads its options up to the first line that is neither blank nor a comment
    head = next(
        (at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines)
    )
    while head and not lines[head - 1].startswith("#SBATCH"):
        head -= 1
    values = {
        "shared": lustre.mount_path,
        "digest": workdir.digest,
        "region": cluster.region,
        "object": f"s3://{workdir.place.bucket.bucket}/{workdir.key}",
    }
    step = _STEP
    for key, value in values.items():
        step = step.replace(f"@{key}@", value)
    start = first if first.endswith("\n") else f"{first}\n"
    return "".join([start, *lines[:head], "\n", step, "\n" if lines[head:] else "", *lines[head:]])


__all__ = ["VARIABLE", "with_workdir"]
