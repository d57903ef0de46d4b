"""Rules on a team's own node steps, each broken and mended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from rules_table import cases, found, table_tests, world_tests

from ultracluster.rules.sets import STP

STEPS = "lifecycle_steps"


def good(name: str) -> str:
    verbs = {"detect": "step::absent no", "install": ":", "verify": ":"}
    lines = [f"{name}::{verb}() {{ {code}; }}" for verb, code in verbs.items()]
    return "\n".join(["# need: required", *lines, ""])


FILES = {
    "10_proxy.sh": good("proxy").replace("\n", "\r\n").encode(),
    "20_agent.sh": good("agent").encode(),
    "21_agent.sh": good("agent").encode(),
    "30_unproven.sh": b"unproven::detect() { :; }\nfunction unproven::install { :; }\n# unproven::verify()\n",
    "35_bare.sh": b"detect() { :; }\ninstall() { :; }\nverify() { :; }\n",
    "40_maybe.sh": good("maybe").replace("required", "maybe").encode(),
    "50_binary.sh": b"\x7fELF\x00\xff",
    "60_limits.sh": good("limits").encode(),
    "70_files.sh": good("files").encode(),
    "agent.sh": good("agent").encode(),
}


def steps(*names: str) -> dict[str, Any]:
    return {STEPS: [f"./lifecycle_steps/{name}.sh" for name in names]}


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A team's folder: its environments, and its steps beside them."""
    folder = tmp_path / "environments" / "lifecycle_steps"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "80_folder.sh").mkdir()
    monkeypatch.chdir(tmp_path)


AGENT = steps("20_agent")
MORE = {"role": "compute", "instance_type": "p5.48xlarge", "count": 2, "partition": "train"}
test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("steps"))
test_says_so = world_tests(STP)


def test_the_step_of_the_documentation_is_a_good_one(tmp_path: Path) -> None:
    (code,) = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / "own-steps.md").read_text(), re.DOTALL)
    (tmp_path / "environments" / "lifecycle_steps" / "11_proxy.sh").write_text(code)
    assert found(STP, steps("11_proxy")) == []


def test_a_good_step_is_nothing_to_speak_of() -> None:
    assert found(STP, AGENT) == []


def test_partitions_of_their_own_may_run_different_steps() -> None:
    different = {
        **AGENT,
        "orchestrator": {"kind": "parallelcluster"},
        "software.release": "parallelcluster-3.16.3",
        "node_groups.more": {**MORE, "lifecycle_steps": []},
    }
    assert found(STP, different) == []
