"""The checkout of the project that a command runs in: its folder, environment files, and other revisions."""

from __future__ import annotations

from pathlib import Path

from ultracluster.cli.environments import refuse


def checkout() -> Path:
    """The folder of app.py, here or above."""
    here = Path.cwd()
    folders = (here, *here.parents)
    root = next((one for one in folders if (one / "app.py").is_file() and (one / "cdk.json").is_file()), None)
    if root is None:
        refuse(
            f"there is no app.py with its cdk.json in {here} or above: run this in a checkout of the "
            "project, or compare templates: ultracluster diff --templates OLD NEW"
        )
    return root


def environment_file(root: Path, name: str) -> Path:
    """An environment file by its path, or by its name in the checkout's environments/."""
    file = Path(name)
    named = root / "environments" / f"{name}.yaml"
    given = file.suffix in {".yaml", ".yml"} or (file.exists() and not named.is_file())
    return file.resolve() if given else named


def unpack(root: Path, revision: str, into: Path) -> str:
    """Write a revision's environments and their locks to a folder; returns the commit, abbreviated."""
    import tarfile
    from io import BytesIO

    found = _git(root, "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}")
    if found is None:
        refuse(f"--against {revision}: git knows no such revision in {root}")
    commit = found.decode().strip()
    # with what it may extend; git refuses a pattern that nothing fits, hence one for .yaml and .yml
    for pattern in ("*.y*ml", "*.lock"):
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
        refuse("--against needs git, which is not installed")
    return result.stdout if result.returncode == 0 else None
