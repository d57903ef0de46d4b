"""Control groups for the machines of a twin, as far as this machine lends any."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HIERARCHY = Path("/sys/fs/cgroup")
V1 = ("cpuset", "devices", "freezer", "memory")
"""What Slurm's cgroup/v1 uses."""
V2 = ("cpuset", "cpu", "memory", "pids")
PREFIX = "ultracluster-twin-"


@dataclass(frozen=True)
class Cgroups:
    """Folders in which each machine gets one of its own.

    Attributes:
        mode: "v1", "v2" or "disabled".
        folders: one for each controller, one in all with v2, none where they are disabled.
    """

    mode: str
    folders: tuple[Path, ...]

    def of(self, machine: str) -> list[Path]:
        """Makes the groups of a machine."""
        made: list[Path] = []
        for folder in self.folders:
            group = folder / machine
            group.mkdir(exist_ok=True)
            _fill_cpuset(group)
            made.append(group)
        return made


@contextlib.contextmanager
def lent() -> Iterator[Cgroups]:
    """What this machine allows; gone afterwards, with what an ended run left."""
    _sweep()
    name = f"{PREFIX}{os.getpid()}-{os.urandom(3).hex()}"
    made: list[Path] = []
    try:
        yield _first(name, made)
    finally:
        for folder in made:
            _remove(folder)


def _first(name: str, made: list[Path]) -> Cgroups:
    for mode, parents in (("v1", _v1_parents()), ("v2", _v2_parents())):
        if not parents:
            continue
        try:
            for parent in parents:
                made.append(parent / name)
                made[-1].mkdir()
                if mode == "v1":
                    _fill_cpuset(made[-1])
                else:
                    (made[-1] / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in V2))
            return Cgroups(mode, tuple(made))
        except OSError:  # read-only, as in most containers, or no right to it
            for folder in made:
                _remove(folder)
            made.clear()
    return Cgroups("disabled", ())


def _v1_parents() -> list[Path]:
    """The group of this process in each controller: what limits it, limits the twin."""
    found: list[Path] = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in set(controllers.split(",")) & set(V1):
            at = HIERARCHY / controller / path.lstrip("/")
            found.append(at if at.is_dir() else HIERARCHY / controller)
    return sorted(found) if len(found) == len(V1) else []


def _v2_parents() -> list[Path]:
    """The nearest group above this process that gives its children all controllers."""
    if not (HIERARCHY / "cgroup.controllers").is_file():
        return []
    own = next(
        (line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line[:3] == "0::"), "/"
    )
    at = HIERARCHY / own.lstrip("/")
    for folder in (at, *at.parents):
        if not folder.is_relative_to(HIERARCHY) or not (folder / "cgroup.controllers").is_file():
            break
        with contextlib.suppress(OSError):
            # refused where processes are in it, but for the top one
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in V2))
            return [folder]
    return []


def _fill_cpuset(group: Path) -> None:
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = group / name
        if file.is_file() and not file.read_text().strip() and (group.parent / name).is_file():
            file.write_text((group.parent / name).read_text())


def _remove(folder: Path) -> None:
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            Path(path).rmdir()


def _sweep() -> None:
    """Removes the groups of runs that were killed."""
    for parent in (*_v1_parents(), *_v2_parents()):
        for folder in parent.glob(f"{PREFIX}*"):
            if not Path(f"/proc/{folder.name.removeprefix(PREFIX).split('-')[0]}").exists():
                _remove(folder)
