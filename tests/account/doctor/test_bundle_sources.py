"""What a bundle asks beyond an examination: each refused or silent source is a row, and the others answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import BORN, HyperPod, account, answer, refusal

from ultracluster.account.aws import AccountError
from ultracluster.account.doctor import bundle_sources
from ultracluster.account.doctor.bundle_sources import SLURM, Shell, ask_for_bundle, kept_of
from ultracluster.account.doctor.examination import Examination, Inquiry
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node
from ultracluster.config import load
from ultracluster.model import resolve

ENVIRONMENTS = Path(__file__).parents[3] / "environments"
STACK = "arn:aws:cloudformation:us-west-2:111122223333:stack/dev-cluster/x"
GROUP = "/aws/sagemaker/Clusters/dev/abcdefghijkl"
STREAM = "LifecycleConfig/gpu/i-00000000000000011"
FAULT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


class Service:
    """An account with one stack, one cluster, and one log with an error in it."""

    def __init__(self) -> None:
        self.account = account()
        self.hyperpod = HyperPod(self.account)
        self.scripts: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.refused: set[str] = set()
        cloudformation, logs = self.account.client("cloudformation"), self.account.client("logs")
        for client, call, reply in (
            (cloudformation, "DescribeStacks", self._stacks),
            (cloudformation, "DescribeStackEvents", self._events),
            (logs, "DescribeLogGroups", lambda asked: {"logGroups": [{"logGroupName": GROUP}]}),
            (logs, "FilterLogEvents", self._errors),
            (logs, "GetLogEvents", self._lines),
        ):
            answer(client, call, self._guard(call, reply))

    def _guard(self, call: str, reply: Any) -> Any:
        def guarded(asked: dict[str, Any]) -> Any:
            if call in self.refused:
                raise refusal("AccessDeniedException")
            return reply(asked)

        return guarded

    def _stacks(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["StackName"] != "dev-cluster":
            raise refusal("ValidationError", f"Stack with id {asked['StackName']} does not exist")
        return {
            "Stacks": [
                {
                    "StackName": "dev-cluster", "StackId": STACK, "CreationTime": BORN,
                    "StackStatus": "UPDATE_ROLLBACK_COMPLETE",
                    "Parameters": [{"ParameterKey": "P", "ParameterValue": "planted"}],
                    "Outputs": [{"OutputKey": "O", "OutputValue": "planted"}],
                }
            ]
        }  # fmt: skip

    def _events(self, asked: dict[str, Any]) -> dict[str, Any]:
        event = {"StackId": STACK, "StackName": "dev-cluster", "ResourceStatus": "UPDATE_FAILED",
                 "ResourceProperties": '{"UserData": "planted"}'}  # fmt: skip
        return {
            "StackEvents": [
                event | {"EventId": "1", "Timestamp": FAULT},
                event | {"EventId": "2", "Timestamp": FAULT - timedelta(days=90)},
            ]
        }

    def _errors(self, asked: dict[str, Any]) -> dict[str, Any]:
        stamp = int(FAULT.timestamp() * 1000)
        return {"events": [{"logStreamName": STREAM, "message": "ERROR: no device", "timestamp": stamp}]}

    def _lines(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(asked)
        return {"events": [{"message": "before\n"}, {"message": "ERROR: no device\n"}]}

    def shell(self, fleet: Fleet, nodes: list[Node], script: str) -> Mapping[str, tuple[str, str]]:
        self.scripts.append(script)
        return {node.id: (f"{node.group} says", "") for node in nodes}

    def ask(self, shell: Shell | None = None, name: str = "dev") -> tuple[Examination, dict[str, Any]]:
        inquiry = Inquiry()
        cluster = resolve(load(ENVIRONMENTS / f"{name}.yaml").environment)
        since = FAULT - timedelta(days=3)
        papers = ask_for_bundle(self.account, cluster, inquiry, since, shell)
        found = inquiry.collect()
        return found, {name: one for _, files in papers.values() for name, one in files.items()}


def states(found: Examination) -> dict[str, str]:
    return {one.name: one.state for one in found.sources}


def test_stacks_nodes_logs_and_slurm_are_files() -> None:
    service = Service()
    found, files = service.ask(service.shell)
    assert set(states(found).values()) == {"read"}
    reports = {name for name in files if name.startswith("reports/")}
    assert 0 < len(reports) <= bundle_sources.REPORTS
    assert set(files) - reports == {
        "stacks/dev-cluster.json", "stacks/dev-cluster-events.json", "nodes.json", f"logs/{STREAM}.log",
        *(f"slurm/{name}.txt" for name in SLURM),
    }  # fmt: skip
    assert files[f"logs/{STREAM}.log"] == "before\nERROR: no device"
    assert files["slurm/version.txt"].startswith("$ sinfo --version\n")


def test_nothing_that_was_given_to_a_stack_is_kept_nor_what_is_older() -> None:
    _, files = Service().ask()
    assert "planted" not in json.dumps(files, default=str)
    assert [event["EventId"] for event in files["stacks/dev-cluster-events.json"]] == ["1"]


def test_logs_are_read_around_the_last_fault() -> None:
    service = Service()
    service.ask()
    begin, end = (service.asked[0][key] for key in ("startTime", "endTime"))
    assert begin < FAULT.timestamp() * 1000 < end and end - begin == 600_000


@pytest.mark.parametrize(
    ("call", "source"),
    [
        ("DescribeStacks", "history of stacks"),
        ("DescribeStackEvents", "history of stacks"),
        ("DescribeLogGroups", "logs around faults"),
        ("GetLogEvents", "logs around faults"),
    ],
)
def test_a_refused_call_is_a_row_and_the_others_answer(call: str, source: str) -> None:
    service = Service()
    service.refused.add(call)
    found, _ = service.ask(service.shell)
    assert [name for name, state in states(found).items() if state == "not readable"] == [source]


def test_nodes_that_cannot_be_asked_are_rows() -> None:
    def no_plugin(fleet: Fleet, nodes: list[Node], script: str) -> Mapping[str, tuple[str, str]]:
        raise AccountError("session-manager-plugin is not on this machine")

    def silent(fleet: Fleet, nodes: list[Node], script: str) -> Mapping[str, tuple[str, str]]:
        return {node.id: ("", "its agent did not answer in time") for node in nodes}

    for shell, why in ((no_plugin, "session-manager-plugin"), (silent, "did not answer in time")):
        found, _ = Service().ask(shell)
        rows = {one.name: one.why for one in found.sources if one.state == "not readable"}
        assert set(rows) == {"reports of nodes", "Slurm"} and all(why in row for row in rows.values())


def test_of_objects_of_kubernetes_only_their_state_is_kept() -> None:
    pod = {
        "metadata": {
            "name": "a", "labels": {"app": "x"}, "managedFields": ["planted"],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "planted",
                            "sagemaker.amazonaws.com/fault-details": "Xid 79"},
        },
        "spec": {"nodeName": "n1", "containers": [{"env": [{"name": "A", "value": "planted"}]}]},
        "status": {"phase": "Failed"}, "data": {"k": "planted"},
    }  # fmt: skip
    kept = kept_of(pod)
    assert "planted" not in json.dumps(kept) and kept["status"] == {"phase": "Failed"}
    assert kept["spec"] == {"nodeName": "n1"} and "Xid 79" in json.dumps(kept)


def test_each_list_of_kubernetes_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    class Api:
        def __init__(self, *_: Any) -> None: ...

        def items(self, path: str) -> list[dict[str, Any]]:
            if "daemonsets" in path:
                raise AccountError("Kubernetes refuses with 403")
            return [{"metadata": {"name": path}}]

    monkeypatch.setattr(bundle_sources, "KubernetesApi", Api)
    found, files = Service().ask(name="hyperpod-eks-p5")
    assert states(found)["Kubernetes daemonsets, whole"] == "not readable"
    assert {name for name in files if name.startswith("kubernetes/")} == {
        "kubernetes/nodes.json", "kubernetes/events.json", "kubernetes/system-pods.json",
    }  # fmt: skip
