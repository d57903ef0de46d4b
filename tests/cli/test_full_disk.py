"""A full disk: each command that writes files says so, ends with 2, and leaves nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from needs import need
from project import ROOT

pytestmark = pytest.mark.slow

PROD = str(ROOT / "environments" / "prod.yaml")
PARALLELCLUSTER = str(ROOT / "environments" / "parallelcluster-p5.yaml")
SAMPLE = str(ROOT / "tests" / "imports" / "samples" / "eksctl-gpu.yaml")
COMMANDS = [
    [
        "init",
        "--accelerators",
        "16xH100",
        "--orchestrator",
        "pcs",
        "--region",
        "us-east-1",
        "-o",
        "@/train.yaml",
    ],
    ["import", SAMPLE, "--to", "@/imported.yaml"],
    ["move", PROD, "--to", "us-west-2", "--write", "@/moved.yaml"],
    ["new", "@/team"],
    ["plan", PROD, "--html", "@/plan.html"],
    ["plan", PROD, "--picture", "@/plan.svg"],
    ["export", "parallelcluster", PARALLELCLUSTER, "--offline", "-o", "@/cluster.yaml"],
    ["export", "prometheus", PROD, "--to", "@/boards"],
]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], dict[str, Any]]:
    """What each command did, by its words and the pages that were free; one process runs all."""
    need("unshare", "mount", root=True)
    folder = tmp_path_factory.mktemp("disk")
    script = ROOT / "tests" / "support" / "full_disk.py"
    words = ["unshare", "--mount", "--propagation", "private", sys.executable, str(script), str(folder)]
    done = subprocess.run(
        [*words, json.dumps(COMMANDS)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(" ".join(row["words"]), row["free"]): row for row in rows}


@pytest.mark.parametrize("words", [" ".join(words) for words in COMMANDS])
def test_nothing_is_left_half_written(words: str, ended: dict[tuple[str, int], dict[str, Any]]) -> None:
    none, one = ended[words, 0], ended[words, 1]
    assert none["code"] == 2 and none["left"] == [], none
    assert "No space left on device" in none["output"] and "Traceback" not in none["output"]
    assert (one["code"] == 2 and one["left"] == []) or (one["code"] in (0, 1) and one["left"]), one
