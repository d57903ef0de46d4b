"""Files of a data repository association, loaded from S3 before a job reads them: by which path, and how.

FSx for Lustre lists objects and loads a file's content when it is first read. `lfs hsm_restore` asks for it
before (FSx for Lustre User Guide, Preloading files into your file system: hsm_action says NOOP once a file is
loaded). Where there is no `lfs`, as in most containers, or where it is refused, a byte of each file is read:
that waits for the whole file.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from ultracluster.model.cluster import Cluster

BATCH = 500
"""Files that are asked for at once: they wait in the metadata server, and are arguments of one command."""
READERS = 32
"""Files of a node that are read at once."""

SCRIPT = """\
set -euo pipefail
path=$1 nodes=${SLURM_NTASKS:-${2:-1}} rank=${SLURM_PROCID:-${JOB_COMPLETION_INDEX:-0}}
# Of these files, those whose content is in S3 only
released() {
  local line
  while IFS= read -r line; do
    [[ ! $line =~ ^(.*):\\ \\(0x[0-9a-fA-F]+\\)\\ released ]] || printf "%s\\n" "${BASH_REMATCH[1]}"
  done < <(lfs hsm_state "$@")
}
# A byte of each: who reads a file waits until all of it is there
read_all() { printf "%s\\0" "$@" | xargs -0 -n 1 -P @readers@ head -c 1 >/dev/null; }
restore() {
  local left still busy
  mapfile -t left < <(released "$@")
  loaded=$((loaded + ${#left[@]}))
  while ((${#left[@]})); do
    lfs hsm_restore "${left[@]}" || {
      echo "lfs hsm_restore is refused: files are read instead" >&2
      by_lfs=
      read_all "${left[@]}"
      return
    }
    while busy=$(lfs hsm_action "${left[@]}" | grep -vc ": NOOP$" || true) && ((busy)); do sleep 1; done
    mapfile -t still < <(released "${left[@]}")
    ((${#still[@]} < ${#left[@]})) || {
      echo "${#still[@]} files are not loaded from S3, the first is ${still[0]}; see lfs df -h" >&2
      exit 1
    }
    left=("${still[@]}")
  done
}
load() {
  ((${#batch[@]})) || return 0
  if [[ -n $by_lfs ]]; then restore "${batch[@]}"; else read_all "${batch[@]}"; fi
  batch=()
}
[[ -d $path ]] || {
  echo "$path: there is no such folder; an association lists objects when it is made or they change" >&2
  exit 1
}
by_lfs=
if command -v lfs >/dev/null; then by_lfs=yes; fi
files=0 bytes=0 loaded=0 batch=()
# A node has the files with a share of the numbers: nodes may find them in different orders
while IFS= read -r -d "" inode && IFS= read -r -d "" size && IFS= read -r -d "" file; do
  share=$((inode % nodes))
  ((${share#-} == rank)) || continue
  files=$((files + 1)) bytes=$((bytes + size)) batch+=("$file")
  ((${#batch[@]} < @batch@)) || load
done < <(find "$path" -type f -printf "%i\\0%s\\0%p\\0")
load
echo "files: $files bytes: $bytes loaded: ${by_lfs:+$loaded}"
"""
"""Bash of one node: its arguments are the folder and how many nodes there are. No single quotes: on Slurm it
stands between them."""


def preload_script() -> str:
    return SCRIPT.replace("@readers@", str(READERS)).replace("@batch@", str(BATCH))


def check_preload(cluster: Cluster, group: str, path: str) -> str:
    """A note on a path: empty where it is in a data repository association of this environment.

    Raises:
        ValueError: it is in none, with those that there are.
    """
    wanted = PurePosixPath(path)
    systems = cluster.lustres_of(group)
    if not wanted.is_absolute() or ".." in wanted.parts:
        raise ValueError(f"{path} is no absolute path")
    linked = [
        PurePosixPath(system.mount_path) / folder.lstrip("/")
        for system in systems.values()
        for folder in system.data_repositories
    ]
    if any(wanted.is_relative_to(one) for one in linked):
        return ""
    home = next((system for system in systems.values() if wanted.is_relative_to(system.mount_path)), None)
    if home and home.settings.deployment == "existing":
        return f"{path} is on a file system that exists already: whether S3 is linked there is not known here"
    paths = ", ".join(sorted(map(str, linked)))
    raise ValueError(
        f"{path} is in no data repository association of this environment, so nothing of it is in S3. "
        + (f"Use one of: {paths}" if paths else f"{group} has no file system with data_repositories")
    )
