"""Waiting for HyperPod: its API, its lifecycle logs, and sessions in real terminals."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import BORN, HyperPod, account, answer, group, node, refusal
from kubernetes_service import kubernetes_node, serve_cluster, serving
from wait_support import Machines, Time

from ultracluster.account import wait as waiting
from ultracluster.account.aws import AccountError
from ultracluster.account.wait import Result, shell
from ultracluster.account.wait.hyperpod import HyperPodSource
from ultracluster.config import Environment, load
from ultracluster.model import resolve

ENVIRONMENTS = Path(__file__).parents[2] / "environments"
GROUP = "/aws/sagemaker/Clusters/dev/abcdefghijkl"


def name(number: int) -> str:
    return f"i-{number:017x}"


class Cluster:
    """A cluster of dev.yaml that is there, with a log line of each node."""

    def __init__(self, folder: Path, environment: Environment, **cluster: Any) -> None:
        self.environment = environment
        self.account = account(environment.region)
        self.service = HyperPod(self.account, **cluster)
        self.service.cluster["InstanceGroups"] = [
            group("controller", 1, "Controller"), group("login", 1, "Login"), group("gpu", 2),
        ]  # fmt: skip
        self.service.nodes = [
            self.entry(1, "controller"), self.entry(2, "login"), self.entry(16), self.entry(17),
        ]  # fmt: skip
        self.events: list[dict[str, Any]] = []
        for entry in self.service.nodes:
            self.log(entry["InstanceGroupName"], entry["InstanceId"], "READY in 40 s")
        self.refused: Exception | None = None
        answer(self.account.client("logs"), "FilterLogEvents", self._filter)
        self.machines = Machines(folder / "machines")
        self.sinfo(16, 17)
        for number in (1, 2):
            self.machines.boot(name(number))
        for number in (16, 17):
            self.machines.boot(name(number), efa=1, domains=1)
        self.machines.program("sinfo", 'cat "$MACHINES/sinfo"')
        self.machines.serve_sessions(folder / "local")

    def entry(self, number: int, where: str = "gpu", **more: Any) -> dict[str, Any]:
        return node(
            number, where, InstanceType="ml.g6e.12xlarge" if where == "gpu" else "ml.m5.xlarge", **more
        )

    def sinfo(self, *numbers: int) -> None:
        rows = [f"ip-10-1-0-{number}|ip-10-1-0-{number}|gpu|idle|none\n" for number in numbers]
        (self.machines.folder / "sinfo").write_text("".join(rows))

    def log(self, where: str, instance: str, *lines: str, minutes: int = 0) -> None:
        when = int((BORN + timedelta(minutes=minutes)).timestamp() * 1000)
        for line in lines:
            self.events.append(
                {"logStreamName": f"LifecycleConfig/{where}/{instance}", "timestamp": when, "message": line}
            )

    def _filter(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.refused:
            raise self.refused
        assert asked["logGroupName"] == GROUP and asked["logStreamNamePrefix"] == "LifecycleConfig/"
        words = [word.lstrip("?") for word in asked["filterPattern"].split()]
        events = [
            event
            for event in self.events
            if event["timestamp"] >= asked["startTime"] and any(word in event["message"] for word in words)
        ]
        start = int(asked.get("nextToken", 0))
        more = {"nextToken": str(start + 2)} if start + 2 < len(events) else {}
        return {"events": events[start : start + 2], **more}

    def wait(self, timeout: float = 5400, **at: Callable[[], None]) -> Result:
        """Wait; `at_90=...` happens after 90 seconds."""
        time = Time()
        time.at = {float(when.removeprefix("at_")): what for when, what in at.items()}
        source = HyperPodSource(self.account, resolve(self.environment), now=BORN)
        return waiting.wait(source, timeout=timeout, sleep=time.sleep, clock=time.clock)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute in place of a quarter of an hour: each look takes real programs."""
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster(tmp_path, load(ENVIRONMENTS / "dev.yaml").environment)
    monkeypatch.setenv("PATH", f"{tmp_path / 'local'}:{os.environ['PATH']}")
    return cluster


