"""The head node's program that keeps Slurm's topology: with the answers of EC2 and slurmctld as files.

A real slurmctld has its word in tests/slurm_twin/test_topology.py.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PROGRAM = Path(__file__).parents[2] / "lifecycle_scripts" / "files" / "topology_update.py"
FAKES = {
    "scontrol": r"""
case "$*" in
  --version) cat version ;;
  'show config') printf 'SLURM_CONF = %s\nTopologyPlugin = %s\n' "$PWD/slurm.conf" "$(cat plugin)" ;;
  '--oneliner show node') sed 's/ / NodeAddr=/; s/^/NodeName=/; s/$/ State=IDLE+CLOUD/' nodes ;;
  'show topology')
    [[ -e topology.yaml ]] || exit 0
    cat live 2>/dev/null || echo "SwitchName=x Level=0 LinkSpeed=0 Nodes=$(cut -d' ' -f1 nodes | paste -sd,)"
    ;;
  'show hostnames '*) tr , '\n' <<<"$3" ;;
  reconfigure)
    [[ ! -e refuses ]] || ! grep -q "$(cat refuses)" topology.yaml || {
      echo 'slurm_reconfigure error' >&2
      exit 1
    }
    ;;
  ping) ;;
  *) exit 2 ;;
esac
""",
    "aws": r"""
case $2 in
  describe-instances) cat instances ;;
  describe-instance-topology)
    [[ ! -e denied ]] || { echo 'An error occurred (UnauthorizedOperation)' >&2; exit 254; }
    cat places ;;
esac
""",
    "unshare": 'shift; exec "$@"',
    "ip": "",
    "slurmctld": r"""
[[ ! -e trial_refuses ]] || ! grep -qE "$(cat trial_refuses)" "${3%/*}/topology.yaml" || {
  echo 'slurmctld: fatal: Switch configuration is wrong'
  exit 1
}
cp "${3%/*}/topology.yaml" tried
echo 'slurmctld: Running as primary controller'
exec sleep 3600
""",
    "systemctl": "",
}


class Head:
    """A folder with slurm.conf, in which the fakes find their answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, body in FAKES.items():
            file = folder / "bin" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(f'#!/bin/bash\necho "{name} $*" >>calls\n{body}')
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
        self.put(
            version="slurm 25.11.4", plugin="(null)", slurm__conf="", config="REGION=us-east-1\nCLUSTER=dev\n"
        )
        self.nodes = {f"gpu-st-p5-{number}": f"10.0.0.{number}" for number in range(1, 5)}
        self.places = {f"i-{number}": ["nn-1", "nn-2", f"nn-{3 + number // 3}"] for number in range(1, 5)}

    def put(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / name.replace("__", ".")).write_text(text)

    def run(self) -> str:
        rows = [
            [f"i-{address.rsplit('.')[-1]}", address] for address in self.nodes.values() if "." in address
        ]
        answer = {
            "Instances": [{"InstanceId": key, "NetworkNodes": path} for key, path in self.places.items()]
        }
        self.put(nodes="".join(f"{name} {address}\n" for name, address in self.nodes.items()))
        if not (self.folder / "raw").exists():
            self.put(instances=json.dumps(rows), places=json.dumps(answer))
        (self.folder / "calls").write_text("")
        command = [sys.executable, "-IS", str(PROGRAM), "config", "state/topology.json"]
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "ULTRACLUSTER_TOPOLOGY_SECONDS": "0",
        }
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert not done.stderr
        return f"{done.returncode} {done.stdout.strip()}"

    @property
    def leaves(self) -> dict[str, str] | None:
        file = self.folder / "topology.yaml"
        if not file.exists():
            return None
        rows = yaml.safe_load(file.read_text())[0]["tree"]["switches"]
        return {node: row["switch"] for row in rows for node in row.get("nodes", "").split(",") if node}

    @property
    def calls(self) -> str:
        return (self.folder / "calls").read_text()

    def later(self, seconds: int = 3600) -> None:
        """As if the last change were so long ago."""
        file = self.folder / "state" / "topology.json"
        state = json.loads(file.read_text())
        file.write_text(json.dumps({**state, "changed": state["changed"] - seconds}))


@pytest.fixture
def head(tmp_path: Path) -> Head:
    return Head(tmp_path)


FIRST = {"gpu-st-p5-1": "nn-3", "gpu-st-p5-2": "nn-3", "gpu-st-p5-3": "nn-4", "gpu-st-p5-4": "nn-4"}


def test_the_file_is_tried_written_and_read_once(head: Head) -> None:
    assert head.run() == f"0 {head.folder}/topology.yaml is new"
    assert head.leaves == FIRST
    assert (head.folder / "tried").read_text() == (head.folder / "topology.yaml").read_text()
    assert head.calls.count("scontrol reconfigure") == 1
    assert head.run() == "0 4 of 4 nodes have a place"
    assert "reconfigure" not in head.calls


def test_a_replaced_node_moves_and_others_stay(head: Head) -> None:
    head.run()
    head.nodes["gpu-st-p5-4"] = "10.0.0.9"
    head.places["i-9"] = ["nn-1", "nn-7", "nn-8"]
    assert head.run() == "0 slurmctld is told within 5 minutes"
    assert head.leaves == FIRST
    head.later()
    head.run()
    assert head.leaves == {**FIRST, "gpu-st-p5-4": "nn-8"}


