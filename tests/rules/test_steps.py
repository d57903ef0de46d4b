"""Rules on a team's own node steps, each broken and mended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from project import ROOT
from rules_table import Case, found, table_tests, world_tests

from ultracluster.rules.sets import STP

STEPS = "lifecycle_steps"
FIRST = f"{STEPS}[0]"


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
CASES = [
    Case("STP001", steps("agent"), FIRST, "is not called like a step", "50_agent.sh", AGENT),
    Case("STP001", steps("9-My-Agent"), FIRST, "two digits", "09_my_agent.sh", AGENT),
    Case("STP002", steps("60_limits"), FIRST, "a step or library of this package", "60_own_limits.sh", AGENT),
    Case("STP002", steps("70_files"), FIRST, "its functions and yours would be the same", "own_files", AGENT),
    Case("STP002", steps("20_agent", "21_agent"), f"{STEPS}[1]", "20_agent.sh, too", "remove it", AGENT),
    Case("STP003", steps("10_agent"), FIRST, "10_agent.sh does not exist", "20_agent.sh", AGENT),
    Case("STP003", steps("99_nothing"), FIRST, "does not exist", "from the folder of this file", AGENT),
    Case("STP004", steps("10_proxy"), FIRST, "line 1 of ./lifecycle_steps/10_proxy.sh ends", "sed -i", AGENT),
    Case("STP004", steps("50_binary"), FIRST, "no shell script", "a bash script", AGENT),
    Case("STP003", steps("80_folder"), FIRST, "is a folder", "path of a step", AGENT),
    Case("STP005", steps("30_unproven"), FIRST, "define `unproven::verify`:", "unproven::verify() {", AGENT),
    Case(
        "STP005", steps("35_bare"), FIRST, "`bare::detect`, `bare::install`", "bare::detect() instead", AGENT
    ),
    Case("STP006", steps("40_maybe"), FIRST, "`need: maybe`", "# need: required", AGENT),
    Case(
        "STP007",
        {**AGENT, "node_groups.gpu.lifecycle_steps": ["agnet"]},
        "node_groups.gpu.lifecycle_steps[0]",
        "it has agent",
        "agent, or remove it",
        {"node_groups.gpu.lifecycle_steps": ["agent"]},
    ),
    Case(
        "STP007",
        {"node_groups.gpu.lifecycle_steps": ["agent"]},
        "node_groups.gpu.lifecycle_steps[0]",
        "it has none",
        "remove it",
        AGENT,
    ),
    Case(
        "STP008",
        {
            **AGENT,
            "orchestrator": {"kind": "parallelcluster"},
            "software.release": "parallelcluster-3.16.3",
            "node_groups.gpu.partition": "train",
            "node_groups.gpu.instance_type": "p5.48xlarge",
            "node_groups.more": {**MORE, "lifecycle_steps": []},
        },
        "node_groups.more.lifecycle_steps",
        "could not tell which group is theirs",
        "lifecycle_steps: [agent]",
        {"node_groups.more": MORE},
    ),
    Case(
        "STP009",
        {**AGENT, "orchestrator.lifecycle": "none"},
        FIRST,
        "no node runs",
        "remove it",
        {STEPS: ...},
    ),
    Case(
        "STP009",
        {**AGENT, **{f"node_groups.{name}.lifecycle_steps": [] for name in ("controller", "login", "gpu")}},
        FIRST,
        "no group with scripts chooses it",
        "a group with its name",
        {"node_groups.gpu.lifecycle_steps": ["agent"]},
    ),
]
test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)
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
