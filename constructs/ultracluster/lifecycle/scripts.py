"""Where the lifecycle scripts are, and the hash of their content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

CONFIGURATION = "cluster.json"
ENTRIES = {
    "on-init-complete": "hyperpod_on_init_complete.sh",
    "on-create": "hyperpod_on_create.sh",
}
"""Entry script by lifecycle mode; it lies directly below the prefix, as HyperPod wants it."""
FORBIDDEN = "provisioning_parameters.json"
"""The legacy configuration of HyperPod: beside a SlurmConfig it is an API error."""


def scripts_folder() -> Path:
    """The folder of the scripts: in the wheel, or beside `constructs/` in a checkout.

    Raises:
        FileNotFoundError: in neither place.
    """
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "lifecycle_scripts", package.parents[1] / "lifecycle_scripts")
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"no lifecycle scripts in {candidates[0]} or {candidates[1]}")


def script_files(folder: Path) -> list[Path]:
    """What is uploaded, sorted: everything but documentation and hidden files.

    Raises:
        ValueError: the folder holds the legacy configuration file of HyperPod.
    """
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and file.suffix != ".md"
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    if any(file.name == FORBIDDEN for file in files):
        raise ValueError(
            f"{folder} holds {FORBIDDEN}, which HyperPod refuses beside a SlurmConfig: remove it"
        )
    return files


def content_hash(folder: Path, configuration: dict[str, Any]) -> str:
    """Twelve hex digits that change when a script, its mode or the configuration changes."""
    digest = hashlib.sha256()
    for file in script_files(folder):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(b"x" if file.stat().st_mode & 0o100 else b"-")
        digest.update(file.read_bytes() + b"\0")
    digest.update(json.dumps(configuration, sort_keys=True).encode())
    return digest.hexdigest()[:12]
