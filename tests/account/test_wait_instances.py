"""Waiting for ParallelCluster, PCS and EKS: Run Command as the SDK's model has it, run by real shells."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import BORN, account, answer, refusal
from kubernetes_service import Api, certificate, kubernetes_node, serve_cluster, serving
from moto import mock_aws
from rules_support import changed, environment_data, loaded
from wait_support import MOUNTS, READY, Machines, Time

from ultracluster.account import doctor
from ultracluster.account import wait as waiting
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.nodes.node import Node
from ultracluster.account.services import managed_groups
from ultracluster.account.wait import Result
from ultracluster.account.wait.diagnosis import examine_after
from ultracluster.account.wait.instances import InstanceSource
from ultracluster.account.wait.shell import RunCommand
from ultracluster.config import Environment, load
from ultracluster.model import resolve

ENVIRONMENTS = Path(__file__).parents[2] / "environments"
MORE = MOUNTS + "fs-1.fsx:/fsx /home nfs4 rw 0 0\n"
REGISTERED = 'I1122 "Successfully registered node"\n'


def name(number: int) -> str:
    return f"i-{number:017x}"


class Fleet:
    """Instances of one environment, and the services that keep them."""

    def __init__(self, folder: Path, file: str) -> None:
        self.environment: Environment = load(ENVIRONMENTS / f"{file}.yaml").environment
        self.account: Account = account(self.environment.region)
        self.instances: dict[int, dict[str, Any]] = {}
        self.machines = Machines(folder / "machines")
        self.ssm = self.machines.serve_ssm(self.account)
        self.machines.program("sinfo", 'cat "$MACHINES/sinfo"')
        self.machines.program("journalctl", 'cat "$ULTRACLUSTER_ROOT/kubelet.log"')
        self.machines.program("systemctl", "echo active")
        self.registered: dict[int, str] = {}
        self.refused: dict[str, Exception] = {}
        answer(self.account.client("ec2"), "DescribeInstances", self._guard("DescribeInstances", self._list))

    def _guard(self, call: str, reply: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
        def guarded(asked: dict[str, Any]) -> dict[str, Any]:
            if call in self.refused:
                raise self.refused[call]
            return reply(asked)

        return guarded

    def serve(self, service: str, call: str, reply: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        answer(self.account.client(service), call, self._guard(call, reply))

    def _list(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"Reservations": [{"Instances": list(self.instances.values())}]}

    def launch(self, number: int, kind: str, state: str = "running", **tags: str) -> None:
        self.instances[number] = {
            "InstanceId": name(number), "State": {"Name": state}, "InstanceType": kind, "LaunchTime": BORN,
            "PrivateDnsName": f"ip-10-0-0-{number}.ec2.internal",
            "Tags": [
                {"Key": key.replace("__", ":").replace("_", "-"), "Value": tags[key]} for key in tags
            ],
        }  # fmt: skip

    def slurm(self, **nodes: int) -> None:
        rows = [f"{one.replace('_', '-')}|10.0.0.{number}|train|idle|none\n" for one, number in nodes.items()]
        (self.machines.folder / "sinfo").write_text("".join(rows))

    def wait(self, timeout: float = 5400, **at: Callable[[], None]) -> Result:
        time = Time()
        time.at = {float(when.removeprefix("at_")): what for when, what in at.items()}
        shell = RunCommand(self.account, sleep=lambda seconds: None, clock=time.clock)
        source = InstanceSource(self.account, resolve(self.environment), shell)
        return waiting.wait(source, timeout=timeout, sleep=time.sleep, clock=time.clock)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute in place of a quarter of an hour: each look takes real programs."""
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)


def run_of(entry: str, state: str = "ready", **more: Any) -> dict[str, Any]:
    return {**READY, "entry": entry, "state": state, **more}