def test_all_ready_and_proven(dev: Cluster) -> None:
    result = dev.wait()
    assert result.outcome == "ready" and not result.look.unproven, result.look.unproven
    assert {one.name: (one.up, one.wanted) for one in result.look.groups} == {
        "controller": (1, 1), "login": (1, 1), "gpu": (2, 2),
    }  # fmt: skip
    sessions = (dev.machines.folder / "sessions").read_text().split()
    assert sorted(sessions) == sorted([name(1), name(1), name(2), name(16), name(17)]), "each once, and sinfo"


def test_nodes_come_one_after_the_other(dev: Cluster) -> None:
    dev.events.clear()
    dev.sinfo()
    dev.service.status(16, "Pending")
    dev.service.status(17, "Pending", "waiting for capacity")

    def first() -> None:
        dev.service.status(16, "Running")
        for where, number in (("controller", 1), ("login", 2), ("gpu", 16)):
            dev.log(where, name(number), "READY in 40 s")
        dev.sinfo(16)

    def second() -> None:
        dev.service.status(17, "Running")
        dev.log("gpu", name(17), "DEGRADED gdrcopy: no source")
        dev.machines.boot(name(17), run=None, efa=1, domains=1)
        dev.sinfo(16, 17)

    result = dev.wait(at_60=first, at_180=second)
    assert result.outcome == "ready" and result.seconds == 180
    assert [one.state for one in result.look.groups[2].nodes] == ["ready", "degraded"]
    assert result.look.groups[2].nodes[1].degraded == ("gdrcopy",)


def test_the_canarys_last_line_ends_it(dev: Cluster) -> None:
    for number in (16, 17):
        dev.service.status(number, "Pending")
    dev.events[:] = dev.events[:2]
    dev.log("gpu", name(16), "step efa ...", "FAILED efa: the driver does not load")
    result = dev.wait()
    assert (result.outcome, result.node) == ("failed", name(16)) and result.seconds == 0
    assert result.reason == "Pending: efa: the driver does not load"


def test_a_canary_that_is_gone_again_ends_it_and_an_older_one_does_not(dev: Cluster) -> None:
    for number in (16, 17):
        dev.service.status(number, "Pending")
    dev.events[:] = dev.events[:2]
    dev.log("gpu", name(99), "FAILED efa: an older deploy", minutes=-30)
    result = dev.wait(timeout=60)
    assert result.outcome == "late"
    dev.log("gpu", name(98), "FAILED efa: no device", minutes=1)
    result = dev.wait()
    assert (result.outcome, result.node, result.reason) == ("failed", name(98), "efa: no device")


def test_a_replaced_failure_behind_a_ready_node_is_forgiven(dev: Cluster) -> None:
    dev.log("gpu", name(98), "FAILED efa: no device", minutes=1)
    assert dev.wait().outcome == "ready"


def test_a_later_good_run_outweighs_a_failed_one(dev: Cluster) -> None:
    dev.log("gpu", name(16), "FAILED lock: busy", minutes=-1)
    assert dev.wait().outcome == "ready"


def test_hyperpods_own_failure_ends_it(dev: Cluster) -> None:
    dev.service.status(16, "Failure", "EFA health check failed")
    result = dev.wait()
    assert (result.outcome, result.node) == ("failed", name(16))
    assert result.reason == "Failure: EFA health check failed"


def test_a_node_that_never_registers(dev: Cluster) -> None:
    dev.sinfo(16)
    result = dev.wait()
    assert result.outcome == "failed" and result.node == name(17) and result.seconds == waiting.PATIENCE
    assert result.reason == "slurmctld does not know it, for 1 minute"


def test_interfaces_are_counted_by_type(dev: Cluster) -> None:
    dev.service.nodes[3]["InstanceType"] = "ml.p5.48xlarge"
    result = dev.wait()
    assert result.outcome == "failed" and "1 of 32 EFA interfaces" in result.reason


def test_running_without_a_last_line_is_not_ready(dev: Cluster) -> None:
    dev.events[:] = [event for event in dev.events if not event["logStreamName"].endswith(name(17))]
    result = dev.wait()
    assert result.outcome == "failed" and "no line READY or DEGRADED" in result.reason


