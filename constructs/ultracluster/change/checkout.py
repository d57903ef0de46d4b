"""The checkout of the project that a command runs in: its environment files, other revisions of them, and the
templates that its app makes of them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ultracluster.change.changes import ChangeError
from ultracluster.change.template import Template
from ultracluster.change.template_files import read_templates
from ultracluster.config import Environment, load

if TYPE_CHECKING:
    from subprocess import CompletedProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """An environment file in a checkout."""

    name: str
    """What the user calls it."""
    root: Path
    file: Path
    environment: Environment


def located(name: str) -> Located:
    """An environment file by its path, or by its name in the checkout's environments/.

    Raises:
        ChangeError: there is no checkout of the project here.
        InvalidEnvironmentError: the file cannot be read, or is not an environment.
    """
    root = checkout()
    file = Path(name)
    named = root / "environments" / f"{name}.yaml"
    given = file.suffix in {".yaml", ".yml"} or (file.exists() and not named.is_file())
    file = file.resolve() if given else named
    return Located(name=name, root=root, file=file, environment=load(file).environment)


def checkout() -> Path:
    """The folder of app.py, here or above.

    Raises:
        ChangeError: there is none.
    """
    here = Path.cwd()
    folders = (here, *here.parents)
    root = next((one for one in folders if (one / "app.py").is_file() and (one / "cdk.json").is_file()), None)
    if root is None:
        raise ChangeError(
            f"Run this in a checkout of the project ({here} and the folders above have no app.py with "
            "cdk.json), or compare templates: ultracluster diff --templates OLD NEW"
        )
    return root


def unpack(root: Path, revision: str, into: Path) -> str:
    """Write a revision's environments and their locks to a folder; returns the commit, abbreviated.

    Raises:
        ChangeError: git does not know the revision, or is not installed.
    """
    import tarfile
    from io import BytesIO

    found = _git(root, "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}")
    if found is None:
        raise ChangeError(f"--against {revision}: git knows no such revision in {root}")
    commit = found.decode().strip()
    # with what it may extend; git refuses a pattern that nothing fits, hence one for .yaml and .yml
    for pattern in ("*.y*ml", "*.lock"):
        packed = _git(root, "archive", "--format=tar", commit, "--", pattern)
        if packed is not None:
            with tarfile.open(fileobj=BytesIO(packed)) as archive:
                archive.extractall(into, filter="data")
    return commit


def synthesise(root: Path, files: list[tuple[str, Path]], scratch: Path) -> list[dict[str, Template]]:
    """The templates of environment files (each with what to call it), made side by side by the app itself.

    Args:
        root: the checkout.
        scratch: a folder for what the app writes.

    Raises:
        ChangeError: an environment cannot be synthesised.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=2) as pool:
        folders = [scratch / f"out{number}" for number in range(len(files))]
        runs = list(pool.map(_app, [root] * len(files), (file for _, file in files), folders))
    for (name, _), run in zip(files, runs, strict=True):
        if run.returncode:
            lines = [line for line in run.stderr.splitlines() if not line.startswith("b'!!")]
            text = "\n".join(lines[-40:] if run.returncode == 2 else lines[-15:])
            raise ChangeError(f"{name} cannot be synthesised:\n{text}")
    return [read_templates(folder) for folder in folders]


def _app(root: Path, file: Path, out: Path) -> CompletedProcess[str]:
    """Run app.py as the CDK's command does, which is what reads the context of cdk.json."""
    import subprocess

    context = json.loads((root / "cdk.json").read_text(encoding="utf-8")).get("context", {})
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps({**context, "env": str(file)}),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    }
    command = [sys.executable, str(root / "app.py")]
    return subprocess.run(  # noqa: S603
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it refuses."""
    import subprocess

    try:
        result = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)  # noqa: S603, S607
    except FileNotFoundError:
        raise ChangeError("--against needs git, which is not installed") from None
    return result.stdout if result.returncode == 0 else None
