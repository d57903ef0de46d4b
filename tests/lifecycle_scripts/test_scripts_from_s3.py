"""A node computes the hash of the scripts that it fetches from S3 as the deploy does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ultracluster.lifecycle.bundles import CONFIGURATION, NodeFiles, configuration_text
from ultracluster.scripts_folder import scripts_folder

STATIC: dict[str, Any] = {
    "schema": 1,
    "cluster": "dév",
    "release": None,
    "node_groups": {"gpu": {"role": "compute", "nvswitch": True, "data_volume": None}},
}
ENTRIES = ("parallelcluster_on_node_start", "parallelcluster_on_node_configured")
AWS = """#!/bin/sh
# aws s3 cp --only-show-errors --recursive s3://FOLDER/ TARGET/
cp -r "$S3/${5#s3://}." "$6"
"""


def fetch(tmp_path: Path, folder: str) -> subprocess.CompletedProcess[str]:
    """Runs a script that does nothing, out of the folder."""
    commands = tmp_path / "bin"
    commands.mkdir(exist_ok=True)
    (commands / "aws").write_text(AWS)
    (commands / "aws").chmod(0o755)
    environment = {
        "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ULTRACLUSTER_ROOT": str(tmp_path / "root"),
        "S3": str(tmp_path / "s3"),
        "ULTRACLUSTER_RETRY_SECONDS": "0",
    }
    script = scripts_folder() / "files" / "from_s3.sh"
    command = ["bash", str(script), f"s3://scripts/{folder}", "lib/clock"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("change", ["nothing", "mounts", "configuration", "script"])
def test_node_and_deploy_agree_on_the_hash(tmp_path: Path, change: str) -> None:
    bundle = NodeFiles.of(*ENTRIES).in_folder(STATIC)
    deployed = STATIC | ({} if change == "nothing" else {"mounts": {"lustre": {"dns_name": "fs-1"}}})
    if change == "configuration":
        deployed |= {"cluster": "another"}
    files = {**bundle.files, CONFIGURATION: configuration_text(deployed)}
    if change == "script":
        files["lib/clock.sh"] += b"echo more\n"
    for name, content in files.items():
        path = tmp_path / "s3" / "scripts" / bundle.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    done = fetch(tmp_path, bundle.folder)
    if change in ("nothing", "mounts"):
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        assert "was changed after the deploy" in done.stderr
