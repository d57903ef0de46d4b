"""The folders of a sandboxed node, and how its parts are written there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from project import ROOT

FAKES = (ROOT / "tests/lifecycle_scripts/fakes", Path(__file__).with_name("fakes"))
MAKERS = Path(__file__).with_name("makers")
"""What the makers' archives hold, and what installing a package of theirs leaves on a node."""
REAL_COMMANDS = """
awk basename bash cat chgrp chmod cmp comm cp cut date dirname env expr find flock grep gzip head
install kill ln ls mkdir mktemp mv printf ps readlink realpath rm rmdir sed seq setsid sha256sum sha512sum
sleep sort stat tail tar tee timeout touch tr uniq wc xargs
"""
"""What the scripts may use as it is; what is missing here and among the fakes does not exist for them."""


MEMORY = Path("/dev/shm")  # noqa: S108


def in_memory() -> str | None:
    """A folder in memory where programs run and a gigabyte is free; None: the usual one has to do.

    A sandbox has hundreds of small files, and a disk takes ten times as long for them.
    """
    if not os.access(MEMORY, os.W_OK):
        return None
    system = os.statvfs(MEMORY)
    fits = system.f_bavail * system.f_frsize >= 1 << 30 and not system.f_flag & os.ST_NOEXEC
    return str(MEMORY) if fits else None


class Sandbox:
    """Folders of one node: its root, its scripts, and what the fakes know of it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.fake = folder / "fake"
        self.scripts = folder / "scripts"
        self.bin = folder / "bin"
        self.real = folder / "real"
        for path in (
            self.root,
            self.bin,
            self.real,
            *(self.fake / name for name in ("modules", "packages", "packages.d")),
        ):
            path.mkdir(parents=True)
        for name in REAL_COMMANDS.split():
            if found := shutil.which(name):
                (self.real / name).symlink_to(found)
        (self.real / "python3").symlink_to(Path(sys.executable).resolve())
        for fakes in FAKES:
            for file in fakes.iterdir():
                link = self.bin / file.name
                link.unlink(missing_ok=True)
                link.symlink_to(file)
        # this fake only records each of its hundred calls, and nobody reads them here
        (self.bin / "mv").unlink()

    def environment(self) -> dict[str, str]:
        """Of the entry script: waits of fractions of a second, nothing of this machine's own."""
        # long enough for a loaded machine; what the sandbox does not have fails at once
        deadlines = dict.fromkeys(
            ("NODE", "DNS", "MOUNT", "SLURM", "SLURMD", "PACKAGES", "DEVICES", "LUSTRE_EFA"), "2"
        ) | {"FETCH": "20"}
        return {
            "PATH": f"{self.bin}:{self.real}",
            "ULTRACLUSTER_ROOT": str(self.root),
            "FAKE": str(self.fake),
            "REAL": str(self.real),
            "ULTRACLUSTER_LINGER": "0",
            "ULTRACLUSTER_SPREAD": "0",
            "ULTRACLUSTER_RETRY_PAUSE": "0.02",
            "ULTRACLUSTER_RETRY_LONGEST_PAUSE": "0.1",
            "ULTRACLUSTER_RUN_DEADLINE": "10",
        } | {f"ULTRACLUSTER_{name}_DEADLINE": value for name, value in deadlines.items()}

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def program(self, path: str, *lines: str) -> None:
        self.write(path, "#!/usr/bin/env bash\n" + "".join(f"echo '{line}'\n" for line in lines))
        (self.root / path).chmod(0o755)

    def owned(self, path: str, owner: int) -> None:
        """Somebody else's than root's, for the fakes of chown and stat."""
        folder = self.fake / "owners"
        folder.mkdir(exist_ok=True)
        (folder / str((self.root / path).stat().st_ino)).write_text(f"{owner} {owner}\n")

    def tell(self, name: str, text: str) -> None:
        (self.fake / name).write_text(text + "\n" if text else "")

    def module(self, name: str, version: str | None, *, loaded: bool = False) -> None:
        if not version:
            return
        (self.fake / "modules" / name).write_text(f"{version}\n")
        if loaded:
            (self.root / "sys/module" / name).mkdir(parents=True, exist_ok=True)
            self.write(f"sys/module/{name}/version", f"{version}\n")

    def package(self, name: str, version: str) -> None:
        (self.fake / "packages" / name).write_text(f"{version}\n")

    def unit(self, name: str, *, active: bool) -> None:
        folder = self.fake / "units" / name
        folder.mkdir(parents=True, exist_ok=True)
        if active:
            (folder / "enabled").touch()
            (folder / "active").touch()

    def mounted(self, number: str, path: str, kind: str, source: str) -> None:
        with (self.root / "proc/self/mountinfo").open("a") as file:
            file.write(f"40 1 {number} / {path} rw,relatime shared:2 - {kind} {source} rw\n")
