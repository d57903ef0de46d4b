"""Fetching one Python wheel by its file name, with pip and from the index that pip is set up for."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ultracluster.software.supply.downloads import DownloadError

_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)-(?P<python>[a-z]+\d+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)
_TIMEOUT = 1800  # seconds for one wheel


def is_wheel(name: str) -> bool:
    """Whether a file name says all that pip has to know."""
    return _WHEEL.fullmatch(name) is not None


def fetch_wheel(name: str, target: Path) -> None:
    """Fetch the wheel called `name` into `target`, which appears when it is complete.

    Raises:
        DownloadError: pip is missing, or its index does not have exactly this file.
        OSError: the disk is full or not writable.
    """
    found = _WHEEL.fullmatch(name)
    if found is None:
        raise DownloadError(f"{name} is no name of a wheel")
    tags: list[str] = []
    if found["platform"] != "any":  # else it is for every machine, and pip's own Python will do
        tags = ["--abi", found["abi"], "--python-version", re.sub(r"\D", "", found["python"])]
        tags += ["--implementation", re.sub(r"\d", "", found["python"])]
        for platform in found["platform"].split("."):
            tags += ["--platform", platform]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = [
            *(
                sys.executable,
                "-m",
                "pip",
                "--disable-pip-version-check",
                "--no-input",
                "download",
                "--quiet",
            ),
            *("--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest", folder, *tags),
            f"{found['name']}=={found['version']}",
        ]
        try:
            done = subprocess.run(  # noqa: S603 - every argument is a part of a checked name
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise DownloadError(f"{name}: pip took longer than {_TIMEOUT} s") from None
        file = Path(folder) / name
        if done.returncode or not file.is_file():
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise DownloadError(f"{name}: pip does not find it ({said[-1] if said else 'it said nothing'})")
        file.replace(target)
