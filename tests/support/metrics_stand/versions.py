"""Prometheus as Debian has it: what is installed here, and that of a newer release, unpacked into a cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from needs import missing

VERSIONS = ("installed", "forky")
"""2.42 on bookworm, and the 3.5 of forky."""
KEPT_DAYS = 14
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class NoPrometheusError(pytest.skip.Exception):
    """This machine has none, and cannot get one; the text says why. A test that raises it is skipped."""


@dataclass(frozen=True)
class Tools:
    prometheus: str
    promtool: str


def tools(version: str = "installed") -> Tools:
    """The programs of one of `VERSIONS`.

    Raises:
        NoPrometheusError: they are not installed, or there is no archive.
    """
    if version == "installed":
        return Tools(program("prometheus"), program("promtool"))
    folder = _unpacked(version) / "usr/bin"
    return Tools(str(folder / "prometheus"), str(folder / "promtool"))


def program(*names: str) -> str:
    """The first of these programs that is here."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise NoPrometheusError(missing(names[0]))
    return found


def _unpacked(release: str) -> Path:
    """The programs of that release: signed, 35 MB to fetch, then kept. They need nothing but a C library."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ultracluster-prometheus"
    home.mkdir(parents=True, exist_ok=True)
    kept = home / release
    with (home / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if not kept.exists() or kept.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            _fetch(home / f"{release}.new", release)
            shutil.rmtree(kept, ignore_errors=True)
            (home / f"{release}.new").rename(kept)
    return kept


def _fetch(folder: Path, release: str) -> None:
    archive = next(
        (line for line in _run("apt-get", *_WHERE).splitlines() if line.endswith("/debian/")), None
    )
    if archive is None:
        raise NoPrometheusError("this machine's apt has no archive of Debian")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {archive} {release} main\n")
    options = [
        f"Dir::Etc::SourceList={folder}/sources.list",
        "Dir::Etc::SourceParts=/dev/null",
        f"Dir::State::Lists={folder}/lists",
        f"Dir::Cache={folder}/cache",
        "APT::Sandbox::User=root",
        "Acquire::Retries=3",
    ]
    apt = ["apt-get", "-qq", *(word for one in options for word in ("-o", one))]
    _run(*apt, "update")
    _run(*apt, "download", "prometheus", "promtool", folder=folder)
    for file in folder.glob("*.deb"):
        _run("dpkg-deb", "--extract", str(file), str(folder))
        file.unlink()
    for waste in ("lists", "cache", "usr/share"):
        shutil.rmtree(folder / waste, ignore_errors=True)


_WHERE = ("indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian")


def _run(*command: str, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    except OSError as error:
        raise NoPrometheusError(f"{command[0]}: {error}") from None
    if done.returncode:
        raise NoPrometheusError(f"{' '.join(command[-3:])}: {done.stderr.strip()[-300:]}")
    return done.stdout
