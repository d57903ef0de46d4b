"""The collective at the end of a wait: submitted, awaited, fetched, judged, removed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nccl_logs
import pytest
from hyperpod_service import account, refusal
from judged_logs import host_report
from kubernetes_service import Api, open_api, serving
from wait_support import Machines, Ssm, Time

from ultracluster.acceptance.node_tools import slurm_script
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait import GroupSeen, Look, NodeSeen
from ultracluster.account.wait.shell import RunCommand
from ultracluster.account.wait.slurm import SlurmNode
from ultracluster.account.wait.smoke import LIMIT, Clock, Pair, Smoke, pairs
from ultracluster.account.wait.smoke_kubernetes import run_on_kubernetes
from ultracluster.account.wait.smoke_slurm import PART, run_on_slurm
from ultracluster.catalog import instance_types
from ultracluster.config import Environment, load
from ultracluster.model import resolve

ROOT = Path(__file__).parents[2]

FIRST, SECOND, HEAD = (f"i-{number:017x}" for number in (16, 17, 1))
HOSTS = ("ip-10-64-0-16", "ip-10-64-0-17")


def node(instance: str, host: str, group: str = "train") -> Node:
    return Node(instance, group, "running", "p5en.48xlarge", dns=f"{host}.us-east-2.compute.internal")


PAIR = Pair("train", "p5en.48xlarge", (node(FIRST, HOSTS[0]), node(SECOND, HOSTS[1])))
ENTRANCE = node(HEAD, "ip-10-64-0-1", "controller")
NAMED = [SlurmNode(host, host, "train", "idle", "") for host in HOSTS]
MARK = f"run=fabric algo=ring nodes={','.join(HOSTS)} mnnvl=0"


def log(**changes: Any) -> str:
    hosts = "".join(map(host_report, HOSTS))
    return hosts + nccl_logs.Log(hosts=HOSTS, mark=MARK, **changes).text()


class Slurm:
    """Slurm's commands on the head node; the job leaves the log that it is given."""

    def __init__(self, folder: Path) -> None:
        self.environment: Environment = load(ROOT / "environments/prod.yaml").environment
        self.machines = Machines(folder / "machines")
        self.account = account("us-east-2")
        self.ssm: Ssm = self.machines.serve_ssm(self.account)
        self.time = Time()
        self.said: list[str] = []
        self.log(log())
        self.machines.program(
            "sbatch",
            'printf "%s\\n" "$@" >"$MACHINES/sbatch"; cat >"$MACHINES/script"\n'
            'for word in "$@"; do\n'
            "  case $word in --export=*) folder=${word#*ACCEPTANCE_OUTPUT=} ;; esac\n"
            "done\n"
            "folder=${folder%%,*}; mkdir -p $folder; cp $MACHINES/fabric.log $folder/\n"
            "echo out >$folder.out\n"
            'echo "4711;prod"',
        )
        self.states("PENDING|Resources", "RUNNING|None", "")
        self.machines.program("scancel", 'echo "$@" >>"$MACHINES/scancel"')

    def log(self, text: str) -> None:
        (self.machines.folder / "fabric.log").write_text(text)

    def states(self, *states: str) -> None:
        """What squeue says, look by look; the last one for ever."""
        file = self.machines.folder / "states"
        file.write_text("\n".join(states) + "\n")
        self.machines.program(
            "squeue",
            'head -n 1 "$MACHINES/states"\n'
            '[ $(wc -l <"$MACHINES/states") = 1 ] || sed -i 1d "$MACHINES/states"',
        )

    def run(self, **changes: Any) -> Smoke:
        clock = Clock(self.time.sleep, self.time.clock)
        shell = RunCommand(self.account, sleep=lambda seconds: None, clock=self.time.clock)
        asked: dict[str, Any] = {"entrance": ENTRANCE, "slurm_nodes": NAMED, **changes}
        return run_on_slurm(
            resolve(self.environment), PAIR, shell=shell, clock=clock, say=self.said.append, **asked
        )

    @property
    def words(self) -> list[str]:
        return (self.machines.folder / "sbatch").read_text().split()

    @property
    def cancelled(self) -> bool:
        file = self.machines.folder / "scancel"
        return file.exists() and f"--name={self.name}" in file.read_text()

    @property
    def name(self) -> str:
        return next(word for word in self.words if word.startswith("--job-name=")).partition("=")[2]

    @property
    def left(self) -> list[str]:
        return sorted(file.name for file in Path("/var/tmp").glob(f"{self.name}*"))  # noqa: S108


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    made = Slurm(tmp_path)
    yield made

    for file in Path("/var/tmp").glob(f"{made.name}*") if (made.machines.folder / "sbatch").exists() else ():  # noqa: S108
        shutil.rmtree(file) if file.is_dir() else file.unlink()


