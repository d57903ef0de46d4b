"""Other revisions of a project's environment files, from git."""

from __future__ import annotations

import re
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from ultracluster.project.archives import extract
from ultracluster.project.place import ProjectError


def unpack(root: Path, revision: str, into: Path) -> str:
    """Write a revision's environments, locks and node steps to a folder; returns the commit, abbreviated.

    Raises:
        ProjectError: git does not know the revision, or is not installed.
    """
    # with what it may extend; git refuses a pattern that nothing fits, hence one for .yaml and .yml
    return _unpack(root, revision, into, ("*.y*ml", "*.lock", "*.sh"), "--against")


def unpack_all(root: Path, revision: str, into: Path, *, option: str) -> str:
    """Write everything of a revision to a folder; returns the commit, abbreviated.

    Raises:
        ProjectError: git does not know the revision, or is not installed; the text begins with the option.
    """
    return _unpack(root, revision, into, (".",), option)


def earlier_names(root: Path, file: Path) -> list[str]:
    """Names of the environment that a file had in earlier revisions, the last first; none without git."""
    try:
        told = _git(
            "", root, "log", "--follow", "-n50", "-p", "-U0", "--format=", "-G^name:", "--", str(file)
        )
    except ProjectError:
        return []
    names = re.findall(r"^-name:\s*[\"']?([a-z0-9-]+)", (told or b"").decode(errors="replace"), re.MULTILINE)
    return list(dict.fromkeys(names))


def _unpack(root: Path, revision: str, into: Path, patterns: tuple[str, ...], option: str) -> str:
    found = _git(option, root, "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}")
    if found is None:
        raise ProjectError(f"{option} {revision}: git knows no such revision in {root}")
    commit = found.decode().strip()
    for pattern in patterns:
        packed = _git(option, root, "archive", "--format=tar", commit, "--", pattern)
        if packed is not None:
            with tarfile.open(fileobj=BytesIO(packed)) as archive:
                try:
                    extract(archive, into)
                except ValueError as error:
                    raise ProjectError(f"{option} {revision}: {error}") from None
    return commit


def _git(option: str, root: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it refuses."""
    try:
        result = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)  # noqa: S603, S607
    except FileNotFoundError:
        raise ProjectError(f"{option} needs git, which is not installed") from None
    return result.stdout if result.returncode == 0 else None
