"""The Debian roots that the machines of a twin boot from: made once by debootstrap, then only read."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from debian_root import ALONE, mirror
from needs import missing

RELEASES = {"26.05": "forky", "24.11": "trixie"}
"""Of Debian, by their Slurm. 26.05 has block topology, `topology.yaml`, `--segment` and OpenMetrics."""
PACKAGES = (
    "slurm-wlm,slurmdbd,mariadb-server,munge,openssh-server,openssh-client,libpam-slurm-adopt,"
    "gcc,libc6-dev,libslurm-dev,iproute2,jq,python3,systemd,systemd-journal-remote,procps,curl,sudo,nftables"
)
KEPT_DAYS = 14
TOOLS = ("debootstrap", "unshare", "nsenter", "setpriv", "ip")
HERE = Path(__file__).parent
PLUGINS = "usr/lib/x86_64-linux-gnu/slurm-wlm"


class NoTwinError(RuntimeError):
    """This machine cannot run a twin; the text says what is missing."""


def cache() -> Path:
    """Where roots are kept, for all checkouts and workers."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "ultracluster-twin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "at").mkdir(exist_ok=True)
    except OSError as error:
        raise NoTwinError(f"{error}: XDG_CACHE_HOME may name another place for Debian roots") from None
    return folder


def root_of(version: str) -> Path:
    """The root with that Slurm, which no twin writes to: under a gigabyte, and minutes to make at first.

    Raises:
        NoTwinError: a program is missing, or there is no archive.
    """
    if why := missing(*TOOLS, root=True):
        raise NoTwinError(why)
    source = (HERE / "autoresume.c").read_text()
    release = RELEASES[version]
    name = hashlib.sha256(f"{release} {PACKAGES} {source}".encode()).hexdigest()[:12]
    kept = cache() / f"{release}-{name}"
    with (cache() / f"{release}.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if not kept.exists() or kept.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            _debootstrap(kept, release)
    return kept


def _debootstrap(kept: Path, release: str) -> None:
    archive = mirror()
    if not archive:
        raise NoTwinError("this machine's apt has no archive over HTTP")
    new = kept.with_name(f"{kept.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    scripts = Path("/usr/share/debootstrap/scripts")
    # a debootstrap older than the release does not know it by name
    script = scripts / (release if (scripts / release).exists() else "sid")
    made = subprocess.run(
        [*ALONE, "debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, new, archive, script],
        env=os.environ | {"DPKG_FORCE": "unsafe-io", "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True, text=True, check=False, umask=0o022,
    )  # fmt: skip
    if made.returncode != 0:
        last = (made.stdout + made.stderr).splitlines()[-1:]
        raise NoTwinError(f"debootstrap of {release} failed: {' '.join(last)}")
    plugin = f"/{PLUGINS}/auto_resume.so"
    compiled = subprocess.run(
        ["chroot", new, "gcc", "-Wall", "-Werror", "-shared", "-fPIC", "-x", "c", "-o", plugin, "-"],
        input=(HERE / "autoresume.c").read_text(), capture_output=True, text=True, check=False, umask=0o022,
    )  # fmt: skip
    if compiled.returncode != 0:
        raise NoTwinError(f"the plugin for --auto-resume does not compile: {compiled.stderr}")
    for waste in ("var/cache/apt/archives", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(new / waste, ignore_errors=True)
    for old in cache().glob(f"{release}-*"):
        if old.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            shutil.rmtree(old, ignore_errors=True)
    os.utime(new)
    shutil.rmtree(kept, ignore_errors=True)
    new.rename(kept)
