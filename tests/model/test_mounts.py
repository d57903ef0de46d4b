"""File systems as cluster.json and arguments tell of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cluster_schema import cluster_of, faults
from project import ROOT

from ultracluster.model import mounts
from ultracluster.model.mounts import LustreMount, OpenZfsMount

pytestmark = pytest.mark.slow

MOUNTS = mounts.told(
    LustreMount(dns_name="fs-0123.fsx.us-east-1.amazonaws.com", mount_name="abcdefgh", efa=True),
    OpenZfsMount(dns_name="fs-4567.fsx.us-east-1.amazonaws.com"),
)


def test_arguments_and_file_tell_the_same_of_mounts(tmp_path: Path) -> None:
    """pcs_node.sh writes into the file what deploy could not."""
    assert mounts.as_arguments(MOUNTS) == [
        "--lustre", "/fsx", "fs-0123.fsx.us-east-1.amazonaws.com", "abcdefgh", "yes",
        "--openzfs", "/home", "fs-4567.fsx.us-east-1.amazonaws.com", "/fsx",
    ]  # fmt: skip
    script = (ROOT / "lifecycle_scripts" / "pcs_node.sh").read_text()
    writer = script.split("<<'PYTHON'", 1)[1].split("\n", 1)[1].split("\nPYTHON", 1)[0]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(cluster_of("p5.48xlarge")))
    subprocess.run(["python3", "-IS", "-c", writer, file, *mounts.as_arguments(MOUNTS)], check=True)

    told = json.loads(file.read_text())
    assert told["mounts"] == MOUNTS
    assert faults(told) == []
