"""Where the lifecycle scripts are: in the wheel, or next to `constructs/` in a checkout."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

CONFIGURATION = "cluster.json"
"""Written next to the scripts at deploy; not one of them."""
FORBIDDEN = "provisioning_parameters.json"
"""The legacy configuration of HyperPod: with a SlurmConfig it is an API error."""


@cache
def scripts_folder() -> Path:
    """The folder of the scripts: in the wheel, or next to `constructs/` in a checkout.

    Raises:
        FileNotFoundError: in neither place.
    """
    package = Path(__file__).resolve().parent
    candidates = (package / "lifecycle_scripts", package.parents[1] / "lifecycle_scripts")
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"no lifecycle scripts in {candidates[0]} or {candidates[1]}")


def script_files(folder: Path) -> list[Path]:
    """What is uploaded, sorted: everything but documentation, hidden files and what Python leaves behind.

    Raises:
        ValueError: the folder holds the legacy configuration file of HyperPod.
    """
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and file.suffix != ".md"
        and not any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(folder).parts)
    )
    if any(file.name == FORBIDDEN for file in files):
        raise ValueError(f"{folder} holds {FORBIDDEN}, which HyperPod refuses with a SlurmConfig: remove it")
    return files


def tree_sha256(folder: Path) -> str:
    """One digest of all scripts that a shell can compute, too.

    It is the SHA-256 of what `sha256sum` prints for the files in byte order of their relative paths:
    `find . -type f ! -name cluster.json -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`.
    """
    lines: list[bytes] = []
    names = {file.relative_to(folder).as_posix().encode(): file for file in script_files(folder)}
    names.pop(CONFIGURATION.encode(), None)
    for name in sorted(names):
        digest = hashlib.sha256(names[name].read_bytes()).hexdigest()
        lines.append(digest.encode() + b"  " + name + b"\n")
    return hashlib.sha256(b"".join(lines)).hexdigest()


_OWN_RELEASES: dict[str, Path] = {}


def add_own_release(file: Path) -> str:
    """Make the lock file of a team's own release known by the release's name, which is the file's.

    An environment names such a file by its path; from then on it is a release like those of this package.

    Raises:
        FileNotFoundError: there is no such file.
        FileExistsError: a release of this package has that name.
    """
    named = file.with_suffix(".lock")
    try:
        lock = named.resolve()
        there = lock.is_file()
    except (OSError, ValueError, RuntimeError):  # a name that is too long, holds a NUL, or links to itself
        lock, there = named, False
    if not there:
        raise FileNotFoundError(f"{named} does not exist")
    shipped = scripts_folder() / "releases" / lock.name
    if shipped.is_file() and shipped.resolve() != lock:
        raise FileExistsError(f"a release of this package is called {lock.stem}")
    if shipped.resolve() != lock:
        _OWN_RELEASES[lock.stem] = lock
    return lock.stem


def own_release(name: str) -> Path | None:
    """The lock file of a team's own release; None for a release of this package."""
    return _OWN_RELEASES.get(name)


_OWN_STEPS: dict[str, bytes] = {}


def add_own_step(content: bytes) -> str:
    """Keep a node step of a team's own until its nodes' scripts are bundled; its SHA-256, which names it."""
    digest = hashlib.sha256(content).hexdigest()
    _OWN_STEPS[digest] = content
    return digest


def own_step(digest: str) -> bytes:
    """The content of a team's own step.

    Raises:
        KeyError: no step with this digest was added.
    """
    return _OWN_STEPS[digest]


def name_in_folder(folder: Path, file: Path) -> str:
    """Where a file lies among the scripts, as nodes see it; a team's own release lies next to the others."""
    if file.is_relative_to(folder):
        return file.relative_to(folder).as_posix()
    return f"releases/{file.name}"
