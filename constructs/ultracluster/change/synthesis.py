"""Environment files to templates: the app of the checkout, in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ultracluster.change import Template
from ultracluster.change.template_files import read_templates
from ultracluster.cli.environments import refuse

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def synthesise(root: Path, files: list[tuple[str, Path]], scratch: Path) -> list[dict[str, Template]]:
    """The templates of environment files (each with what to call it), made side by side by the app itself.

    Args:
        root: the checkout.
        scratch: a folder for what the app writes.
    """
    from concurrent.futures import ThreadPoolExecutor

    names = [name for name, _ in files]
    with _spinner(f"synthesising {' and '.join(names)} ..."), ThreadPoolExecutor(max_workers=2) as pool:
        folders = [scratch / f"out{number}" for number in range(len(files))]
        runs = list(pool.map(_app, [root] * len(files), (file for _, file in files), folders))
    for name, run in zip(names, runs, strict=True):
        if run.returncode:
            lines = [line for line in run.stderr.splitlines() if not line.startswith("b'!!")]
            text = "\n".join(lines[-40:] if run.returncode == 2 else lines[-15:])
            refuse(f"{name} cannot be synthesised:\n{text}")
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


@contextmanager
def _spinner(text: str) -> Generator[None]:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
