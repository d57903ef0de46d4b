"""A project's app.py is run as the CDK's command runs it, with Python and Node.js alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from ultracluster.nodejs import MORE, NEXT, NoNodeError, with_node
from ultracluster.project.place import ProjectError, cdk_json

METADATA = {
    "pathMetadata": "aws:cdk:enable-path-metadata",
    "assetMetadata": "aws:cdk:enable-asset-metadata",
    "versionReporting": "aws:cdk:version-reporting",
}
"""What the CDK's command adds to an app's context (aws-cdk 2.1148), by the key of cdk.json that stops it."""
_JSII = "b'!!"
"""Begins each line of what the CDK's kernel says of a Node.js that it was not tested with."""


def synth_into(root: Path, file: Path, out: Path) -> str:
    """Write templates as `cdk deploy --app OUT` takes them; returns what the app said.

    Args:
        root: the project.

    Raises:
        ProjectError: it cannot be synthesised.
    """
    settings = cdk_json(root)
    context = {name: True for key, name in METADATA.items() if settings.get(key, True)}
    if not settings.get("versionReporting", True):
        context["aws:cdk:disable-version-reporting"] = True
    run = run_app(root, file, out, context)
    said = said_by(run)
    if run.returncode:
        raise ProjectError(f"{file.name} cannot be synthesised:\n{said}")
    if wrong := list(_errors(out)):
        raise ProjectError(f"{file.name} cannot be deployed:\n" + "\n".join(wrong))
    return said


def synth_each(root: Path, files: list[tuple[str, Path]], scratch: Path) -> list[Path]:
    """Folders with the templates of environment files (each with what to call it), made by one process.

    Without the CDK's own metadata, which no comparison is about. Most of the time of a small environment is
    the start of Python and of the CDK's kernel: one process makes them one after the other.

    Args:
        root: the project.
        scratch: a folder for what the app writes.

    Raises:
        ProjectError: an environment cannot be synthesised.
    """
    made = [(name, file, scratch / f"out{number}") for number, (name, file) in enumerate(files)]
    while made_next := [one for one in made if not (one[2] / "manifest.json").exists()]:
        # an app.py that does not call ours makes one at a time
        (_, file, out), *further = made_next
        run = run_app(
            root, file, out, further=[(str(more.resolve()), str(folder)) for _, more, folder in further]
        )
        if run.returncode:
            _, marked, said = said_by(run).rpartition(NEXT)
            number, _, text = said.partition("\n") if marked else ("0", "", said)
            lines = text.splitlines()
            text = "\n".join(lines[-40:] if run.returncode == 2 else lines[-15:])
            raise ProjectError(f"{made_next[int(number)][0]} cannot be synthesised:\n{text}")
        if not (out / "manifest.json").exists():
            raise ProjectError(
                f"{root / 'app.py'} wrote no templates of {file}: does it call ultracluster.app.main?"
            )
    return [out for _, _, out in made]


def run_app(
    root: Path,
    file: Path,
    out: Path,
    more: dict[str, Any] | None = None,
    *,
    python: Path | None = None,
    packages: Sequence[Path] | None = None,
    further: Sequence[tuple[str, str]] = (),
) -> CompletedProcess[str]:
    """Run app.py as the CDK's command does, which is what reads the context of cdk.json.

    Args:
        root: the project; a folder without app.py and cdk.json has ours.
        more: what the context has beside that of cdk.json.
        python: another Python than this one.
        packages: where modules are looked for before those that are installed, instead of PYTHONPATH.
        further: other environment files for the same process, each with the folder of its templates.

    Raises:
        ProjectError: cdk.json cannot be read, or there is no Node.js.
        ModuleNotFoundError: the CDK is not installed, as after `make plan` in a new checkout.
    """
    if python is None and find_spec("aws_cdk") is None:
        raise ModuleNotFoundError("No module named 'aws_cdk'", name="aws_cdk")
    own = (root / "app.py").is_file()
    context: dict[str, Any] = cdk_json(root).get("context", {}) if own else {}
    try:
        environment = with_node(os.environ)
    except NoNodeError as error:
        raise ProjectError(str(error)) from None
    environment |= {
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps({**context, **(more or {}), "env": str(file.resolve())}),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    }
    if further:
        environment[MORE] = json.dumps(further)
    if packages is not None:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
    app = [str(root / "app.py")] if own else ["-P", "-m", "ultracluster.app"]
    command = [str(python or sys.executable), *app]
    return subprocess.run(  # noqa: S603
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def said_by(run: CompletedProcess[str]) -> str:
    """What the app printed, without the remarks of the CDK's kernel."""
    text = run.stdout + run.stderr
    return "\n".join(line for line in text.splitlines() if not line.startswith(_JSII))


def _errors(out: Path) -> Iterator[str]:
    """Errors that constructs reported: the CDK's command refuses to deploy for them, the library does not."""
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    for artifact in manifest.get("artifacts", {}).values():
        metadata = artifact.get("metadata", {})
        if separate := artifact.get("additionalMetadataFile"):
            metadata = metadata | json.loads((out / separate).read_text(encoding="utf-8"))
        for path, entries in metadata.items():
            for entry in entries:
                if entry["type"] == "aws:cdk:error":
                    yield f"{path}: {entry['data']}"