@pytest.fixture
def pcs(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path, "pcs-p6-b200")
    groups = {"pcs_1": ("login", 2), "pcs_2": ("train", 4)}
    fleet.serve(
        "pcs", "ListComputeNodeGroups",
        lambda asked: {"computeNodeGroups": [
            {"id": key, "name": one, "arn": "arn:aws:pcs:us-east-2:111122223333:x", "clusterId": "pcs_0",
             "createdAt": BORN, "modifiedAt": BORN, "status": "ACTIVE"} for key, (one, _) in groups.items()]},
    )  # fmt: skip
    fleet.errors: list[dict[str, str]] = []  # type: ignore[attr-defined]
    fleet.wanted = {"login": 2, "train": 4}  # type: ignore[attr-defined]
    fleet.status = "ACTIVE"  # type: ignore[attr-defined]

    def get(asked: dict[str, Any]) -> dict[str, Any]:
        one = groups[asked["computeNodeGroupIdentifier"]][0]
        wanted = fleet.wanted[one]  # type: ignore[attr-defined]
        return {
            "computeNodeGroup": {
                "id": asked["computeNodeGroupIdentifier"], "name": one, "status": fleet.status,  # type: ignore[attr-defined]
                "arn": "arn:aws:pcs:us-east-2:111122223333:x", "clusterId": "pcs_0", "createdAt": BORN,
                "modifiedAt": BORN, "subnetIds": ["subnet-0123456789abcdef0"], "instanceConfigs": [],
                "customLaunchTemplate": {"id": "lt-1", "version": "1"},
                "iamInstanceProfileArn": "arn:aws:iam::111122223333:instance-profile/AWSPCS-x",
                "scalingConfiguration": {"minInstanceCount": wanted, "maxInstanceCount": 4},
                "errorInfo": fleet.errors,  # type: ignore[attr-defined]
            }
        }  # fmt: skip

    fleet.serve("pcs", "GetComputeNodeGroup", get)
    for number in (1, 2):
        fleet.launch(number, "m7i.2xlarge", aws__pcs__compute_node_group_id="pcs_1")
        fleet.machines.boot(name(number), run=run_of("pcs_node"), mounts=MORE)
    for number in range(16, 20):
        fleet.launch(number, "p6-b200.48xlarge", aws__pcs__compute_node_group_id="pcs_2")
        fleet.machines.boot(name(number), run=run_of("pcs_node"), mounts=MORE, efa=8, domains=8)
    fleet.slurm(train_1=16, train_2=17, train_3=18, train_4=19)
    return fleet


def test_pcs_all_ready(pcs: Fleet) -> None:
    result = pcs.wait()
    assert result.outcome == "ready" and not result.look.unproven, result
    assert [(group.name, group.up, group.wanted) for group in result.look.groups] == [
        ("login", 2, 2),
        ("train", 4, 4),
    ]
    assert len(pcs.ssm.sent) == 2 and len(pcs.ssm.sent[0]) == 6, "one command for all nodes, one for sinfo"


def test_pcs_nodes_boot_register_and_are_asked_no_more_than_needed(pcs: Fleet) -> None:
    pcs.machines.silent = {name(19)}
    pcs.machines.boot(name(18), run=None, mounts=MORE, efa=8, domains=8)
    pcs.slurm(train_1=16, train_2=17)

    def mend() -> None:
        pcs.machines.silent = set()
        pcs.machines.boot(
            name(18), run=run_of("pcs_node", "degraded", degraded=["dcgm"]), mounts=MORE, efa=8, domains=8
        )
        pcs.slurm(train_1=16, train_2=17, train_3=18, train_4=19)

    result = pcs.wait(at_60=mend)
    assert result.outcome == "ready" and result.seconds == 60
    assert [node.degraded for node in result.look.nodes if node.state == "degraded"] == [("dcgm",)]
    assert sum(name(16) in ids for ids in pcs.ssm.sent) == 1, "what is proven is not asked again"


