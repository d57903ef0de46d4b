"""What proves that a node is ready: last lines, what a node shows, what the schedulers say."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_service import kubernetes_node, open_api, serving
from wait_support import READY, Machines

from ultracluster.account.aws import AccountError
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait import slurm
from ultracluster.account.wait.evidence import (
    Expected,
    Probe,
    Registered,
    Word,
    expectations,
    judge,
    read_probe,
)
from ultracluster.account.wait.kubernetes_nodes import registered
from ultracluster.account.wait.proof import probe_script
from ultracluster.account.wait.shell import Answer, command, unpack
from ultracluster.config import load
from ultracluster.model import resolve

ENVIRONMENTS = Path(__file__).parents[2] / "environments"


@given(st.text())
def test_any_line_is_survived(line: str) -> None:
    read_probe(line)
    slurm.read_sinfo(line)
    unpack(line)


def probe(machines: Machines, node: str, *paths: str) -> Probe | None:
    printed = machines.execute(node, ["bash", "-c", command(probe_script(paths))])
    found = unpack(printed)
    assert found.good, printed
    return read_probe(found.text)


def test_a_node_shows_what_it_has(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.boot("i-1", efa=16, domains=16)
    found = probe(machines, "i-1", "/fsx", "/home")
    assert found == Probe(Word("ready", entry=READY["entry"]), {"/fsx": "lustre"}, 16, 16, "")


def test_a_node_at_work_has_not_ended(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.boot("i-1", run=None)
    assert (
        (found := probe(machines, "i-1")) and found.word is None and found.efa == 0 and found.domains is None
    )


def test_a_failed_run_is_in_the_report_and_an_older_one_is_not_believed(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    failed = {**READY, "state": "failed", "reason": "efa: no device"}
    machines.boot("i-1", run=failed)
    assert (found := probe(machines, "i-1")) and found.word == Word(
        "failed", "efa: no device", (), READY["entry"]
    )
    report = machines.root("i-1") / "var/log/ultracluster/report.jsonl"
    report.write_text(report.read_text() + json.dumps({"step": "limits", "state": "already"}) + "\n")
    assert (found := probe(machines, "i-1")) and found.word is None


def test_a_mount_that_does_not_answer_is_none(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.boot("i-1")
    (machines.root("i-1") / "fsx").rmdir()  # what `stat -f` says of a stale mount: no such file system
    assert (found := probe(machines, "i-1", "/fsx")) and found.mounts == {}
    machines.boot("i-1", mounts="systemd-1 /fsx autofs rw 0 0\n")
    assert (found := probe(machines, "i-1", "/fsx")) and found.mounts == {}


def test_the_kubelet_says_whether_it_has_registered(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.program("journalctl", 'cat "$ULTRACLUSTER_ROOT/kubelet.log"')
    machines.program("systemctl", "echo active")
    machines.boot(
        "i-1", kubelet='I1122 kubelet_node_status.go:76] "Successfully registered node" node="i-1"\n'
    )
    assert (found := probe(machines, "i-1")) and found.kubelet == "registered"
    machines.boot("i-1", kubelet="E1122 Unable to register node with API server\n")
    assert (found := probe(machines, "i-1")) and found.kubelet == "active"


def test_a_command_has_no_quotes_and_says_how_it_ended(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    line = command("echo \"it's\" 'two words'; exit 3")
    assert not {"'", '"', "\n"} & set(line)
    assert unpack(machines.execute("i-1", ["bash", "-c", line])) == Answer("it's two words", 3)
    assert unpack("Cannot perform start session: EOF").why.endswith("Cannot perform start session: EOF")
    assert unpack("").status is None


GPU = Expected(mounts=("/fsx",), efa=16, libfabric=True, registers=True)
GOOD = Probe(Word("ready"), {"/fsx": "lustre"}, 16, 16)


@pytest.mark.parametrize(
    ("shown", "known", "state", "why"),
    [
        (GOOD, Registered(True), "ready", ""),
        (GOOD, None, "ready", ""),
        (None, Registered(True), "starting", "its scripts have not ended yet"),
        (Probe(Word("failed", "efa: dead")), Registered(True), "failed", "efa: dead"),
        (Probe(Word("degraded", "old", ("dcgm",)), GOOD.mounts, 16, 16), Registered(True), "degraded", "old"),
        (Probe(Word("ready"), {}, 16, 16), Registered(True), "booted", "/fsx is not mounted"),
        (Probe(Word("ready"), GOOD.mounts, 15, 16), Registered(True), "booted", "15 of 16 EFA interfaces"),
        (Probe(Word("ready"), GOOD.mounts, 16, 0), Registered(True), "booted", "offers 0 of 16 interfaces"),
        (Probe(Word("ready"), GOOD.mounts, 16, None), Registered(True), "ready", ""),
        (Probe(Word("ready"), GOOD.mounts, 32, 32), Registered(True), "ready", ""),
        (GOOD, Registered(False, "slurmctld does not know it"), "booted", "slurmctld does not know it"),
    ],
)
def test_a_state_is_what_is_proven(
    shown: Probe | None, known: Registered | None, state: str, why: str
) -> None:
    seen = judge("i-1", "gpu", GPU, word=None, probe=shown, registered=known)
    assert seen.state == state and why in seen.why
    assert seen.defect == (state == "booted")


def test_the_first_of_two_entries_is_not_the_end() -> None:
    expected = Expected(entry="parallelcluster_on_node_configured")
    early = Probe(Word("ready", entry="parallelcluster_on_node_start"))
    assert judge("i-1", "gpu", expected, word=None, probe=early, registered=None).state == "starting"
    late = Probe(Word("ready", entry="parallelcluster_on_node_configured"))
    assert judge("i-1", "gpu", expected, word=None, probe=late, registered=None).state == "ready"


@pytest.mark.parametrize(
    ("name", "group", "wanted"),
    [
        ("dev", "gpu", Expected(mounts=("/fsx",), efa=1, libfabric=True, registers=True)),
        ("dev", "login", Expected(mounts=("/fsx",), libfabric=True)),
        ("prod", "train", Expected(mounts=("/fsx", "/home"), efa=16, libfabric=True, registers=True)),
        ("eks-p5en", "system", Expected(report=False, registers=True)),
        ("eks-p5en", "train", Expected(efa=16, registers=True, resource="nvidia.com/gpu", per_node=8)),
    ],
)
def test_what_each_group_must_show(name: str, group: str, wanted: Expected) -> None:
    assert expectations(resolve(load(ENVIRONMENTS / f"{name}.yaml").environment))[group] == wanted


SINFO = """\
ip-10-1-0-16|ip-10-1-0-16|gpu|idle|none
ip-10-1-0-16|ip-10-1-0-16|all|idle|none
train-1|10.1.0.17|train|drained|gpuhc:xid:79
train-2|10.1.0.18|train|idle*|none
train-3|10.1.0.19|train|down|Not responding
train-4|10.1.0.20|train|mixed-|none
train-5|10.1.0.21|train|idle~|none
train-6|10.1.0.22|train|inval|gres/gpu count reported lower than configured (7 < 8)
train-7|10.1.0.23|train|maint$|none
"""


@pytest.mark.parametrize(
    ("address", "good", "why"),
    [
        ("10-1-0-16", True, ""),
        ("10-1-0-17", False, "train-1 is drained: gpuhc:xid:79"),
        ("10-1-0-18", False, "train-2 does not answer slurmctld"),
        ("10-1-0-19", False, "train-3 is down: Not responding"),
        ("10-1-0-20", True, ""),
        ("10-1-0-21", False, "train-5 is powered off by Slurm"),
        ("10-1-0-22", False, "7 < 8"),
        ("10-1-0-23", True, ""),
        ("10-1-0-99", False, "slurmctld does not know it"),
    ],
)
def test_what_slurm_says(address: str, good: bool, why: str) -> None:
    nodes = slurm.read_sinfo(SINFO)
    assert len(nodes) == 8 and nodes[0].partition == "gpu"
    found = slurm.registered(Node("i-1", "g", "running", dns=f"ip-{address}.ec2.internal"), nodes)
    assert found.good == good and why in found.why


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (kubernetes_node("i-1"), ""),
        (kubernetes_node("hyperpod-i-1"), ""),
        (kubernetes_node("i-11"), "Kubernetes does not know it"),
        (kubernetes_node("i-1", "False"), "not Ready: container runtime network not ready"),
        (kubernetes_node("i-1", **{"vpc.amazonaws.com/efa": "0"}), "offers 0 of 16 vpc.amazonaws.com/efa"),
        (kubernetes_node("i-1", **{"nvidia.com/gpu": "7"}), "offers 7 of 8 nvidia.com/gpu"),
    ],
)
def test_what_kubernetes_says(item: dict[str, Any], why: str) -> None:
    expected = Expected(efa=16, registers=True, resource="nvidia.com/gpu", per_node=8)
    found = registered(Node("i-1", "train", "running"), expected, [item])
    assert found.good == (not why) and why in found.why


@pytest.mark.parametrize(
    ("claimed", "why"),
    [({"i-1": 16}, ""), ({"i-1": 15}, "lists 15 of 16 interfaces"), ({}, "lists 0 of 16 interfaces")],
)
def test_interfaces_that_pods_claim_are_in_lists_of_their_driver(claimed: dict[str, int], why: str) -> None:
    expected = Expected(efa=16, registers=True, resource="nvidia.com/gpu", per_node=8)
    item = kubernetes_node("i-1", **{"vpc.amazonaws.com/efa": "0"})
    found = registered(Node("i-1", "train", "running"), expected, [item], claimed=claimed)
    assert found.good == (not why) and why in found.why


def test_the_api_counts_interfaces_that_can_be_claimed(tmp_path: Path) -> None:
    def listed(path: str, body: None) -> dict[str, Any]:
        assert "fieldSelector=spec.driver%3Ddra.net" in path
        slices = [("i-1", 10), ("i-1", 6), ("i-2", 4)]
        return {
            "items": [
                {"spec": {"driver": "dra.net", "nodeName": node, "devices": [{"name": "efa"}] * count}}
                for node, count in slices
            ]
        }

    with serving(tmp_path) as api:
        api.objects["GET", "/apis/resource.k8s.io/v1/resourceslices"] = (200, listed)
        assert open_api(api).claimable_efa() == {"i-1": 16, "i-2": 4}


def test_the_api_gives_all_pages(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        pages = {"": ["i-1"], "&continue=x": ["i-2"]}
        api.objects["GET", "/api/v1/nodes"] = (
            200,
            lambda path, body: {
                "items": [kubernetes_node(one) for one in pages["&continue=x" if "continue" in path else ""]],
                "metadata": {} if "continue" in path else {"continue": "x"},
            },
        )
        assert [node["metadata"]["name"] for node in open_api(api).nodes()] == ["i-1", "i-2"]


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (403, {"message": "nodes is forbidden"}, "403: nodes is forbidden: give it an access entry"),
        (401, {"message": "Unauthorized"}, "401: Unauthorized: give it an access entry"),
        (500, {"message": "etcd"}, "500: etcd"),
        (200, b"<html>a proxy</html>", "something else"),
        (200, [], "something else"),
    ],
)
def test_an_api_that_refuses_is_one_line(tmp_path: Path, status: int, body: Any, line: str) -> None:
    with serving(tmp_path) as api:
        api.objects["GET", "/api/v1/nodes"] = (status, body)
        with pytest.raises(AccountError, match=line):
            open_api(api).nodes()


def test_an_api_out_of_reach_is_one_line(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        known = open_api(api)
    with pytest.raises(AccountError, match=r"cannot be reached from here .* within its VPC only"):
        known.nodes()
    other = tmp_path / "other"
    other.mkdir()
    with serving(other) as stranger, serving(tmp_path) as api:
        api.authority = base64.b64encode((other / "certificate.pem").read_bytes()).decode()
        api.endpoint, stranger.endpoint = api.endpoint, api.endpoint
        with pytest.raises(AccountError, match="cannot be reached from here"):
            open_api(api).nodes()
