"""A real Debian root with the lifecycle scripts in it, made by debootstrap."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from needs import need
from project import ROOT

SCRIPTS = ROOT / "lifecycle_scripts"
KEPT_DAYS = 7
"""How long a root serves later runs: debootstrap takes a minute, and its updates are not what is tested."""
INCLUDE = (
    "curl,gpg,ldap-utils,libfabric-bin,libnss-sss,libpam-sss,openssh-client,openssh-server,openssl,python3,"
    "slapd,sssd-ldap"
)
"""Packages beside the smallest set, for all tests of nodes without compilers: they share one root."""
WASTE = (
    "proc",
    "sys",
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
)
"""What the kept root is without: two fifths of its bytes, which each test file would unpack and remove."""
ALONE = ("unshare", "--mount", "--propagation", "private")
"""Mounts of their own: a debootstrap that is killed would leave `/proc` mounted in a folder of the cache, and
whoever empties the cache later would meet it."""


def make_root(root: Path, *, include: str = INCLUDE, tools: Sequence[str]) -> None:
    """Make the root, with the scripts in `scripts` and no release; the test is skipped where that cannot be.

    Args:
        include: packages beside the smallest set, separated by commas.
        tools: programs that the tests run on this machine, beside debootstrap and unshare.
    """
    need("debootstrap", "unshare", *tools, root=True)
    # for all checkouts, as the roots of twins (slurm_twin/root.py)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ultracluster-debian"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{hashlib.sha256(repr((include, WASTE)).encode()).hexdigest()[:16]}.tar"
    with (folder / "lock").open("w") as lock:  # workers ask for the same one
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if not kept.exists() or kept.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            debootstrap(root, kept, include)
    root.mkdir()
    subprocess.run(["tar", "--extract", "--numeric-owner", "--file", kept, "--directory", root], check=True)
    # No fsync: under load it takes most of the time.
    (root / "etc/dpkg/dpkg.cfg.d/test").write_text("force-unsafe-io\n")
    # debconf's questions before an installation, of which these packages have none: a Perl for each of them
    (root / "etc/apt/apt.conf.d/70debconf").unlink(missing_ok=True)
    shutil.copytree(SCRIPTS, root / "scripts", ignore=shutil.ignore_patterns("releases"))
    (root / "scripts/releases").mkdir()


def debootstrap(root: Path, kept: Path, include: str) -> None:
    archive = mirror()
    if not archive:
        pytest.skip("this machine's apt has no archive over HTTP")
    made = subprocess.run(
        [*ALONE, "debootstrap", "--variant=minbase", f"--include={include}", "bookworm", root, archive],
        env=os.environ | {"DPKG_FORCE": "unsafe-io"},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"debootstrap failed: {' '.join(made.stdout.splitlines()[-1:])}")
    new = kept.with_suffix(".new")
    leave = [f"--exclude=./{path}/*" for path in WASTE]
    subprocess.run(
        ["tar", "--create", "--numeric-owner", "--file", new, "--directory", root, *leave, "."], check=True
    )
    new.rename(kept)
    shutil.rmtree(root)


def mirror() -> str:
    """The Debian archive that this machine's own apt reads."""
    words = [
        word
        for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
        if file.is_file()
        for line in file.read_text().splitlines()
        if line.startswith(("deb ", "URIs:"))
        for word in line.split()
    ]
    return next(
        (word for word in words if word.startswith("http") and word.rstrip("/").endswith("/debian")), ""
    )


def enter(root: Path, *command: str, network: bool = True) -> list[str | Path]:
    """The command, in the root with a /proc that is gone with it, and without a network if need be."""
    inside = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    own = ["--mount"] if network else ["--mount", "--net"]
    return ["unshare", *own, "sh", "-c", inside, root, *command]