def test_right_results_over_efa_pass_and_leave_nothing(slurm: Slurm) -> None:
    found = slurm.run()
    assert found.verdict == "pass", found
    assert found.reason.startswith("right results, over EFA; measured, not judged: two nodes")
    assert found.report and found.report.verdict == "not judged", (
        "a bandwidth of two nodes is indicative only"
    )
    assert f"--nodelist={','.join(HOSTS)}" in slurm.words and "--partition=train" in slurm.words
    script = (slurm.machines.folder / "script").read_text()
    assert script == slurm_script(instance_types()["p5en.48xlarge"])
    assert len(script) > PART, "sent in parts"
    assert slurm.said == ["job 4711: PENDING, Resources", "job 4711: RUNNING, None"]
    assert not slurm.left and not slurm.cancelled


def test_logs_longer_than_one_answer_come_whole(slurm: Slurm) -> None:
    source = random.Random(7)  # noqa: S311
    noise = "\n".join(source.randbytes(40).hex() for _ in range(2_000))
    slurm.log(log() + noise)
    assert slurm.run().verdict == "pass"
    assert sum(ids == [FIRST] for ids in slurm.ssm.sent) > 5


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({"network": "Socket", "channel": "NET/Socket/{nic}"}, "fail", "fell back to TCP sockets"),
        ({"wrong": {1 << 30: 3}}, "fail", "wrong values"),
        ({"finished": False}, "fail", "status 1"),
        (
            {"provider": "Selected provider is efa, fabric is efa-direct (found 15 nics)"},
            "fail",
            "15 EFA interfaces found, expected 16",
        ),
        ({"debug": False}, "not judged", ""),
    ],
)
def test_what_is_not_right_never_passes(
    slurm: Slurm, changes: dict[str, Any], verdict: str, reason: str
) -> None:
    slurm.log(log(**changes))
    found = slurm.run()
    assert found.verdict == verdict and reason in found.reason, found.reason
    assert found.logs == f"/var/tmp/{slurm.name} on {FIRST}" and slurm.left, "the logs are kept"  # noqa: S108


def test_without_reports_of_the_hosts_nothing_passes(slurm: Slurm) -> None:
    slurm.log(nccl_logs.Log(hosts=HOSTS, mark=MARK).text())
    found = slurm.run()
    assert found.verdict == "not judged" and "no reports of verify/fabric.sh" in found.reason


def test_a_refused_job_is_not_judged_and_says_how(slurm: Slurm) -> None:
    slurm.machines.program(
        "sbatch", "echo sbatch: error: Invalid account or account/partition combination; exit 1"
    )
    found = slurm.run()
    assert found.verdict == "not judged" and "Invalid account" in found.reason
    assert (
        "ultracluster connect prod" in found.command
        and "--partition=train nccl_tests.sbatch" in found.command
    )
    assert "--type p5en.48xlarge --nodes 2" in found.command


def test_a_job_that_never_starts_is_cancelled(slurm: Slurm) -> None:
    slurm.states("PENDING|Nodes required for job are DOWN")
    found = slurm.run()
    assert (
        found.verdict == "not judged"
        and "has not ended in 30 minutes (PENDING: Nodes required" in found.reason
    )
    assert slurm.time.now == LIMIT and slurm.cancelled and not slurm.left


def test_slurm_that_was_not_asked_is_not_judged(slurm: Slurm) -> None:
    for changes in ({"entrance": None}, {"slurm_nodes": NAMED[:1]}):
        found = slurm.run(**changes)
        assert found.verdict == "not judged" and found.command and not slurm.ssm.sent


def test_an_interrupt_leaves_nothing(slurm: Slurm) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    slurm.time.at[30.0] = stop
    with pytest.raises(KeyboardInterrupt):
        slurm.run()
    assert slurm.cancelled and not slurm.left


def test_a_channel_that_breaks_is_not_judged(slurm: Slurm) -> None:
    def breaks() -> None:
        slurm.ssm.refused["SendCommand"] = refusal("ExpiredTokenException")

    slurm.time.at[15.0] = breaks
    found = slurm.run()
    assert found.verdict == "not judged" and "credentials have expired" in found.reason


def look(*groups: tuple[str, list[Node], str]) -> Look:
    return Look(
        tuple(
            GroupSeen(name, len(nodes), tuple(NodeSeen(one.id, name, state) for one in nodes))  # type: ignore[arg-type]
            for name, nodes, state in groups
        )
    )


