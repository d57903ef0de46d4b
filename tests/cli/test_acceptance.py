"""`ultracluster acceptance`, with logs as files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from nccl_logs import HEADER
from project import ROOT
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app

LOGS = ROOT / "tests" / "acceptance" / "logs"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["acceptance", *map(str, arguments)])


@pytest.mark.parametrize(
    ("log", "kind", "nodes", "code", "last"),
    [
        ("p5en-4-nodes.log", "p5en.48xlarge", 4, 0, "PASS: 364.87 GB/s at 4 GiB, gate 310"),
        ("p4d-2-nodes-plugin-1.13.log", "p4d.24xlarge", 2, 3, "NOT JUDGED: 2 nodes are too few"),
        (
            "p5en-4-nodes-tcp-fallback.log",
            "p5en.48xlarge",
            4,
            1,
            "FAIL: 4 nodes: NCCL fell back to TCP sockets",
        ),
        (
            "p5en-2-nodes.log",
            "p5en.48xlarge",
            2,
            3,
            "NOT JUDGED: pair ip-10-1-0-21 + ip-10-1-0-22: measured,",
        ),
        ("p5en-4-nodes-cut.log", "p5en.48xlarge", 4, 3, "NOT JUDGED: 4 nodes: the log ends before the end"),
    ],
)
def test_the_exit_code_is_the_verdict(log: str, kind: str, nodes: int, code: int, last: str) -> None:
    assert (LOGS / log).read_text().startswith(HEADER)

    result = run(LOGS / log, "--type", kind, "--nodes", nodes)

    assert result.exit_code == code, result.output
    assert result.output.splitlines()[-1].startswith(last)


def test_json_for_a_machine() -> None:
    result = run(LOGS / "p5en-4-nodes.log", "--type", "p5en.48xlarge", "--json")

    report = json.loads(result.output)
    assert (report["verdict"], report["ranks"], report["nics"]) == ("pass", 32, [16])
    assert [row["size"] for row in report["curves"][0]["rows"]][-1] == 17179869184
    assert report["nodes"] == ["ip-10-1-0-21", "ip-10-1-0-22", "ip-10-1-0-23", "ip-10-1-0-24"]


def test_a_folder_of_logs(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text((LOGS / "p5en-4-nodes.log").read_text())
    (tmp_path / "more").mkdir()

    assert run(tmp_path, "--type", "p5en.48xlarge").exit_code == 0


def test_a_log_of_nccl_beside_that_of_the_program(tmp_path: Path) -> None:
    """NCCL_DEBUG_FILE: one file per process."""
    lines = (LOGS / "p5en-4-nodes.log").read_text().splitlines(keepends=True)
    files: dict[str, list[str]] = {"results": []}
    for line in lines:
        name = line.split(" ")[0].replace(":", "-") if " NCCL INFO " in line else "results"
        files.setdefault(name, []).append(line)
    for name, content in files.items():
        (tmp_path / f"{name}.log").write_text("".join(content))

    assert len(files) == 33
    assert run(tmp_path, "--type", "p5en.48xlarge", "--nodes", 4).exit_code == 0
    next(tmp_path.glob("ip-10-1-0-23-4002-*")).unlink()
    assert run(tmp_path, "--type", "p5en.48xlarge", "--nodes", 4).exit_code == 3


def test_a_file_that_is_not_there() -> None:
    result = run("nothing.log", "--type", "p5en.48xlarge")

    assert result.exit_code == 2
    assert result.output.strip() == "cannot read nothing.log: No such file or directory"


def test_a_mistyped_type_is_named_beside_the_one_that_is_meant() -> None:
    result = run(LOGS / "p5en-4-nodes.log", "--type", "p5en.48xlrge")

    assert result.exit_code == 3
    assert "the catalogue does not know p5en.48xlrge; similar: p5en.48xlarge" in result.output
    again = run(LOGS / "p5en-4-nodes.log", "--type", "ml.p5en.48xlarge")
    assert "does not know" not in again.output


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(range(256)) * 100)

    assert run(tmp_path, "--type", "p5en.48xlarge").exit_code == 3


def test_the_manifest() -> None:
    result = run("--job", "--type", "p5.48xlarge", "--image", "example/nccl-tests:1")

    assert result.exit_code == 0
    kinds = [document["kind"] for document in YAML(typ="safe").load_all(result.output)]
    assert kinds == ["MPIJob", "ConfigMap"]
    refused = run("--job", "--type", "m5.xlarge", "--image", "example/nccl-tests:1")
    assert refused.exit_code == 2
    assert refused.output == (
        "m5.xlarge has no accelerators, whose collectives nccl-tests and nccom-test measure\n"
    )


def test_the_gates_are_listed_with_their_sources() -> None:
    lines = run("--gates").output.splitlines()

    assert any(line.startswith("p5en.48xlarge") and "stas00/ml-engineering" in line for line in lines)
    assert any("(provisional)" in line for line in lines)


def test_nothing_slow_is_loaded() -> None:
    heavy = "{'aws_cdk', 'boto3', 'pydantic', 'rich', 'ultracluster.config'}"
    code = (
        f"import sys, ultracluster.acceptance; sys.exit(str(sorted({heavy} & set(sys.modules)) or '') or 0)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_the_script_for_slurm() -> None:
    result = run("--job", "--type", "ml.p5en.48xlarge")

    assert result.exit_code == 0
    assert result.output.startswith("#!/usr/bin/env bash\n#SBATCH ")
    for kind, words in (
        ("p5n.48xlarge", "the catalogue does not know p5n.48xlarge; similar: "),
        ("m5.xlarge", "m5.xlarge has no accelerators"),
    ):
        refused = run("--job", "--type", kind)
        assert refused.exit_code == 2
        assert refused.output.startswith(words)
