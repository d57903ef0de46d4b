"""Logs of nccom-test, judged: the Slurm script run with fakes, and text of other kinds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from nccom_logs import FAILED, GIB, PUBLISHED, table
from project import ROOT
from typer.testing import CliRunner

from ultracluster.acceptance.nccom import judge_nccom, parse_nccom, read_nccom
from ultracluster.acceptance.report import Report
from ultracluster.cli.main import app

SCRIPT = ROOT / "lifecycle_scripts" / "acceptance" / "nccom_test.sbatch"
SCONTROL = '#!/usr/bin/env bash\nexec cat "$FAKE/nodes"\n'
# `srun` runs what it is given; nccom-test answers as for so many ranks
SRUN = """#!/usr/bin/env bash
echo "srun $*" >>"$FAKE/calls"
while [[ $1 == --* ]]; do
  [[ $1 != --nodelist=* ]] || export SLURMD_NODENAME=${1#*=}
  shift
done
exec "$@"
"""
NEURON_LS = """#!/usr/bin/env bash
links=', 4'
[[ ${SLURMD_NODENAME:-} != "${LINK_DOWN:-none}" ]] || links=
count=16
[[ ${SLURMD_NODENAME:-} != "${LACKING:-none}" ]] || count=15
echo '['
for ((device = 0; device < count; device++)); do
  ((device == 0)) || echo ,
  printf '{\\n "neuron_device": %s,\\n "connected_to": [12, 3, 1%s], "nc_count": 2}\\n' "$device" "$links"
done
echo ']'
"""
NCCOM = """#!/usr/bin/env bash
echo "nccom-test $* [${FI_PROVIDER-}]" >>"$FAKE/calls"
cat "$FAKE/answer-$2"
[[ ! -e $FAKE/fails ]] || exit 1
"""


class Cluster:
    """A sandbox in which the script runs on trn1.32xlarge."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.nodes = [f"ip-10-1-0-{21 + index}" for index in range(nodes)]
        (folder / "nodes").write_text("\n".join(self.nodes) + "\n")
        (folder / "bin").mkdir()
        fakes = {"srun": SRUN, "scontrol": SCONTROL, "neuron-ls": NEURON_LS, "nccom-test": NCCOM}
        for name, text in fakes.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        for name in ("bash", "cat", "env", "grep", "mkdir", "python3", "tee", "uname"):
            (folder / "bin" / name).symlink_to(str(shutil.which(name)))
        for count in {1, nodes}:
            self.answer(count, table(32 * count))

    def answer(self, nodes: int, text: str) -> None:
        (self.folder / f"answer-{32 * nodes}").write_text(text)

    def submit(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.folder / "bin"),
            "FAKE": str(self.folder),
            "SLURM_JOB_NODELIST": "ip-10-1-0-[21-]",
            "SLURM_JOB_ID": "17",
            "SLURM_SUBMIT_DIR": str(self.folder),
            "ACCEPTANCE_TYPE": "trn1.32xlarge",
            "ULTRACLUSTER_ROOT": str(self.folder / "root"),
        } | variables
        return subprocess.run(["bash", SCRIPT], capture_output=True, text=True, env=environment, check=False)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def judged(self, **variables: str) -> Report:
        self.submit(**variables)
        logs = read_nccom(sorted((self.folder / "ultracluster-acceptance-17").iterdir()))
        return judge_nccom(logs, instance_type="trn1.32xlarge", nodes=len(self.nodes))


def check(report: Report, name: str) -> list[str]:
    return [f"{one.outcome}: {one.message}" for one in report.checks if one.id == name]


def test_each_node_and_then_all_of_them_are_measured(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2)

    done = cluster.submit()

    assert done.returncode == 3, done.stdout + done.stderr  # no `ultracluster` on that node
    assert "--type trn1.32xlarge --nodes 2" in done.stdout
    runs = [call for call in cluster.calls if call.startswith("nccom-test")]
    assert sorted(call.split()[2] for call in runs) == ["32", "32", "64"]
    assert all("--check --non-interactive" in call and call.endswith("[efa]") for call in runs)
    (fabric,) = (call for call in runs if " -N 2 " in call)
    assert "allr --slurm-mode --slurm-job-id 17 " in fabric


def test_what_more_than_tcp_carries_is_accepted(tmp_path: Path) -> None:
    report = Cluster(tmp_path, 2).judged()

    assert report.verdict == "pass", report.as_text()
    assert (report.ranks, len(report.curves)) == (64, 3)
    assert check(report, "network") == [
        "pass: each node sent 25.3 GB/s, more than the 12.5 GB/s of its ENA interface: not TCP"
    ]
    assert check(report, "bandwidth")[0].startswith("info: 50.56 GB/s at 1 GiB: measured, not judged")
    assert check(report, "hosts") == ["pass: 2 nodes show all devices and equally many links"]
    assert report.versions["kernel"]