def test_without_the_plugin_nothing_is_claimed(dev: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    result = dev.wait()
    assert result.outcome == "ready" and len(result.look.unproven) == 2
    assert all("session-manager-plugin" in line for line in result.look.unproven)
    assert "`ultracluster connect dev`, then `sinfo" in result.look.unproven[1]


def test_a_session_that_says_nothing_is_not_held_against_a_node(dev: Cluster) -> None:
    (dev.machines.folder / f"broken-{name(17)}").write_text("Cannot perform start session: EOF")
    result = dev.wait()
    assert result.outcome == "ready"
    assert len(result.look.unproven) == 1 and "EOF" in result.look.unproven[0]


def test_slurm_that_does_not_answer_is_no_proof(dev: Cluster) -> None:
    dev.machines.program("sinfo", "echo slurm_load_partitions: Unable to contact slurm controller; exit 1")
    result = dev.wait(at_30=lambda: dev.machines.program("sinfo", 'cat "$MACHINES/sinfo"'))
    assert result.outcome == "ready" and result.seconds == 30


def test_a_group_that_hyperpod_has_given_up(dev: Cluster) -> None:
    dev.service.cluster["InstanceGroups"][2] |= {"TargetCount": 0, "CurrentCount": 0}
    dev.service.nodes = dev.service.nodes[:2]
    result = dev.wait()
    assert result.outcome == "failed" and result.group == "gpu"
    assert "HyperPod asks for 0 nodes and the file for 2" in result.reason
    assert "nodes add ... --group gpu --to 2" in result.reason


def test_a_group_at_zero_in_the_file_is_ready(dev: Cluster) -> None:
    groups = {
        **dev.environment.node_groups,
        "gpu": dev.environment.node_groups["gpu"].model_copy(update={"count": 0}),
    }
    dev.environment = dev.environment.model_copy(update={"node_groups": groups})
    dev.service.cluster["InstanceGroups"][2] |= {"TargetCount": 0, "CurrentCount": 0}
    dev.service.nodes = dev.service.nodes[:2]
    assert dev.wait().outcome == "ready"


def test_a_group_that_is_not_deployed_yet(dev: Cluster) -> None:
    del dev.service.cluster["InstanceGroups"][2]
    dev.service.nodes = dev.service.nodes[:2]
    assert "deploy the file first" in dev.wait().reason


@pytest.mark.parametrize("status", ["Failed", "RollingBack", "Deleting"])
def test_a_cluster_that_goes_down_ends_it(dev: Cluster, status: str) -> None:
    dev.service.cluster |= {"ClusterStatus": status, "FailureMessage": "insufficient capacity"}
    assert dev.wait().reason == f"the cluster is {status}: insufficient capacity"


def test_half_ready_then_failing(dev: Cluster) -> None:
    dev.service.cluster["InstanceGroups"][2] |= {"TargetCount": 6, "CurrentCount": 2}

    def fail() -> None:
        for number in (30, 31, 32):
            dev.log("gpu", name(number), f"FAILED lustre_client: cause {number}", minutes=2)

    result = dev.wait(at_60=fail)
    assert result.outcome == "failed" and result.seconds == 60
    assert result.reason.startswith(
        "nodes keep failing, 3 so far, the first of them: lustre_client: cause 30"
    )


def test_not_deployed_is_no_wait(dev: Cluster) -> None:
    dev.service.cluster["ClusterName"] = "another"
    with pytest.raises(AccountError, match=r"no HyperPod cluster dev in us-west-2 .* is it deployed"):
        dev.wait()


def test_logs_that_are_not_there_yet_or_throttle(dev: Cluster) -> None:
    dev.refused = refusal("ResourceNotFoundException", "The specified log group does not exist.")

    def throttle() -> None:
        dev.refused = refusal("ThrottlingException", "Rate exceeded")

    def mend() -> None:
        dev.refused = None

    result = dev.wait(at_60=throttle, at_120=mend)
    assert result.outcome == "ready" and result.seconds == 120


def test_a_deep_health_check_is_waited_for(dev: Cluster) -> None:
    dev.service.status(17, "DeepHealthCheckInProgress")
    result = dev.wait(timeout=60)
    assert result.outcome == "late" and "DeepHealthCheckInProgress for about two hours" in result.reason
    assert waiting.time_limit(resolve(dev.environment)) == 90
    assert waiting.time_limit(resolve(load(ENVIRONMENTS / "prod.yaml").environment)) == 240


def test_without_scripts_the_service_and_slurm_suffice(dev: Cluster) -> None:
    plain = dev.environment.orchestrator.model_copy(update={"lifecycle": "none"})
    dev.environment = dev.environment.model_copy(update={"orchestrator": plain})
    dev.events.clear()
    for number in (1, 2, 16, 17):
        dev.machines.boot(
            name(number), run=None, efa=1 if number > 2 else 0, domains=1 if number > 2 else None
        )
    assert dev.wait().outcome == "ready"


def test_hyperpod_on_eks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "EVERY", 0.05)
    environment = load(ENVIRONMENTS / "hyperpod-eks-p5.yaml").environment
    compute = list(environment.groups("compute"))
    cluster = Cluster(
        tmp_path,
        environment,
        Orchestrator={"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:111122223333:cluster/x"}},
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'local'}:{os.environ['PATH']}")
    cluster.service.cluster["ClusterName"] = environment.cluster_name
    cluster.service.cluster["InstanceGroups"] = [group(one, 1, None) for one in compute]
    cluster.service.nodes = [node(16 + index, one) for index, one in enumerate(compute)]
    cluster.events.clear()
    monkeypatch.setattr(
        f"{__name__}.GROUP", f"/aws/sagemaker/Clusters/{environment.cluster_name}/abcdefghijkl"
    )
    registered = 'I1122 "Successfully registered node"\n'
    cluster.machines.program("journalctl", 'cat "$ULTRACLUSTER_ROOT/kubelet.log"')
    for index, one in enumerate(compute):
        cluster.log(one, name(16 + index), "READY in 40 s")
        cluster.machines.boot(name(16 + index), mounts="", efa=32, kubelet=registered)
    eks, ec2 = cluster.account.client("eks"), cluster.account.client("ec2")
    system = list(environment.groups("system"))
    answer(eks, "ListNodegroups", lambda asked: {"nodegroups": [f"{one}-9Xk2" for one in system]})
    answer(
        eks, "DescribeNodegroup",
        lambda asked: {"nodegroup": {
            "status": "ACTIVE", "labels": {"ultracluster/node-group": asked["nodegroupName"][:-5]},
            "scalingConfig": {"desiredSize": 1},
        }},
    )  # fmt: skip
    instances = [
        {
            "InstanceId": name(64 + index), "State": {"Name": "running"}, "InstanceType": "m5.2xlarge",
            "Tags": [{"Key": "eks:nodegroup-name", "Value": f"{one}-9Xk2"}],
        }
        for index, one in enumerate(system)
    ]  # fmt: skip
    answer(ec2, "DescribeInstances", lambda asked: {"Reservations": [{"Instances": instances}]})
    cluster.machines.serve_ssm(cluster.account)
    for index in range(len(system)):
        cluster.machines.boot(name(64 + index), run=None, mounts="", kubelet=registered)

    with serving(tmp_path) as api:  # from inside of the VPC
        serve_cluster(cluster.account, api)
        items = [
            kubernetes_node(f"hyperpod-{name(16 + index)}", **{"vpc.amazonaws.com/efa": "32"})
            for index in range(len(compute))
        ]
        items += [kubernetes_node(name(64 + index)) for index in range(len(system))]
        api.objects["GET", "/api/v1/nodes"] = (200, {"items": items, "metadata": {}})
        result = cluster.wait()
        assert result.outcome == "ready" and not result.look.unproven, result
        items[0]["status"]["allocatable"]["vpc.amazonaws.com/efa"] = "0"
        assert "device plugin offers 0 of 32" in cluster.wait(timeout=1).reason

    result = cluster.wait()  # from outside: the nodes' own kubelets say it
    assert result.outcome == "ready" and not result.look.unproven, result
    assert [one.name for one in result.look.groups] == [*system, *compute]
