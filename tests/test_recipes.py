"""The recipes of CONTRIBUTING.md, applied as they are printed to a copy of the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from needs import need
from recipe_checkout import copy_with, run
from recipes import recipes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With all recipes; tests/catalog/test_new_type.py tries that of an instance type further."""
    return copy_with(tmp_path_factory.mktemp("checkout"), *recipes())


def python(checkout: Path, code: str) -> Any:
    return json.loads(run(checkout, "-c", f"import json\n{code}\nprint(json.dumps(answer))"))


def test_there_are_five() -> None:
    assert list(recipes()) == [
        "instance type",
        "rule",
        "health check for a new XID",
        "setting of an orchestrator",
        "alert with a panel",
    ]


def test_the_rule_is_discovered_and_speaks(checkout: Path) -> None:
    code = """
from tools import rule_examples
from ultracluster.rules.examples import examples
row = examples()["FSX999"]
rule_examples.examples = lambda: {"FSX999": row}  # `make generate`, of this one alone
rule_examples.main()
examples.cache_clear()
written = json.loads(rule_examples.FILE.read_text())["rules"]["FSX999"]
fixed = {one.code for one in rule_examples.found(row, good=True)}
answer = [written["at"], written["says"], written["instead"], "FSX999" in fixed]
"""
    at, says, instead, still = python(checkout, code)
    assert at == "storage.lustre.mount_path" and not still
    assert says and instead.startswith("mount_path: /fsx")


def test_the_xid_is_known_to_nodes_doctor_and_alerts(checkout: Path) -> None:
    code = """
import sys
sys.path.insert(0, "lifecycle_scripts/health")
import faults, watch
from tools import faults_page
from ultracluster.catalog.node_faults import faults_of_reason, node_faults
from ultracluster.metrics.xids import xid_groups
(row,) = [one for one in node_faults() if one.id == "xid-990"]
(finding,) = watch.findings([{"MESSAGE": row.line, "_TRANSPORT": "kernel"}], faults.load(), "hopper")
(known,) = faults_of_reason("ultracluster:xid:990")
answer = [finding["fault"], known.meaning, row.meaning in faults_page.page(), xid_groups(["H100"])["warn"]]
"""
    fault, meaning, printed, watched = python(checkout, code)
    assert fault == "xid-990" and meaning == "link retrained too often"
    assert printed and "990" in watched


def test_the_setting_reaches_slurm_conf(checkout: Path) -> None:
    code = """
from rules_support import changed, environment_data, loaded
from ultracluster.model import resolve
from ultracluster.slurm.configuration import slurm_configuration
def lines(changes):
    environment = loaded(changed(environment_data("dev"), changes)).environment
    return slurm_configuration(resolve(environment)).lines()
answer = [lines({}), lines({"orchestrator.complete_wait_seconds": 45})]
"""
    default, changed = python(checkout, code)
    assert "CompleteWait=30" in default and "CompleteWait=45" in changed


def test_the_alert_fires_and_the_board_has_the_panel(checkout: Path) -> None:
    need("prometheus", "promtool")
    code = """
from pathlib import Path
from metrics_stand import tools
from promtool_cases import run
from tools import boards, runbooks_page
Path("build").mkdir()
problems = run(tools().promtool, Path("build"), ["RootDiskFull"])
answer = [problems, boards.files()["health.json"], runbooks_page.page()]
"""
    problems, board, runbooks = python(checkout, code)
    assert problems == ""
    assert '"title": "Full root volumes"' in board
    assert "| [RootDiskFull](RootDiskFull.md) | ticket | node | - |" in runbooks


def test_the_tests_that_recipes_name_pass(checkout: Path) -> None:
    """Of each file the cases of what is new, and those that count all."""
    files = (
        *(f"catalog/test_{name}" for name in ("authorities", "instances", "prices", "node_faults")),
        *(f"metrics/test_{name}" for name in ("alert", "runbooks")),
        *(f"rules/test_{name}" for name in ("storage", "sets")),
        "clusters/test_settings",
    )
    new = "p7 or FSX999 or 990 or HyperPodSlurm or RootDiskFull"
    all_ = "every_type or every_accelerator or figures or form or announce or module or every_file"
    places = [f"tests/{name}.py" for name in files]
    printed = run(
        checkout, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *places, "-k", f"{new} or {all_}"
    )
    assert " passed" in printed and "skipped" not in printed, printed
