"""The hash of what one kind of node runs; where the scripts are says `ultracluster.scripts_folder`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ultracluster.scripts_folder import CONFIGURATION, FORBIDDEN, name_in_folder, script_files, scripts_folder

ENTRIES = {
    "on-init-complete": "hyperpod_on_init_complete.sh",
    "on-create": "hyperpod_on_create.sh",
}
"""Entry script by lifecycle mode; it lies directly below the prefix, as HyperPod wants it."""
EKS_ENTRY = "hyperpod_eks_on_create.sh"
"""The one of HyperPod on EKS, which has no other mode than `on-create`."""


def content_hash(folder: Path, files: Sequence[Path], configuration: Mapping[str, Any]) -> str:
    """Twelve hex digits that change when one of the files, its mode or the configuration changes."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(name_in_folder(folder, file).encode() + b"\0")
        digest.update(b"x" if file.stat().st_mode & 0o100 else b"-")
        digest.update(file.read_bytes() + b"\0")
    digest.update(json.dumps(configuration, sort_keys=True).encode())
    return digest.hexdigest()[:12]


def not_uploaded(folder: Path) -> list[str]:
    """What the folder holds beside the scripts, to be left out of an asset."""
    keep = set(script_files(folder))
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and file not in keep)
    return [name_in_folder(folder, file) for file in files]


__all__ = [
    "CONFIGURATION",
    "EKS_ENTRY",
    "ENTRIES",
    "FORBIDDEN",
    "content_hash",
    "not_uploaded",
    "script_files",
    "scripts_folder",
]
