"""An instance type of a new family, added as CONTRIBUTING.md prints it: every part knows it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from recipe_checkout import copy_with, run
from recipes import NEW_TYPE as NAME
from recipes import new_type

pytestmark = pytest.mark.slow

ROW = new_type()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the type, and an environment with nodes of it."""
    folder = copy_with(tmp_path_factory.mktemp("checkout"), "instance type")
    text = (folder / "environments/dev.yaml").read_text()
    lustre = "capacity_gib: 9600\n    throughput_mbps_per_tib: 1000\n    efa: true\n    gds: true\n"
    text = text.replace("capacity_gib: 1200\n    throughput_mbps_per_tib: 250\n", lustre)
    (folder / "environments/dev.yaml").write_text(text.replace("g6e.12xlarge", NAME))
    return folder


def ultracluster(checkout: Path, *arguments: str) -> str:
    code = "import sys; from ultracluster.cli import main; sys.argv[0] = 'ultracluster'; main()"
    return run(checkout, "-c", code, *arguments)


def findings_in(printed: str) -> list[dict[str, Any]]:
    (one,) = json.loads(printed)["environments"]
    return one["findings"]


def test_no_part_of_the_project_knew_it() -> None:
    folders = ["constructs", "lifecycle_scripts", "stacks", ":!constructs/ultracluster/rules/examples.json"]
    found = subprocess.run(
        ["git", "grep", "-lE", r"\bp7\b", "--", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_validate_warns_of_what_aws_has_not_published(checkout: Path) -> None:
    findings = findings_in(ultracluster(checkout, "validate", "environments/dev.yaml", "--json"))
    assert "ENV018" not in str(findings)
    assert "error" not in {one["severity"] for one in findings}
    (unknown,) = (one for one in findings if one["code"] == "HYP097")
    assert "unknown whether HyperPod has ml.p7.48xlarge" in unknown["message"]


def test_pcs_gets_a_launch_template_by_assumption(checkout: Path) -> None:
    code = f"""
import json
from rules_support import changed, environment_data, loaded
from ultracluster.model import resolve
from ultracluster.rules import check
changes = {{"node_groups.train.instance_type": {NAME!r}}}
environment = loaded(changed(environment_data("pcs-p6-b200"), changes))
cards = [one.card for one in resolve(environment.environment).groups["train"].interfaces]
print(json.dumps([cards, [[one.code, one.severity] for one in check(environment)]]))
"""
    cards, findings = json.loads(run(checkout, "-c", code))
    assert cards == list(range(17))
    assert ["EFA013", "warning"] in findings
    assert not {"PCS025", "HYP097"} & {code for code, _ in findings}


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
    text = ultracluster(checkout, "acceptance", "--job", "--type", NAME, "--image", "example.com/nccl:1")
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
