"""The `ultracluster` command and `app.py`: answers, refusals and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ultracluster
from project import ENVIRONMENTS, ROOT

from ultracluster.config import load

BAD = {
    "unknown environment": ("nope", None, "CFG001"),
    "empty": ("env.yaml", "", "CFG007"),
    "duplicate key": ("env.yaml", "name: a\nname: b\n", "CFG003"),
    "tab": ("env.yaml", "network:\n\tzone_id: x\n", "CFG002"),
    "rule": ("env.yaml", "extends: {dev}\nnetwork:\n  zone_id: use1-az1\n", "ENV"),
    "type": ("env.yaml", "extends: {dev}\nnode_groups:\n  gpu: {{instance_type: p9.48xlarge}}\n", "ENV"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["validate", "plan"])
def test_bad_input_is_one_message_and_exit_code_2(command: str, case: str, tmp_path: Path) -> None:
    name, content, code = BAD[case]
    if content is not None:
        dev = (ROOT / "environments" / "dev.yaml").read_text()
        (tmp_path / "dev.yaml").write_text(dev)
        (tmp_path / name).write_text(content.format(dev="dev.yaml"))
    before = sorted(tmp_path.iterdir())

    result = ultracluster(command, name, cwd=tmp_path)

    assert result.returncode == 2
    assert code in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("case", ["unknown environment", "rule"])
def test_app_refuses_before_it_writes_anything(case: str, tmp_path: Path) -> None:
    name, content, code = BAD[case]
    if content is not None:
        (tmp_path / "dev.yaml").write_text((ROOT / "environments" / "dev.yaml").read_text())
        (tmp_path / name).write_text(content.format(dev="dev.yaml"))
        name = str(tmp_path / name)
    program = "import sys; sys.argv = ['app.py']; import runpy; runpy.run_path('app.py', run_name='__main__')"
    environment = {"CDK_CONTEXT_JSON": json.dumps({"env": name}), "CDK_OUTDIR": str(tmp_path / "out")}

    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**__import__("os").environ, **environment},
    )  # fmt: skip

    assert result.returncode == 2
    assert code in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_plan_names_groups_fabric_storage_addresses_and_stacks(name: str) -> None:
    result = ultracluster("plan", name)

    assert result.returncode == 0, result.stderr
    groups = load(ROOT / "environments" / f"{name}.yaml").environment.node_groups
    for word in (*groups, "bit/s", "Lustre", "MB/s", "addresses", f"{name}-network", f"{name}-cluster"):
        assert word in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_figures_of_the_plan() -> None:
    result = ultracluster("plan", "prod")

    assert "128 x H200" in result.stdout
    assert "51.2 Tbit/s" in result.stdout
    assert "19,200 MB/s over EFA" in result.stdout


def test_findings_as_json(tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text("name: Dev\n")

    result = ultracluster("validate", "--json", "env.yaml", cwd=tmp_path)

    assert result.returncode == 2
    first = json.loads(result.stdout)["environments"][0]["findings"][0]
    assert first["file"] == "env.yaml"
    assert set(first) >= {"code", "severity", "path", "message", "instead", "line", "column"}


def test_validate_says_so_when_all_is_well() -> None:
    result = ultracluster("validate", "dev")

    assert (result.returncode, result.stdout.strip()) == (0, "dev: 0 errors, 0 warnings")


@pytest.mark.parametrize(("name", "code"), [("dev", 0), ("nope", 2)])
def test_the_installed_program_hands_on_exit_code_and_streams(name: str, code: int) -> None:
    """The other tests run the command in their own process."""
    done = subprocess.run(
        ["ultracluster", "validate", name], capture_output=True, text=True, cwd=ROOT, check=False
    )

    assert done.returncode == code
    assert done.stdout == ("" if code else "dev: 0 errors, 0 warnings\n")
    assert ("error CFG001" in done.stderr) == bool(code)
    assert "Traceback" not in done.stderr


def test_findings_as_json_carry_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = (ROOT / "environments" / "dev.yaml").read_text()
    file.write_text(text.replace("role: login", "role: submit"))
    document = json.loads(ultracluster("validate", str(file), "--json").stdout)
    (row,) = document["environments"][0]["findings"]

    change = {"path": ["node_groups", "login", "role"], "value": "login"}
    assert row["remedy"] == {"options": [[change]], "lacking": None, "note": None}
    assert row["instead"] == "role: login"


def test_rules_as_json_say_which_orchestrators_they_are_about() -> None:
    rows = {row["id"]: row for row in json.loads(ultracluster("rules", "--json").stdout)["rules"]}

    assert rows["ENV001"]["orchestrators"] is None
    assert rows["HPS060"]["orchestrators"] == ["hyperpod-slurm"]


def test_a_rule_is_printed_in_full_with_bad_and_good_lines() -> None:
    text = ultracluster("rules", "fsx002").stdout

    assert "# bad, in environments/dev.yaml" in text and "# good" in text
    assert "instead: capacity_gib: 3600 or 7200" in text and "source   botocore" in text


def test_a_subject_is_printed_whole_and_what_is_no_rule_is_refused() -> None:
    rows = json.loads(ultracluster("rules", "EFA", "--json").stdout)["rules"]
    unknown, shape = ultracluster("rules", "FSX02"), ultracluster("rules", "CFG003")

    assert [row["id"] for row in rows] == [f"EFA{number:03}" for number in range(1, 14)]
    assert all(row["bad"] and row["good"] and row["says"] for row in rows)
    assert (unknown.returncode, "there is no rule FSX02: " in unknown.stderr) == (2, True)
    assert "FSX020" in unknown.stderr
    assert (shape.returncode, "a key stands twice" in shape.stderr) == (2, True)


def test_rules_are_listed() -> None:
    heads, *lines = ultracluster("rules").stdout.splitlines()

    assert heads.split()[:2] == ["rule", "severity"]
    assert len(lines) > 60
    assert all(line.split()[1] in ("error", "warning") for line in lines)
