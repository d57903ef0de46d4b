"""Other revisions of a project's environment files, from git."""

from __future__ import annotations

from pathlib import Path

from ultracluster.project.place import ProjectError


def unpack(root: Path, revision: str, into: Path) -> str:
    """Write a revision's environments, locks and node steps to a folder; returns the commit, abbreviated.

    Raises:
        ProjectError: git does not know the revision, or is not installed.
    """
    import tarfile
    from io import BytesIO

    found = _git(root, "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}")
    if found is None:
        raise ProjectError(f"--against {revision}: git knows no such revision in {root}")
    commit = found.decode().strip()
    # with what it may extend; git refuses a pattern that nothing fits, hence one for .yaml and .yml
    for pattern in ("*.y*ml", "*.lock", "*.sh"):
        packed = _git(root, "archive", "--format=tar", commit, "--", pattern)
        if packed is not None:
            with tarfile.open(fileobj=BytesIO(packed)) as archive:
                archive.extractall(into, filter="data")
    return commit


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it refuses."""
    import subprocess

    try:
        result = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)  # noqa: S603, S607
    except FileNotFoundError:
        raise ProjectError("--against needs git, which is not installed") from None
    return result.stdout if result.returncode == 0 else None