def test_pcs_canary_fails_with_its_own_words(pcs: Fleet) -> None:
    for number in range(16, 20):
        pcs.machines.boot(name(number), run=None, mounts=MORE, efa=8)
    pcs.machines.boot(
        name(16), run=run_of("pcs_node", "failed", reason="nvidia_driver: no module"), mounts=MORE
    )
    result = pcs.wait()
    assert (result.outcome, result.group, result.node) == ("failed", "train", name(16))
    assert result.reason == "nvidia_driver: no module" and result.seconds == 0


def test_pcs_launch_loop(pcs: Fleet) -> None:
    """A node that does not join within its window is ended by PCS, which launches another."""
    for number in range(16, 20):
        del pcs.instances[number]
    tag = {"aws__pcs__compute_node_group_id": "pcs_2"}
    pcs.launch(20, "p6-b200.48xlarge", "pending", **tag)

    def next_one() -> None:
        del pcs.instances[20]
        pcs.launch(21, "p6-b200.48xlarge", "pending", **tag)

    result = pcs.wait(at_60=next_one, at_120=lambda: pcs.instances.__delitem__(21))
    assert result.outcome == "failed" and result.seconds == 120
    assert result.reason == "it ended before it was ready; when last seen: pending"


def test_pcs_an_instance_that_is_ended_says_why(pcs: Fleet) -> None:
    for number in range(16, 20):
        pcs.instances[number]["State"] = {"Name": "shutting-down"}
        pcs.instances[number]["StateReason"] = {"Message": "Server.InsufficientInstanceCapacity"}
    assert pcs.wait().reason == "shutting-down: Server.InsufficientInstanceCapacity"


def test_pcs_a_node_that_never_registers(pcs: Fleet) -> None:
    pcs.slurm(train_1=16, train_2=17, train_3=18)
    result = pcs.wait()
    assert (result.outcome, result.node) == ("failed", name(19))
    assert result.reason == "slurmctld does not know it, for 1 minute"


def test_pcs_capacity_that_has_not_begun_is_a_group_at_zero(pcs: Fleet) -> None:
    pcs.wanted["train"] = 0  # type: ignore[attr-defined]
    for number in range(16, 20):
        del pcs.instances[number]
    result = pcs.wait()
    assert result.outcome == "ready"
    assert result.look.groups[1].note == "0 of the file's 4 nodes are asked for now"


def test_pcs_says_why_a_group_has_no_nodes(pcs: Fleet) -> None:
    for number in range(16, 20):
        del pcs.instances[number]
    pcs.errors.append({"code": "InsufficientInstanceCapacity", "message": "none in use2-az2"})  # type: ignore[attr-defined]
    assert pcs.wait(timeout=60).reason.endswith("InsufficientInstanceCapacity: none in use2-az2")
    pcs.status = "CREATE_FAILED"  # type: ignore[attr-defined]
    result = pcs.wait()
    assert result.outcome == "failed" and result.reason.startswith("the group is CREATE_FAILED: Insufficient")


@pytest.mark.parametrize("call", ["DescribeInstances", "GetComputeNodeGroup", "SendCommand"])
def test_a_throttled_call_is_tried_again(pcs: Fleet, call: str) -> None:
    pcs.machines.silent = {name(19)}
    refused = pcs.ssm.refused if call == "SendCommand" else pcs.refused

    def mend() -> None:
        refused.clear()
        pcs.machines.silent = set()

    def throttle() -> None:
        refused[call] = refusal("ThrottlingException", "Rate exceeded")
        pcs.machines.silent = set()

    result = pcs.wait(at_30=throttle, at_90=mend)
    assert result.outcome == "ready" and result.seconds == 90


def test_without_the_permission_nothing_can_be_told(pcs: Fleet) -> None:
    pcs.ssm.refused["SendCommand"] = refusal(
        "AccessDeniedException", "not authorized to perform: ssm:SendCommand on x"
    )
    with pytest.raises(AccountError, match="ssm:SendCommand is not allowed"):
        pcs.wait()


