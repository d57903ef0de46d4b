"""An instance type of a new family, added as CONTRIBUTING says: one row and one price, and all know it."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

NAME = "p7.48xlarge"
ROW: dict[str, Any] = {
    "vcpu": 256,
    "memory_gib": 4096,
    "architecture": "x86_64",
    "accelerator": {"name": "R200", "manufacturer": "NVIDIA", "count": 8, "memory_gib": 2304},
    "network_gbps": 12800,
    "network_cards": 17,
    "network_interfaces": 33,
    "efa_interfaces": 16,
    "efa_only": True,
    "efa_on_card_0": False,
    "efa_layout_rule": "P6_B300",
    "network_cards_api": [
        {"first": 0, "last": 0, "baseline_gbps": 100, "peak_gbps": 100, "interfaces": 2,
         "interface_types": ["interface"]},
        {"first": 1, "last": 16, "baseline_gbps": 800, "peak_gbps": 800, "interfaces": 2,
         "interface_types": ["interface", "efa", "efa-only"]},
    ],
    "nitro": 6,
    "ipv4_per_interface": 50,
    "hyperpod_addresses_slurm": 17,
    "hyperpod_addresses_eks": 66,
    "local_nvme_disks": 8,
    "local_nvme_gb": 30720,
    "threads_per_core": [1, 2],
    "hyperpod": True,
    "hyperpod_regions": ["us-west-2"],
    "regions": ["us-west-2"],
    "gpu_direct_rdma": True,
    "lustre_efa_client": True,
    "lustre_efa_interfaces": 16,
    "lustre_gds_client": True,
    "link": "NVLink",
    "nvswitch": True,
    "imex": False,
    "nccl_protocol": "RDMA",
    "sources": ["announcement of the type"],
}  # fmt: skip
PRICE = {
    "instance_type": NAME,
    "region_or_zone": "us-west-2",
    "az_ids": "usw2-az2",
    "on_demand_usd_hr": "150.5",
    "od_source": "price list of the announcement",
    "od_date": "2026-11-20",
}

COPIED = ["constructs", "lifecycle_scripts", "environments", "tests"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the row, the price, and an environment with nodes of the type."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "__snapshots__", "*.bats")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    catalogue = folder / "constructs/ultracluster/catalog"
    instances = json.loads((catalogue / "instances.json").read_text())
    instances["types"][NAME] = ROW
    (catalogue / "instances.json").write_text(json.dumps(instances))
    with (catalogue / "prices.csv").open(newline="") as file:
        columns = csv.DictReader(file).fieldnames
    assert columns
    with (catalogue / "prices.csv").open("a", newline="") as file:
        csv.DictWriter(file, columns, restval="").writerow(PRICE)
    text = (folder / "environments/dev.yaml").read_text()
    lustre = "capacity_gib: 9600\n    throughput_mbps_per_tib: 1000\n    efa: true\n    gds: true\n"
    text = text.replace("capacity_gib: 1200\n    throughput_mbps_per_tib: 250\n", lustre)
    (folder / "environments/dev.yaml").write_text(text.replace("g6e.12xlarge", NAME))
    return folder


def run(checkout: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": f"{checkout}/constructs:{checkout}/tests/support", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def ultracluster(checkout: Path, *arguments: str) -> str:
    code = "import sys; from ultracluster.cli import main; sys.argv[0] = 'ultracluster'; main()"
    return run(checkout, "-c", code, *arguments)


def findings_in(printed: str) -> list[dict[str, Any]]:
    (one,) = json.loads(printed)["environments"]
    return one["findings"]


def test_no_part_of_the_project_knew_it() -> None:
    found = subprocess.run(
        ["git", "grep", "-lE", r"\bp7\b", "--", "constructs", "lifecycle_scripts", "stacks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_validate_finds_nothing_unknown(checkout: Path) -> None:
    findings = findings_in(ultracluster(checkout, "validate", "environments/dev.yaml", "--json"))
    assert "ENV018" not in str(findings)
    assert "error" not in {one["severity"] for one in findings}


def test_validate_names_a_fact_that_the_row_lacks(checkout: Path) -> None:
    file = checkout / "constructs/ultracluster/catalog/instances.json"
    before = file.read_text()
    document = json.loads(before)
    del document["types"][NAME]["nvswitch"]
    file.write_text(json.dumps(document))
    try:
        findings = findings_in(ultracluster(checkout, "validate", "environments/dev.yaml", "--json"))
    finally:
        file.write_text(before)
    (said,) = (one for one in findings if one["code"] == "ENV018")
    assert (said["path"], said["severity"]) == ("node_groups.gpu.instance_type", "warning")
    assert "nvswitch" in said["message"] and "link" not in said["message"]


def test_plan_has_its_accelerators_link_and_cost(checkout: Path) -> None:
    text = " ".join(ultracluster(checkout, "plan", "environments/dev.yaml").replace(",", "").split())
    assert f"2 x {NAME} 16 x R200" in text
    assert "GPU interconnect gpu: 8 by NVLink" in text
    assert "12.8 Tbit/s a node" in text
    assert f"If one {NAME} in group gpu fails: about 181 USD/h wasted" in text  # HyperPod's 1.2 times 150.5


def test_the_schema_of_environments_offers_it(checkout: Path) -> None:
    assert NAME in ultracluster(checkout, "schema")


def test_the_acceptance_job_and_the_gates_know_it(checkout: Path) -> None:
    text = ultracluster(checkout, "acceptance", "manifest", "--type", NAME, "--image", "example.com/nccl:1")
    assert "nvidia.com/gpu: 8" in text and "vpc.amazonaws.com/efa: 16" in text
    assert "run single 16G" in text
    rate = run(
        checkout,
        "-c",
        f"from ultracluster.acceptance.curves import ceiling; print(ceiling({NAME!r}, 4, 32, ring=True))",
    )
    assert float(rate) == 1600


def test_nodes_are_told_and_come_up(checkout: Path) -> None:
    """The first boot: the fabric manager runs, and Lustre binds its EFA interfaces."""
    code = """
import json
from first_boot.rehearsal import boots, rehearsed
from ultracluster.config import load
environment = load("environments/dev.yaml").environment
(boot,) = (one for one in boots(environment) if one.group == "gpu")
outcome = rehearsed(boot)
print(json.dumps([boot.node.cluster["node_groups"]["gpu"], outcome.status, outcome.last_line, outcome.log]))
"""
    group, status, last, log = json.loads(run(checkout, "-c", code))
    told = {
        key: ROW[key]
        for key in ("efa_interfaces", "nvswitch", "imex", "lustre_efa_interfaces", "nccl_protocol")
    }
    assert {key: group[key] for key in told} == told
    assert (group["accelerator"], group["accelerators"], group["gds"]) == ("nvidia", 8, True)
    assert status == 0, f"{last}\\n{log}"
    assert "fabric manager runs" in log
    assert "16 EFA interfaces" in log
