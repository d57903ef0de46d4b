"""What jobs bring to the nodes runs there by itself."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from project import ROOT

from ultracluster.acceptance.node_tools import packed_tools, slurm_script
from ultracluster.catalog import instance_types
from ultracluster.project.archives import extract

P5EN = instance_types()["p5en.48xlarge"]
MOST_OF_A_CONFIG_MAP = 1 << 20
"""Bytes (Kubernetes documentation, ConfigMap)."""


def unpack(packed: bytes, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        extract(archive, folder)
    return folder


def test_fabric_sh_runs_out_of_the_archive(tmp_path: Path) -> None:
    home = unpack(packed_tools(P5EN), tmp_path / "home")
    done = subprocess.run(
        ["bash", home / "verify/fabric.sh", "--json", "--type", P5EN.name, "devices", "modules", "lustre"],
        capture_output=True, text=True, check=False,
        env={"ULTRACLUSTER_ROOT": str(tmp_path), "PATH": "/usr/bin:/bin", "ULTRACLUSTER_EFA_PAUSE": "0"},
    )  # fmt: skip

    assert not done.stderr
    report = json.loads(done.stdout)
    assert report["summary"] == "devices: 0 EFA devices, expected 16"


def test_the_number_of_interfaces_can_be_given(tmp_path: Path) -> None:
    home = unpack(packed_tools(P5EN, efa_interfaces=8), tmp_path)

    (group,) = json.loads((home / "cluster.json").read_text())["node_groups"].values()
    assert (group["efa_interfaces"], group["efa_layouts"]) == (8, [8])


def test_the_script_carries_its_tools_and_is_else_that_of_the_repository() -> None:
    script = slurm_script(P5EN)
    own = (ROOT / "lifecycle_scripts/acceptance/nccl_tests.sbatch").read_text()
    (line,) = (line for line in script.splitlines() if line not in own.splitlines())

    assert base64.b64decode(line.split("'")[1]) == packed_tools(P5EN)
    assert slurm_script(P5EN) == script
    assert len(line) < MOST_OF_A_CONFIG_MAP / 8


def test_trainium_has_the_script_of_nccom_test_and_other_types_none() -> None:
    assert "nccom-test -r" in slurm_script(instance_types()["trn2.48xlarge"])
    with pytest.raises(ValueError, match=r"m5.large has no accelerators"):
        slurm_script(instance_types()["m5.large"])


def test_the_script_measures_the_collective_that_is_asked_for() -> None:
    for name in ("p5en.48xlarge", "trn2.48xlarge"):
        assert "\nCOLLECTIVE=all_gather\n" in slurm_script(instance_types()[name], collective="all_gather")
    with pytest.raises(ValueError, match="measures no collective 'broadcast'; there are all_reduce, all_g"):
        slurm_script(P5EN, collective="broadcast")
    with pytest.raises(ValueError, match="guide of nccom-test names no collective 'all_to_all'"):
        slurm_script(instance_types()["trn2.48xlarge"], collective="all_to_all")