def test_what_tcp_would_carry_is_no_proof(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2)
    cluster.answer(2, table(64, {**PUBLISHED, GIB: 12.0}))

    report = cluster.judged()

    assert report.verdict == "not judged"
    assert "would carry, too" in report.reason


@pytest.mark.parametrize(
    ("variables", "verdict", "words"),
    [
        ({"LACKING": "ip-10-1-0-22"}, "fail", "ip-10-1-0-22 shows 15 of 16 Neuron devices"),
        ({"LINK_DOWN": "ip-10-1-0-22"}, "pass", "ip-10-1-0-22 has 48 ends of NeuronLink, others have 64"),
    ],
)
def test_nodes_that_lack_something_are_named(
    variables: dict[str, str], verdict: str, words: str, tmp_path: Path
) -> None:
    report = Cluster(tmp_path, 2).judged(**variables)

    assert report.verdict == verdict
    assert any(words in line for line in check(report, "hosts"))


def test_a_run_that_fails_fails_the_job(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2)
    cluster.answer(2, FAILED)
    (tmp_path / "fails").touch()

    assert cluster.submit().returncode == 1
    report = cluster.judged()
    assert report.verdict == "fail"
    assert "Failure running neuron-bench" in " ".join(check(report, "errors"))


@pytest.mark.parametrize(
    ("variables", "removed", "words"),
    [
        ({"SLURM_JOB_NODELIST": ""}, "", "this is a Slurm job"),
        ({"ACCEPTANCE_TYPE": ""}, "", "the instance type is not known"),
        ({}, "nccom-test", "nccom-test was not found"),
        ({}, "neuron-ls", "neuron-ls shows no NeuronCores"),
    ],
)
def test_what_is_missing_is_named(
    variables: dict[str, str], removed: str, words: str, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, 2)
    if removed:
        (tmp_path / "bin" / removed).unlink()

    done = cluster.submit(**variables)

    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith(f"NOT JUDGED: {words}")


@pytest.mark.parametrize("tool", [["shellcheck", "-x"], ["shfmt", "-d", "-i", "2", "-ci"]])
def test_the_slurm_script_is_clean(tool: list[str]) -> None:
    program = ROOT / ".venv" / "bin" / tool[0]
    done = subprocess.run([program, *tool[1:], SCRIPT], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert SCRIPT.stat().st_mode & 0o111 == 0o111


END = "# ultracluster-acceptance exit=0\n"
HEAD = "# ultracluster-acceptance run=fabric tool=nccom-test nodes=a,b cores=32\n"


@pytest.mark.parametrize(
    ("text", "verdict", "words"),
    [
        ("", "not judged", "no output of nccom-test"),
        ("# ultracluster-acceptance run=fabric nodes=a algo=ring\n" + table(64), "not judged", "no output"),
        (HEAD + table(64), "not judged", "ends before the end"),
        (HEAD + END, "not judged", "ends before the end"),
        (HEAD + "Avg bus bandwidth: 1.0GB/s\n" + END, "not judged", "no rows"),
        (
            HEAD.replace("32", "20") + table(40) + END,
            "fail",
            "20 ranks on a",
        ),
        (
            HEAD.replace("a,b", "a") + table(32) + END,
            "fail",
            "2 nodes expected",
        ),
        (HEAD + table(64) + "# ultracluster-acceptance exit=137\n", "fail", "status 137"),
    ],
)
def test_no_text_is_taken_for_more_than_it_says(text: str, verdict: str, words: str) -> None:
    report = judge_nccom(parse_nccom(text), instance_type="ml.trn1.32xlarge", nodes=2)

    assert report.verdict == verdict, report.as_text()
    assert any(words in one.message for one in report.checks)


def test_the_command_judges_trainium_by_nccom_test(tmp_path: Path) -> None:
    log = tmp_path / "acceptance.log"
    log.write_text(HEAD + table(64) + END)
    done = CliRunner().invoke(app, ["acceptance", str(log), "--type", "trn1.32xlarge", "--nodes", "2"])
    assert done.exit_code == 3
    assert "NOT JUDGED: no lists of neuron-ls" in done.output

    nodes = HEAD.partition("nodes=")[2].split()[0].split(",")
    mark = "# ultracluster-acceptance neuron={} devices=16 cores=32 links=64\n"
    log.write_text(mark.format(nodes[0]) + HEAD + table(64) + END)
    done = CliRunner().invoke(app, ["acceptance", str(log), "--type", "trn1.32xlarge", "--nodes", "2"])
    assert f"NOT JUDGED: no list of neuron-ls from {nodes[1]}" in done.output
    log.write_text("".join(map(mark.format, nodes)) + HEAD + table(64) + END)

    done = CliRunner().invoke(app, ["acceptance", str(log), "--type", "trn1.32xlarge", "--nodes", "2"])

    assert done.exit_code == 0, done.output
    assert "PASS: all checks" in done.output