def test_two_ready_nodes_of_each_group_with_a_fabric() -> None:
    environment = load(ROOT / "environments/prod.yaml").environment
    trio = [node(f"i-{number}", f"ip-10-64-0-{number}") for number in (13, 12, 11)]
    one = [Node("i-20", "few", "running", "p5.48xlarge")]
    trainium = [Node(f"i-3{number}", "trn", "running", "trn2.48xlarge") for number in range(2)]
    plain = [Node(f"i-4{number}", "login", "running", "m5.2xlarge") for number in range(2)]
    late = [Node(f"i-5{number}", "late", "running", "p5.48xlarge") for number in range(2)]
    gb200 = [Node(f"i-6{number}", "ultra", "running", "p6e-gb200.36xlarge") for number in range(2)]
    seen = look(
        ("train", trio, "ready"), ("few", one, "ready"), ("trn", trainium, "degraded"),
        ("login", plain, "ready"), ("late", late, "starting"), ("ultra", gb200, "ready"),
    )  # fmt: skip
    found, left_out = pairs(resolve(environment), seen, [*trio, *one, *trainium, *plain, *late, *gb200])
    assert [(pair.group, [member.id for member in pair.nodes]) for pair in found] == [
        ("train", ["i-11", "i-12"]), ("ultra", ["i-60", "i-61"]),
    ]  # fmt: skip
    assert {(skipped.group, skipped.verdict) for skipped in left_out} == {
        ("few", "not applicable"), ("trn", "not applicable"),
    }  # fmt: skip


JOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


class Cluster:
    """A Kubernetes cluster with the MPI operator; the launcher's log is what it is given."""

    def __init__(self, api: Api, text: str, *states: str) -> None:
        self.api, self.states = api, list(states)
        self.time = Time()
        api.objects["POST", JOBS] = (201, self._created)
        api.objects["POST", MAPS] = (201, self._created_map)
        api.objects["GET", PODS] = (200, {"items": [{"metadata": {"name": "launcher-x"}}]})
        api.objects["GET", f"{PODS}/launcher-x/log"] = (200, text.encode())

    def _created_map(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.api.objects["DELETE", f"{MAPS}/{body['metadata']['name']}"] = (200, {})
        return body

    def _created(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.name = body["metadata"]["name"]
        self.api.objects["GET", f"{JOBS}/{self.name}"] = (200, self._job)
        self.api.objects["DELETE", f"{JOBS}/{self.name}"] = (200, {})
        return body

    def _job(self, path: str, body: None) -> dict[str, Any]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {"status": {"conditions": [{"type": state, "status": "True"}]}}

    def run(self, image: str | None = "example.com/nccl-tests:1") -> Smoke:
        environment = load(ROOT / "environments/eks-p5en.yaml").environment
        clock = Clock(self.time.sleep, self.time.clock)
        opened: Callable[[], Any] = lambda: open_api(self.api)  # noqa: E731
        return run_on_kubernetes(resolve(environment), PAIR, api=opened, image=image, clock=clock)

    @property
    def deleted(self) -> bool:
        return any(method == "DELETE" and f"{JOBS}/{self.name}" in path for method, path, _ in self.api.asked)


def test_kubernetes_runs_judges_and_removes_the_job(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        cluster = Cluster(api, log(), "Created", "Running", "Succeeded")
        found = cluster.run()
        assert found.verdict == "pass" and cluster.deleted, found
        posted = next(body for method, path, body in api.asked if method == "POST")
        assert posted["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
        assert any(f"{cluster.name}-launcher" in path for _, path, _ in api.asked)


def test_kubernetes_failures_never_pass(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        cluster = Cluster(api, log(network="Socket", channel="NET/Socket/{nic}"), "Failed")
        assert cluster.run().verdict == "fail" and cluster.deleted
        cluster = Cluster(api, log(), "Running")
        found = cluster.run()
        assert found.verdict == "not judged" and "has not ended" in found.reason and cluster.deleted
        api.objects.pop(("POST", JOBS))
        found = cluster.run()
        assert found.verdict == "not judged" and "`orchestrator.mpi_operator: true`" in found.reason
        found = cluster.run(image=None)
        assert found.verdict == "not judged" and "--image" in found.reason
        assert "acceptance --job --type p5en.48xlarge --nodes 2 --image IMAGE | kubectl" in found.command


def test_kubernetes_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with serving(tmp_path) as api:
        cluster = Cluster(api, log(), "Running")
        cluster.time.at[15.0] = stop
        with pytest.raises(KeyboardInterrupt):
            cluster.run()
        assert cluster.deleted