def test_nodes_that_are_powered_down_stay_in_the_file(head: Head) -> None:
    head.nodes["gpu-dy-p5-1"] = "gpu-dy-p5-1"
    head.run()
    assert head.leaves == {**FIRST, "gpu-dy-p5-1": "unplaced"}
    head.nodes["gpu-st-p5-1"] = "gpu-st-p5-1"
    head.later()
    head.run()
    assert head.leaves == {**FIRST, "gpu-dy-p5-1": "unplaced", "gpu-st-p5-1": "unplaced"}


@pytest.mark.parametrize(
    "raw",
    ["{}", "[]", "null", '{"Instances": null}', '{"Instances": [null, 3, {"InstanceId": "i-1"}]}',
     '{"Instances": [{"InstanceId": "i-1", "NetworkNodes": []}, {"NetworkNodes": ["a"]}]}'],
)  # fmt: skip
def test_an_answer_without_places_writes_no_file_and_keeps_the_one_there(head: Head, raw: str) -> None:
    good = head.places
    head.places = {}
    assert head.run() == "0 EC2 tells no place of any node: no topology"
    assert head.leaves is None
    head.places = good
    head.run()
    head.put(raw="", places=raw)
    head.later()
    assert head.run() == "0 4 of 4 nodes have a place"
    assert head.leaves == FIRST


def test_what_cannot_be_asked_changes_nothing(head: Head) -> None:
    head.run()
    before = (head.folder / "state" / "topology.json").read_text()
    head.put(denied="")
    said = head.run()
    assert said.startswith("1 nothing is changed: aws ec2 describe-instance-topology: An error occurred")
    assert head.leaves == FIRST
    assert (head.folder / "state" / "topology.json").read_text() == before
    (head.folder / "denied").unlink()
    head.put(raw="", places="not JSON")
    assert head.run() == "1 nothing is changed: aws ec2 describe-instance-topology answers no JSON"


def test_what_the_trial_refuses_is_never_written(head: Head) -> None:
    head.put(trial_refuses="tree")
    said = head.run()
    assert said.startswith("1 a trial slurmctld refuses the topology (slurmctld: fatal: Switch configuration")
    assert said.endswith(f"{head.folder}/topology.yaml stays as it is")
    assert head.leaves is None
    assert "reconfigure" not in head.calls
    assert head.run().startswith("1 slurmctld has refused this topology before")


def test_a_trial_that_takes_nothing_at_all_says_nothing(head: Head) -> None:
    head.put(trial_refuses="tree|flat")
    assert head.run() == f"0 {head.folder}/topology.yaml is new"
    assert head.leaves == FIRST


def test_what_slurmctld_refuses_is_taken_back(head: Head) -> None:
    head.put(refuses="nn-3")
    assert head.run().endswith(f"(slurm_reconfigure error): {head.folder}/topology.yaml is as it was")
    assert head.leaves is None
    (head.folder / "refuses").unlink()
    head.later()
    head.places["i-4"] = ["nn-1", "nn-2", "nn-5"]
    assert head.run().endswith("is new")
    former = head.leaves
    head.put(refuses="nn-99")
    head.places["i-4"] = ["nn-1", "nn-2", "nn-99"]
    head.later()
    assert head.run().startswith("1 slurmctld refuses the topology")
    assert head.leaves == former
    assert head.calls.count("scontrol reconfigure") == 2


def test_nodes_that_slurmctld_has_lost_are_told_again(head: Head) -> None:
    head.run()
    head.put(live="SwitchName=nn-3 Level=0 LinkSpeed=0 Nodes=gpu-st-p5-1,gpu-st-p5-2,gpu-st-p5-3\n")
    head.later()
    assert head.run().startswith("1 slurmctld does not read")
    assert head.calls.count("scontrol reconfigure") == 1
    # it talks to every node each time: one that stays deaf is told once an hour
    assert head.run() == "0 slurmctld is told within 60 minutes"
    head.later()
    assert head.run().startswith("1 slurmctld does not read")
    assert head.calls.count("scontrol reconfigure") == 1


def test_a_clock_that_was_ahead_keeps_no_topology_back(head: Head) -> None:
    head.run()
    head.later(-9 * 3600)
    head.places["i-4"] = ["nn-1", "nn-2", "nn-5"]
    assert head.run().endswith("is new")


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"version": "slurm 24.11.6"}, "0 Slurm 24.11.6 is older than 25.11.3: no topology"),
        ({"version": "slurm 25.11.2"}, "0 Slurm 25.11.2 is older than 25.11.3: no topology"),
        ({"plugin": "topology/block"}, "0 TopologyPlugin is topology/block: the topology is somebody else's"),
        ({"topology__yaml": "- topology: mine\n"}, "0 {folder}/topology.yaml is somebody else's"),
    ],
)
def test_what_is_somebody_elses_is_left_alone(head: Head, there: dict[str, str], said: str) -> None:
    head.put(**there)
    assert head.run() == said.format(folder=head.folder)
    assert "aws" not in head.calls
    assert "reconfigure" not in head.calls


def test_ec2_is_asked_for_a_hundred_instances_at_a_time(head: Head) -> None:
    head.nodes = {f"n{number}": f"10.0.{number // 200}.{number % 200}" for number in range(250)}
    rows = [[f"i-{number}", address] for number, address in enumerate(head.nodes.values())]
    head.put(raw="", instances=json.dumps(rows), places='{"Instances": []}')
    head.run()
    asked = [line.count(" i-") for line in head.calls.splitlines() if "describe-instance-topology" in line]
    assert asked == [100, 100, 50]
