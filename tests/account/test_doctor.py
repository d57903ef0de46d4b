"""What is wrong: every source asked, each failure a row, the likely cause first."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import typer
from account_fixtures import keys
from hyperpod_service import BORN, HyperPod, account, answer, group, refusal
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.aws import Account
from ultracluster.account.doctor import examine
from ultracluster.account.wait import sessions_shell
from ultracluster.cli import doctor as command
from ultracluster.config import load
from ultracluster.model import resolve

__all__ = ["keys"]

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"
GROUP = "/aws/sagemaker/Clusters/dev/abcdefghijkl"
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
NODE = "i-00000000000000011"


class Broken:
    """An environment with something wrong everywhere; every call can be refused."""

    def __init__(self, healthy: bool = False) -> None:
        self.account = account()
        self.service = HyperPod(self.account)
        self.stacks: dict[str, list[dict[str, Any]]] = {}
        self.streams: dict[str, list[str]] = {}
        self.health: list[str] = []
        self.refused: dict[str, Exception] = {}
        cloudformation, logs = self.account.client("cloudformation"), self.account.client("logs")
        answer(cloudformation, "DescribeStackEvents", self._guard("DescribeStackEvents", self._stack))
        answer(logs, "DescribeLogGroups", self._guard("DescribeLogGroups", self._groups))
        answer(logs, "DescribeLogStreams", self._guard("DescribeLogStreams", self._streams))
        answer(logs, "GetLogEvents", self._guard("GetLogEvents", self._events))
        answer(logs, "FilterLogEvents", self._guard("FilterLogEvents", self._filter))
        self.stacks["dev-cluster"] = [event("dev-cluster", "CREATE_COMPLETE")]
        if not healthy:
            self._break()

    def _break(self) -> None:
        self.stacks["dev-cluster"] = [
            event("dev-cluster", "UPDATE_ROLLBACK_COMPLETE"),
            event("Cluster", "UPDATE_FAILED", "Lifecycle scripts did not run successfully"),
            event("Other", "UPDATE_FAILED", "Resource update cancelled"),
            event("dev-cluster", "UPDATE_COMPLETE"),
            event("Old", "UPDATE_FAILED", "ResourceLimitExceeded: long mended"),
        ]
        self.service.status(17, "Failure", "EFA health check failed")
        self.service.cluster["InstanceGroups"][1] |= {"CurrentCount": 7, "Status": "Degraded"}
        self.service.events = [
            {
                "EventId": f"0a0a0a0a-0000-0000-0000-{number:012d}",
                "ClusterArn": self.service.cluster["ClusterArn"],
                "ClusterName": "dev",
                "ResourceType": "Instance",
                "InstanceGroupName": "gpu",
                "InstanceId": NODE,
                "EventTime": BORN,
                "EventLevel": level,
                "Description": text,
            }
            for number, (level, text) in enumerate(
                [("Error", "Instance could not start"), ("Info", "Scaling")]
            )
        ]
        self.streams[f"LifecycleConfig/gpu/{NODE}"] = [
            "starting", "E: Could not get lock /var/lib/dpkg/lock-frontend", "exit status 100",
        ]  # fmt: skip
        self.health = [
            '{"HealthMonitoringAgentDetectionEvent": "HealthEvent", "reason": "XidHardwareFailure"}'
        ]

    def _guard(self, name: str, reply: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(asked: dict[str, Any]) -> dict[str, Any]:
            if name in self.refused:
                raise self.refused[name]
            return reply(asked)

        return guarded

    def _stack(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["StackName"]
        if name not in self.stacks:
            raise refusal("ValidationError", f"Stack [{name}] does not exist")
        events = self.stacks[name]
        first = "NextToken" not in asked  # two pages
        half = len(events) // 2
        return (
            {"StackEvents": events[:half], "NextToken": "more"} if first else {"StackEvents": events[half:]}
        )

    def _groups(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["logGroupNamePrefix"] == "/aws/sagemaker/Clusters/dev/"
        known = [("/aws/sagemaker/Clusters/dev/older0000000", 1), (GROUP, 2)] if self.streams else []
        return {"logGroups": [{"logGroupName": name, "creationTime": born} for name, born in known]}

    def _streams(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["logGroupName"] == GROUP
        prefix = asked["logStreamNamePrefix"]
        return {
            "logStreams": [{"logStreamName": stream} for stream in self.streams if stream.startswith(prefix)]
        }

    def _events(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"events": [{"message": line + "\n"} for line in self.streams[asked["logStreamName"]]]}

    def _filter(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["logStreamNamePrefix"] != "SagemakerHealthMonitoringAgent":
            return {"events": []}
        assert "HealthEvent" in asked["filterPattern"]
        name = f"SagemakerHealthMonitoringAgent/gpu/{NODE}"
        stamp = int(BORN.timestamp() * 1000)
        return {
            "events": [{"logStreamName": name, "message": one, "timestamp": stamp} for one in self.health]
        }

    def examine(self) -> Any:
        return examine(self.account, resolve(load(DEV).environment), now=lambda: NOW)


def event(resource: str, status: str, reason: str = "") -> dict[str, Any]:
    stack = "arn:aws:cloudformation:us-west-2:111122223333:stack/dev-cluster/x"
    itself = resource.startswith("dev-")
    return {
        "StackId": stack,
        "EventId": f"{resource}-{status}",
        "StackName": "dev-cluster",
        "LogicalResourceId": resource,
        "PhysicalResourceId": stack if itself else resource,
        "ResourceType": "AWS::CloudFormation::Stack" if itself else "AWS::SageMaker::Cluster",
        "Timestamp": BORN,
        "ResourceStatus": status,
        **({"ResourceStatusReason": reason} if reason else {}),
    }


def test_the_likely_cause_comes_first() -> None:
    examination = Broken().examine()
    ids = [diagnose.failure.id for diagnose in examination.diagnoses]
    assert ids == ["efa-health-check", "apt-lock", "lifecycle-generic"]
    assert "quota-cluster-usage" not in ids, "a failure that a later success has mended is past"
    assert [(fact.source, fact.where, fact.level) for fact in examination.facts] == [
        ("stack dev-cluster", "dev-cluster (AWS::CloudFormation::Stack)", "error"),
        ("stack dev-cluster", "Cluster (AWS::SageMaker::Cluster)", "error"),
        ("cluster", "dev", "info"),
        ("cluster", "group gpu", "error"),
        ("cluster", "group gpu", "warning"),
        ("nodes", f"gpu {NODE}", "error"),
        ("cluster events", f"gpu {NODE}", "error"),
        ("health monitoring", f"SagemakerHealthMonitoringAgent/gpu/{NODE}", "error"),
    ]
    assert examination.logs[f"LifecycleConfig/gpu/{NODE}"][-1] == "exit status 100"
    assert not examination.healthy


def test_a_healthy_environment() -> None:
    broken = Broken(healthy=True)
    broken.stacks["dev-cluster"] = [
        event("dev-cluster", "CREATE_COMPLETE"),
        event("X", "CREATE_FAILED", "odd"),
    ]
    examination = broken.examine()
    assert examination.healthy and not examination.diagnoses and not examination.logs
    assert {(source.name, source.state) for source in examination.sources} == {
        *((f"stack dev-{part}", "nothing there") for part in ("foundation", "network", "egress", "buckets")),
        ("stack dev-storage", "nothing there"),
        ("stack dev-cluster", "read"),
        ("cluster dev", "read"),
        ("nodes", "read"),
        ("cluster events", "read"),
        ("lifecycle logs", "read"),
        ("health monitoring", "read"),
    }


CALLS = (
    "DescribeStackEvents", "DescribeCluster", "ListClusterNodes", "ListClusterEvents", "DescribeClusterEvent",
    "DescribeLogStreams", "GetLogEvents", "FilterLogEvents",
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (refusal("AccessDeniedException"), "access denied"),
        (refusal("ThrottlingException", "Rate exceeded"), "throttled"),
        (refusal("ExpiredTokenException"), "credentials have expired"),
        (refusal("SomethingNew", "odd"), "SomethingNew: odd"),
    ],
)
def test_one_refused_call_leaves_the_others(call: str, error: Exception, line: str) -> None:
    broken = Broken()
    broken.refused[call] = broken.service.raising[call] = error
    examination = broken.examine()
    reasons = [source.why for source in examination.sources if source.state == "not readable"]
    reasons += [fact.text for fact in examination.facts if fact.where == "details"]
    assert reasons and all(line in reason for reason in reasons)
    assert [source for source in examination.sources if source.state == "read"], "nothing else was read"
    assert examination.diagnoses, "the rest still answers"
    assert not examination.healthy


def test_everything_refused_is_rows_and_no_traceback() -> None:
    broken = Broken()
    for call in (*CALLS, "DescribeLogGroups"):
        broken.refused[call] = broken.service.raising[call] = refusal("AccessDeniedException")
    examination = broken.examine()
    assert {source.state for source in examination.sources} == {"not readable"} and not examination.facts


def test_logs_of_a_cluster_that_is_gone_are_still_read() -> None:
    broken = Broken()
    broken.service.raising["DescribeCluster"] = refusal("ResourceNotFound")
    examination = broken.examine()
    assert "there is no HyperPod cluster dev" in next(
        source.why for source in examination.sources if source.name == "cluster dev"
    )
    assert examination.logs and examination.diagnoses[0].failure.id == "apt-lock"


def test_a_node_without_a_log_failed_before_its_script() -> None:
    broken = Broken()
    broken.streams = {}
    broken.service.status(17, "Failure")
    broken.service.events = []
    assert "no-lifecycle-log" in [diagnose.failure.id for diagnose in broken.examine().diagnoses]
    broken.service.status(17, "Pending")
    assert "no-lifecycle-log" not in [diagnose.failure.id for diagnose in broken.examine().diagnoses]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"ClusterStatus": "Failed", "FailureMessage": "insufficient capacity"},
            "Failed: insufficient capacity",
        ),
        ({"ClusterStatus": "Hibernating"}, "Hibernating"),
        ({"InstanceGroups": [group("gpu", 8, SoftwareUpdateStatus="RollbackComplete")]}, "software update"),
        ({"InstanceGroups": [group("gpu", 8, TrainingPlanStatus="Expired")]}, "training plan is Expired"),
        ({"InstanceGroups": [group("gpu", 8, ImageVersionStatus="EndOfLife")]}, "image is EndOfLife"),
        ({"InstanceGroups": [group("gpu", 0)]}, "run `ultracluster nodes add dev --restore --group gpu`"),
    ],
)
def test_the_clusters_own_words(changes: dict[str, Any], text: str) -> None:
    broken = Broken(healthy=True)
    broken.service.cluster |= changes
    examination = broken.examine()
    assert (
        any(text in fact.text for fact in examination.facts if fact.level != "info")
        and not examination.healthy
    )


def test_classic_provisioning_has_no_events() -> None:
    broken = Broken(healthy=True)
    del broken.service.cluster["NodeProvisioningMode"]
    broken.service.raising["ListClusterEvents"] = refusal("ValidationException")
    examination = broken.examine()
    assert examination.healthy and "only continuous provisioning" in str(examination.sources)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def invoke(made: Account, *words: str) -> Any:
        monkeypatch.setattr(aws, "Account", lambda **_: made)
        app = typer.Typer()
        app.command()(command.doctor)
        return CliRunner().invoke(app, [str(DEV), "--hours", "2160", *words])

    return invoke


def test_text_is_as_reviewed(run: Callable[..., Any]) -> None:
    result = run(Broken().account)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "likely cause: a security group of the nodes does not allow all traffic from itself and to itself"
    )
    assert lines[1].startswith("  compare: ") and lines[2].startswith("  do: ")
    assert lines[3].startswith("  run: ")
    assert lines[4] == f"  seen in: nodes: gpu {NODE}, cluster events: gpu {NODE}"
    assert lines[5] == "  more: docs/architecture.md#network"
    assert lines[6] == "  known from: awslabs/awsome-distributed-ai#259"
    assert "  | E: Could not get lock /var/lib/dpkg/lock-frontend" in lines
    cluster = "  ! 2026-11-20 08:00 stack dev-cluster: Cluster (AWS::SageMaker::Cluster): UPDATE_FAILED: "
    assert f"{cluster}Lifecycle scripts did not run successfully" in lines
    assert "  stack dev-network: nothing there" in lines


def test_json_holds_everything(run: Callable[..., Any]) -> None:
    result = run(Broken().account, "--json")
    document = json.loads(result.stdout)
    assert document["causes"][0]["id"] == "efa-health-check" and not document["healthy"]
    assert document["causes"][0]["evidence"] == [f"nodes: gpu {NODE}", f"cluster events: gpu {NODE}"]
    assert document["facts"][0]["when"] == "2026-11-20T08:00:00+00:00"
    assert set(document) == {
        "schema", "healthy", "deployed", "causes", "benign", "facts", "logs", "sources",
    }  # fmt: skip
    assert document["deployed"] is True


def test_healthy_and_unknown_say_so(run: Callable[..., Any]) -> None:
    fine = Broken(healthy=True)
    result = run(fine.account)
    assert result.exit_code == 0 and result.stdout.startswith("dev: nothing wrong found")
    odd = Broken(healthy=True)
    odd.service.cluster |= {"ClusterStatus": "Failed", "FailureMessage": "the moon is full"}
    assert run(odd.account).stdout.startswith("no known failure fits; this is what was seen:")


def test_the_log_of_a_node_that_is_asked_for_is_read_whatever_its_state() -> None:
    broken = Broken(healthy=True)
    broken.streams["LifecycleConfig/gpu/i-gone"] = ["FAILED efa: no device"]
    broken.streams[f"LifecycleConfig/gpu/{NODE}"] = ["READY in 40 s"]
    examination = examine(
        broken.account, resolve(load(DEV).environment), nodes={"i-gone": "gpu", NODE: "gpu"}, now=lambda: NOW
    )
    assert examination.logs["LifecycleConfig/gpu/i-gone"] == ["FAILED efa: no device"]
    assert examination.logs[f"LifecycleConfig/gpu/{NODE}"] == ["READY in 40 s"]


def test_what_was_never_deployed_is_called_so(run: Callable[..., Any]) -> None:
    broken = Broken(healthy=True)
    broken.stacks.clear()
    broken.service.raising["DescribeCluster"] = refusal("ResourceNotFound")
    result = run(broken.account)
    assert result.exit_code == 1
    assert result.stdout.startswith("dev: not deployed, none of its stacks is there")
    assert json.loads(run(broken.account, "--json").stdout)["deployed"] is False
    broken.refused["DescribeStackEvents"] = refusal("AccessDeniedException")
    unknown = run(broken.account, "--json")
    assert json.loads(unknown.stdout)["deployed"] is None and "not deployed" not in run(broken.account).stdout


class Throttled(Broken):
    """An account whose CloudFormation does not come to an answer."""

    def __init__(self) -> None:
        self.over = Event()
        super().__init__()

    def _stack(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.over.wait(30)
        return super()._stack(asked)


def test_a_throttled_account_is_answered_within_the_budget() -> None:
    made = Throttled()
    found = examine(made.account, resolve(load(DEV).environment), now=lambda: NOW, budget=3)
    made.over.set()
    stacks = [one for one in found.sources if one.name.startswith("stack ")]
    assert stacks and all("no answer within 3 seconds" in one.why for one in stacks)
    assert found.deployed is None and found.diagnoses, "the cluster's own words were not heard"


def test_a_bundle_has_what_answered_and_names_what_did_not(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sessions_shell, "PROGRAMS", ("no-such-program",))
    made = Broken()
    made.health.append("HealthEvent of alice: aws_secret_access_key=hunter2")
    file = tmp_path / "a.tar.gz"
    result = run(made.account, "--bundle", str(file), "--yes")
    assert result.exit_code == 3, "DescribeStacks, and nodes without a session, did not answer"
    with tarfile.open(file) as archive:
        files = {name: archive.extractfile(name) for name in archive.getnames()}
        texts = {name.partition("/")[2]: one.read().decode() for name, one in files.items() if one}
    assert "efa-health-check" in texts["causes.json"] and NODE in texts["nodes.json"]
    assert f"logs/LifecycleConfig/gpu/{NODE}.tail.log" in texts
    assert "hunter2" not in str(texts) and "HealthEvent" in texts["facts.json"]
    silent = json.loads(texts["manifest.json"])["not_answered"]
    assert {"reports of nodes", "Slurm"} <= set(silent)
    assert "no-such-program is not on this machine" in texts["README.txt"]
