"""Files are loaded from S3 by one node each, and waited for: the script runs with a stand-in for `lfs`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.cli.main import app
from ultracluster.jobs.preload import BATCH, preload_script

pytestmark = pytest.mark.slow

LFS = """\
#!/usr/bin/env bash
# A file is in S3 only while it has a mark; a request is done at the second look
verb=$1
shift
echo "$verb $#" >>"$MARKS/../asked"
[[ $verb != "${REFUSED:-}" ]] || exit 1
for file in "$@"; do
  mark=$MARKS/$(basename "$file")
  case $verb in
    hsm_state)
      if [[ -e $mark ]]; then
        echo "$file: (0x0000000d) released exists archived, archive_id:1"
      else
        echo "$file: (0x00000009) exists archived, archive_id:1"
      fi
      ;;
    hsm_restore) [[ -n ${STUCK:-} ]] || echo asked >"$mark" ;;
    hsm_action)
      if [[ -s $mark ]]; then
        echo "$file: RESTORE running (1048576 bytes moved)"
        rm "$mark"
      else
        echo "$file: NOOP"
      fi
      ;;
  esac
done
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of 30 files of 10 bytes, 20 of them in S3 only."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lfs").write_text(LFS)
    (tmp_path / "bin" / "lfs").chmod(0o755)
    (tmp_path / "marks").mkdir()
    (tmp_path / "data" / "inner").mkdir(parents=True)
    for number in range(30):
        name = f"shard ({number}): released $x" if number % 5 == 0 else f"shard-{number}"
        (tmp_path / "data" / ("inner" if number % 2 else "") / name).write_text("0123456789")
        if number < 20:
            (tmp_path / "marks" / name).touch()
    return tmp_path


def load(data: Path, script: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{data}/bin:/usr/bin:/bin", "MARKS": str(data / "marks"), **more}
    words = ["bash", "-c", script or preload_script(), "preload", str(data / "data"), more.get("NODES", "1")]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "ranks",
    [
        [{}],
        [{"NODES": "3", "JOB_COMPLETION_INDEX": str(one)} for one in range(3)],
        [{"SLURM_NTASKS": "2", "SLURM_PROCID": str(one)} for one in range(2)],
    ],
)
def test_each_file_is_loaded_by_one_node(ranks: list[dict[str, str]], data: Path) -> None:
    said = [load(data, **rank) for rank in ranks]
    assert [one.stderr for one in said] == [""] * len(ranks)
    found = [re.fullmatch(r"files: (\d+) bytes: (\d+) loaded: (\d+)\n", one.stdout) for one in said]
    sums = [sum(int(one[at]) for one in found if one) for at in (1, 2, 3)]
    assert sums == [30, 300, 20]
    assert not list((data / "marks").iterdir())


def test_files_are_asked_for_in_batches(data: Path) -> None:
    load(data, preload_script().replace(f"< {BATCH}", "< 8"))
    asked = [line.split() for line in (data / "asked").read_text().splitlines()]
    assert max(int(count) for _, count in asked) == 8
    assert [verb for verb, _ in asked].count("hsm_state") >= 4


def test_what_is_not_loaded_fails_with_its_name(data: Path) -> None:
    done = load(data, STUCK="yes")
    assert done.returncode == 1
    assert re.search(rf"20 files are not loaded from S3, the first is {data}/data/", done.stderr)


@pytest.mark.parametrize("how", ["refused", "no lfs"])
def test_without_lfs_files_are_read(how: str, data: Path) -> None:
    (data / "bin" / "head").write_text('#!/bin/sh\necho "$3" >>"$MARKS/../read"\nexec /usr/bin/head "$@"\n')
    (data / "bin" / "head").chmod(0o755)
    if how == "no lfs":
        (data / "bin" / "lfs").unlink()
    done = load(data, REFUSED="hsm_restore")
    assert done.returncode == 0
    assert done.stdout == "files: 30 bytes: 300 loaded: \n"
    assert len((data / "read").read_text().splitlines()) == (30 if how == "no lfs" else 20)


def test_a_folder_that_is_not_there_is_one_sentence(data: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", preload_script(), "preload", "/fsx/none"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stderr.startswith("/fsx/none: there is no such folder")


# --- as jobs ---------------------------------------------------------------------------------------------


def run(folder: Path, base: str, changes: dict[str, Any], *words: str) -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    return CliRunner().invoke(app, ["job", "write", str(file), "--preload", *words])


EXISTING = {
    "storage.lustre": {
        "deployment": "existing", "id": "fs-0123456789abcdef0", "mount_name": "abcdefgh",
        "dns_name": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
        "security_group_id": "sg-0123456789abcdef1",
    }
}  # fmt: skip


@pytest.mark.parametrize(
    ("base", "changes", "words", "code", "said"),
    [
        ("prod", {}, "/fsx/data", 2, "in no data repository association of this environment"),
        ("prod", {}, "/fsx/data", 2, "Use one of: /fsx/checkpoints, /fsx/datasets"),
        ("prod", {}, "/fsx/datasets2", 2, "Use one of: "),
        ("prod", {}, "/fsx/datasets/../home", 2, "is no absolute path"),
        ("prod", {}, "datasets", 2, "is no absolute path"),
        ("prod", {}, "/fsx/datasets --image a/b:1", 2, "--image is for Kubernetes"),
        ("eks-p5en", {}, "/fsx/checkpoints", 2, "a pod needs an image: --image"),
        ("prod", EXISTING, "/fsx/datasets", 0, "whether S3 is linked there is not known here"),
        ("prod", EXISTING, "/data", 2, "has no file system with data_repositories"),
    ],
)
def test_what_is_in_s3(
    base: str, changes: dict[str, Any], words: str, code: int, said: str, tmp_path: Path
) -> None:
    result = run(tmp_path, base, changes, *words.split())
    assert result.exit_code == code, result.stderr
    assert said in " ".join(result.stderr.split())