@pytest.mark.parametrize("kind", ["pcs-p6-b200", "eks-p5en", "parallelcluster-p5"])
def test_moto_not_deployed_is_one_line(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = load(ENVIRONMENTS / f"{kind}.yaml").environment
    with mock_aws():
        made = Account(environment.region)
        if kind.startswith("pcs"):  # moto has no PCS
            error = refusal("ResourceNotFoundException", "cluster not found")

            def refuse(asked: dict[str, Any]) -> dict[str, Any]:
                raise error

            answer(made.client("pcs"), "ListComputeNodeGroups", refuse)
        with pytest.raises(AccountError) as raised:
            managed_groups(made, resolve(environment))
    line = str(raised.value)
    assert f"there is no cluster {environment.cluster_name}" in line and f"make deploy ENV={kind}" in line


@pytest.fixture
def parallelcluster(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path, "parallelcluster-p5")
    fleet.stack = "CREATE_COMPLETE"  # type: ignore[attr-defined]
    fleet.serve(
        "cloudformation", "DescribeStacks",
        lambda asked: {"Stacks": [
            {"StackName": asked["StackName"], "CreationTime": BORN, "StackStatus": fleet.stack}]},  # type: ignore[attr-defined]
    )  # fmt: skip
    ended = run_of("parallelcluster_on_node_configured")
    fleet.launch(1, "m7i.4xlarge", parallelcluster__node_type="HeadNode")
    fleet.launch(2, "m7i.xlarge", parallelcluster__node_type="LoginNode")
    for number in (1, 2):
        fleet.machines.boot(name(number), run=ended, mounts=MORE)
    for number in range(16, 20):
        fleet.launch(
            number, "p5.48xlarge", parallelcluster__node_type="Compute", parallelcluster__queue_name="train"
        )
        fleet.machines.boot(name(number), run=ended, mounts=MORE, efa=32, domains=32)
    fleet.slurm(**{f"train_st_reserved_{number - 15}": number for number in range(16, 20)})
    return fleet


def test_parallelcluster_all_ready(parallelcluster: Fleet) -> None:
    result = parallelcluster.wait()
    assert result.outcome == "ready" and not result.look.unproven, result
    assert [(group.name, group.up, group.wanted) for group in result.look.groups] == [
        ("head node", 1, 1), ("login nodes", 1, 1), ("train", 4, 4),
    ]  # fmt: skip


def test_parallelcluster_waits_for_the_second_entry(parallelcluster: Fleet) -> None:
    early = run_of("parallelcluster_on_node_start")
    parallelcluster.machines.boot(name(16), run=early, mounts=MORE, efa=32, domains=32)
    result = parallelcluster.wait(timeout=60)
    assert result.outcome == "late" and "its scripts have not ended yet" in result.reason


def test_parallelcluster_that_rolls_back(parallelcluster: Fleet) -> None:
    parallelcluster.stack = "ROLLBACK_IN_PROGRESS"  # type: ignore[attr-defined]
    result = parallelcluster.wait()
    assert (
        result.outcome == "failed" and "the stack parallelcluster-p5 is ROLLBACK_IN_PROGRESS" in result.reason
    )


def test_parallelcluster_head_node_silent_is_late_not_ready(parallelcluster: Fleet) -> None:
    parallelcluster.machines.silent = {name(1)}
    result = parallelcluster.wait(timeout=60)
    assert result.outcome == "late" and "its SSM Agent has not registered" in result.reason


@pytest.fixture
def eks(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path, "eks-p5en")
    fleet.groups = {  # type: ignore[attr-defined]
        "system-9Xk2": {"labels": {"ultracluster/node-group": "system"}, "scalingConfig": {"desiredSize": 2}},
        "train-7Yb3": {"labels": {"ultracluster/node-group": "train"}, "scalingConfig": {"desiredSize": 8}},
    }
    fleet.serve("eks", "ListNodegroups", lambda asked: {"nodegroups": list(fleet.groups)})  # type: ignore[attr-defined]
    fleet.serve(
        "eks", "DescribeNodegroup",
        lambda asked: {"nodegroup": {"status": "ACTIVE", **fleet.groups[asked["nodegroupName"]]}},  # type: ignore[attr-defined]
    )  # fmt: skip
    for number in (1, 2):
        fleet.launch(number, "m5.2xlarge", eks__nodegroup_name="system-9Xk2")
        fleet.machines.boot(name(number), run=None, mounts="", kubelet=REGISTERED)
    for number in range(16, 24):
        fleet.launch(number, "p5en.48xlarge", eks__nodegroup_name="train-7Yb3")
        fleet.machines.boot(name(number), run=run_of("eks_user_data"), mounts="", efa=16, kubelet=REGISTERED)
    fleet.place = Api()  # type: ignore[attr-defined]
    fleet.place.endpoint, fleet.place.authority = "https://127.0.0.1:9", AUTHORITY  # type: ignore[attr-defined]
    serve_cluster(fleet.account, fleet.place)  # type: ignore[attr-defined]
    return fleet


AUTHORITY = ""


@pytest.fixture(autouse=True)
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is one, for an endpoint at which nobody listens."""
    folder = tmp_path / "authority"
    folder.mkdir()
    made = base64.b64encode(certificate(folder)[1].read_bytes()).decode()
    monkeypatch.setattr(f"{__name__}.AUTHORITY", made)


def test_eks_with_a_private_endpoint_asks_the_kubelets(eks: Fleet) -> None:
    result = eks.wait()
    assert result.outcome == "ready" and not result.look.unproven, result
    assert [(group.name, group.up, group.wanted) for group in result.look.groups] == [
        ("system", 2, 2),
        ("train", 8, 8),
    ]


def test_eks_a_kubelet_that_does_not_join(eks: Fleet) -> None:
    log = "E1122 Unable to register node with API server\n"
    eks.machines.boot(name(23), run=run_of("eks_user_data"), mounts="", efa=16, kubelet=log)
    result = eks.wait()
    assert (result.outcome, result.node) == ("failed", name(23))
    assert result.reason == "its kubelet is active and did not register it, for 1 minute"


def test_eks_asks_kubernetes_where_it_can(eks: Fleet, tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        eks.place.endpoint, eks.place.authority = api.endpoint, api.authority  # type: ignore[attr-defined]
        items = [kubernetes_node(name(number)) for number in (1, 2, *range(16, 24))]
        api.objects["GET", "/api/v1/nodes"] = (200, {"items": items, "metadata": {}})
        assert eks.wait().outcome == "ready"
        items[5]["status"]["conditions"][1]["status"] = "Unknown"
        result = eks.wait(timeout=1)
        assert result.outcome == "late" and "not Ready" in result.reason


def test_eks_says_what_ails_a_group(eks: Fleet) -> None:
    issue = {"code": "NodeCreationFailure", "message": "Instances failed to join"}
    eks.groups["train-7Yb3"] |= {"status": "CREATE_FAILED", "health": {"issues": [issue, issue]}}  # type: ignore[attr-defined]
    result = eks.wait()
    assert result.reason == "the group is CREATE_FAILED: NodeCreationFailure: Instances failed to join"


def test_eks_a_group_that_is_missing_is_not_ready(eks: Fleet) -> None:
    del eks.groups["train-7Yb3"]  # type: ignore[attr-defined]
    result = eks.wait()
    assert (result.outcome, result.group) == ("failed", "train") and "deploy the file first" in result.reason


@pytest.fixture
def karpenter(eks: Fleet) -> Fleet:
    """A static pool of Karpenter, which EKS does not know as a group, in place of the managed one."""
    changes = {"orchestrator.karpenter": {"groups": ["train"]}, "node_groups.train.count": 8}
    eks.environment = loaded(changed(environment_data("eks-p5en"), changes)).environment
    del eks.groups["train-7Yb3"]  # type: ignore[attr-defined]
    for number in range(16, 24):
        eks.launch(number, "p5en.48xlarge", **{"karpenter.sh/nodepool": "train"})
    # EC2 finds each by its own tag
    eks.serve("ec2", "DescribeInstances", lambda asked: {"Reservations": [{"Instances": [
        instance for instance in eks.instances.values()
        if {f"tag:{tag['Key']}" for tag in instance["Tags"]} & _MARKS[asked["Filters"][0]["Name"]]
    ]}]} if asked["Filters"][0]["Values"] == ["eks-p5en"] else {})  # fmt: skip
    return eks


_MARKS = {
    "tag:eks:cluster-name": {"tag:eks:nodegroup-name"},
    "tag:eks:eks-cluster-name": {"tag:karpenter.sh/nodepool"},
}


def test_eks_nodes_of_karpenter_are_waited_for(karpenter: Fleet) -> None:
    result = karpenter.wait()
    assert result.outcome == "ready"
    assert [(group.name, group.up, group.wanted) for group in result.look.groups] == [
        ("system", 2, 2), ("train", 8, 8),
    ]  # fmt: skip


def test_eks_a_pool_that_grows_from_nothing_is_ready(karpenter: Fleet) -> None:
    group = karpenter.environment.node_groups["train"].model_copy(update={"count": 0, "max_count": 8})
    groups = {**karpenter.environment.node_groups, "train": group}
    karpenter.environment = karpenter.environment.model_copy(update={"node_groups": groups})
    for number in range(16, 24):
        del karpenter.instances[number]
    result = karpenter.wait()
    assert result.outcome == "ready"
    assert result.look.groups[1].note == "Karpenter launches its nodes when pods need them"


def test_large_groups_are_asked_fifty_at_a_time(tmp_path: Path) -> None:
    aws_account = account("us-east-2")
    machines = Machines(tmp_path / "machines")
    ssm = machines.serve_ssm(aws_account)
    nodes = [Node(name(number), "train", "running") for number in range(120)]
    for node in nodes:
        machines.broken[node.id] = "not now"
    found = RunCommand(aws_account, sleep=lambda seconds: None).run(nodes, "true")
    assert [len(ids) for ids in ssm.sent] == [50, 50, 20] and set(found) == {node.id for node in nodes}
    assert all("not now" in one.why for one in found.values())


def test_after_a_failure_the_nodes_own_log_is_read(pcs: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(16, 20):
        pcs.machines.boot(name(number), run=run_of("pcs_node", "failed", reason="efa: dead"), mounts=MORE)
    pcs.machines.program("tail", 'echo "$*"; echo "E: Could not get lock /var/lib/dpkg/lock-frontend"')
    monkeypatch.setattr(doctor, "_stack", lambda *_: None)
    pcs.serve("pcs", "GetCluster", lambda asked: {"cluster": CLUSTER})
    shell = RunCommand(pcs.account, sleep=lambda seconds: None)
    source = InstanceSource(pcs.account, resolve(pcs.environment), shell)
    result = waiting.wait(source, timeout=60, sleep=lambda seconds: None)
    found = examine_after(pcs.account, resolve(pcs.environment), source, result)
    log = found.logs[f"{name(16)}:/var/log/ultracluster/run.log"]
    assert log[0] == "-n 40 /var/log/ultracluster/run.log"
    assert found.diagnoses[0].failure.id == "apt-lock"


CLUSTER = {
    "name": "pcs-p6-b200", "id": "pcs_0", "arn": "arn:aws:pcs:us-east-2:111122223333:x", "status": "ACTIVE",
    "createdAt": BORN, "modifiedAt": BORN, "scheduler": {"type": "SLURM", "version": "25.11"},
    "size": "SMALL", "networking": {},
}  # fmt: skip
