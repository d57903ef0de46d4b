"""Jobs of HyperPod's training operator: what reads them takes them, and what is refused."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from kubernetes_support import environment
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.kubernetes.isolation import elastic_quota, job_namespace, network_policies
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve

pytestmark = pytest.mark.slow

BASE = "hyperpod-eks-p5"
IMAGE = "--image registry/trainer:1"
KIND, PERCENT = "orchestrator.resilience", "orchestrator.tiered_checkpoints_percent"
BOTH = {KIND: ["checkpointless", "elastic"]}
GOVERNED = {
    "orchestrator.task_governance": True,
    "orchestrator.scheduler": "none",
    "teams": {"research": {"quota": 16}},
}
SPOT = {
    "node_groups.train.capacity": {"kind": "spot"},
    "node_groups.train.deep_health_checks": [],
    "node_groups.train.min_count": ...,
}
ASKED = {
    "restart": "--nodes 4 --resilience restart",
    "checkpointless": "--nodes 3 --spares 1 --resilience checkpointless",
    "elastic": "--nodes 1 --most-nodes 4 --resilience elastic",
    "sizes": "--nodes 1 --sizes 4,1,2 --resilience elastic",
}


def run(folder: Path, arguments: str, changes: dict[str, Any] | None = None, base: str = BASE) -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), BOTH if changes is None else changes), stream)
    return CliRunner().invoke(app, ["job", "write", str(file), *shlex.split(f"{IMAGE} {arguments}")])


def made(folder: Path, arguments: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    result = run(folder, arguments, changes)
    assert result.exit_code == 0, result.stderr
    return YAML(typ="safe").load(result.stdout)


def container(found: dict[str, Any]) -> dict[str, Any]:
    (replica,) = found["spec"]["replicaSpecs"]
    (one,) = replica["template"]["spec"]["containers"]
    return one


def variables(found: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container(found)["env"]}


@pytest.mark.parametrize("release", kubernetes_releases())
@pytest.mark.parametrize("kind", ASKED)
def test_what_reads_the_job_takes_it(kind: str, release: str, tmp_path: Path) -> None:
    found = made(tmp_path, ASKED[kind])

    assert problems(found, kubernetes=release) == []
    assert (found["apiVersion"], found["kind"]) == ("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob")
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "everyone"


@pytest.mark.parametrize(
    ("path", "value"),
    [("runPolicy.cleanPods", "All"), ("runPolicy.cleanPodPolicy", "Some"), ("nprocPerNode", 8)],
)
def test_the_check_can_fail(path: str, value: Any, tmp_path: Path) -> None:
    found = made(tmp_path, ASKED["restart"])
    *parents, last = path.split(".")
    part = found["spec"]
    for parent in parents:
        part = part[parent]
    part[last] = value

    assert problems(found)


def test_the_agent_starts_the_processes(tmp_path: Path) -> None:
    one = container(made(tmp_path, ASKED["restart"]))

    assert one["command"] == ["hyperpodrun"]
    assert one["args"] == [
        "--nproc-per-node=8",
        "--rdzv-backend=hyperpod",
        "--tee=3",
        "--log-dir=/tmp/hyperpod",
        "/fsx/train.py",
    ]
    assert one["ports"] == [{"containerPort": 8080}]  # where the operator asks


# torch 2.7.1, torch/distributed/run.py; hyperpod-elastic-agent 1.1.3, src/hyperpod_elastic_agent/run.py
LAUNCHER = argparse.ArgumentParser(allow_abbrev=False)
for flag in ("--nnodes", "--nproc-per-node", "--rdzv-backend", "--tee", "--log-dir", "--redirects", "--role"):
    LAUNCHER.add_argument(flag, flag.replace("-", "_").replace("__", "--"))
LAUNCHER.add_argument("--inprocess-restart", action="store_true")
for flag in ("--inprocess-timeout", "--server-port", "--shutdown-timeout"):
    LAUNCHER.add_argument(flag, type=int)
LAUNCHER.add_argument("training_script")
LAUNCHER.add_argument("training_script_args", nargs=argparse.REMAINDER)


@pytest.mark.parametrize("kind", ASKED)
def test_the_launcher_takes_its_arguments(kind: str, tmp_path: Path) -> None:
    taken = LAUNCHER.parse_args(container(made(tmp_path, ASKED[kind]))["args"])

    assert (taken.nproc_per_node, taken.rdzv_backend, taken.tee) == ("8", "hyperpod", "3")
    assert taken.inprocess_restart is (kind == "checkpointless")
    assert (taken.training_script, taken.training_script_args) == ("/fsx/train.py", [])


def test_pods_are_the_operators_to_restart(tmp_path: Path) -> None:
    (replica,) = made(tmp_path, ASKED["restart"])["spec"]["replicaSpecs"]

    assert "restartPolicy" not in replica["template"]["spec"]
    assert replica["replicas"] == 4
    assert "spares" not in replica


def test_checkpointless_recovers_in_the_processes_without_a_privilege(tmp_path: Path) -> None:
    found = made(tmp_path, ASKED["checkpointless"])
    (replica,) = found["spec"]["replicaSpecs"]

    assert "--inprocess-restart" in container(found)["args"]
    assert variables(found)["HPCT_USE_ROOTLESS"] == "1"
    assert (replica["replicas"], replica["spares"]) == (3, 1)
    spec = replica["template"]["spec"]
    assert spec["securityContext"]["sysctls"] == [
        {"name": "net.ipv4.ip_local_port_range", "value": "20000 65535"}
    ]
    assert "hostNetwork" not in spec
    assert "privileged" not in container(found)["securityContext"]


def test_elastic_jobs_hear_of_events_and_know_their_bounds(tmp_path: Path) -> None:
    found = made(tmp_path, "--nodes 2 --most-nodes 4 --step 2 --resilience elastic")
    policy, (replica,) = found["spec"]["elasticPolicy"], found["spec"]["replicaSpecs"]

    assert (policy["minReplicas"], policy["maxReplicas"], policy["replicaIncrementStep"]) == (2, 4, 2)
    assert (replica["replicas"], replica["maxReplicas"]) == (2, policy["maxReplicas"])
    assert variables(found)["HYPERPOD_SIGNAL_COORDINATION"] == "distributed"
    assert not [arg for arg in container(found)["args"] if arg.startswith("--nnodes")]


def test_elastic_jobs_may_name_their_sizes(tmp_path: Path) -> None:
    policy = made(tmp_path, ASKED["sizes"])["spec"]["elasticPolicy"]

    assert policy["replicaDiscreteValues"] == [1, 2, 4]
    assert "replicaIncrementStep" not in policy
    assert (policy["minReplicas"], policy["maxReplicas"]) == (1, 4)


def test_a_line_of_each_step_tells_that_the_job_lives(tmp_path: Path) -> None:
    asked = f"{ASKED['restart']} --log-line '.*step=(\\d+).*' --log-seconds 300"
    (rule,) = made(tmp_path, asked)["spec"]["runPolicy"]["logMonitoringConfiguration"]

    assert rule["logPattern"] == r".*step=(\d+).*"
    assert rule["expectedRecurringFrequencyInSeconds"] == 300
    assert rule["expectedStartCutOffInSeconds"] > 300


def test_task_governance_has_its_own_names(tmp_path: Path) -> None:
    found = made(tmp_path, "--nodes 2 --team research --priority high --resilience restart", GOVERNED)

    assert found["metadata"]["namespace"] == "hyperpod-ns-research"
    assert found["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "hyperpod-ns-research-localqueue",
        "kueue.x-k8s.io/priority-class": "high-priority",
    }
    assert problems(found) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (ASKED["restart"], ["hyperpod-elastic-agent"]),
        (ASKED["checkpointless"], ["hyperpod-elastic-agent>=1.1.0", "NVIDIA NeMo"]),
        (ASKED["elastic"], ["hyperpod-elastic-agent>=1.1.0", "elastic_event_detected()"]),
        ("--nodes 1 --checkpoints-to memory", ["amzn-sagemaker-checkpointing", "s3torchconnector"]),
    ],
)
def test_what_the_image_must_have_is_said(arguments: str, said: list[str], tmp_path: Path) -> None:
    told = run(tmp_path, arguments).stderr

    assert all(one in told for one in said), told


REFUSED: list[tuple[str, dict[str, Any] | None, str]] = [
    (ASKED["checkpointless"], {}, "write `checkpointless` to orchestrator.resilience"),
    (ASKED["elastic"], {KIND: ["checkpointless"]}, "write `elastic`"),
    (ASKED["restart"], {"orchestrator.training_operator": False}, "training_operator is off"),
    (ASKED["restart"], {"orchestrator.scheduler": "kai"}, "orchestrator.scheduler is kai"),
    ("--nodes 4 --spares 1 --resilience restart", None, "train has 4 nodes"),
    ("--nodes 1 --most-nodes 5 --resilience elastic", None, "train has 4 nodes"),
    ("--nodes 1 --resilience elastic", None, "needs --most-nodes, or --sizes"),
    ("--nodes 2 --most-nodes 2 --resilience elastic", None, "not more than --nodes 2"),
    ("--nodes 1 --most-nodes 4 --step 2 --resilience elastic", None, "--most-nodes 3"),
    ("--nodes 2 --sizes 1,4 --resilience elastic", None, "--nodes 1"),
    ("--nodes 1 --sizes 1,4 --most-nodes 3 --resilience elastic", None, "--most-nodes 4, or none"),
    ("--nodes 1 --sizes 1;4 --resilience elastic", None, "another form than 2,4,8"),
    ("--nodes 1 --sizes 1,4 --step 3 --resilience elastic", None, "--sizes or --step"),
    ("--nodes 1 --most-nodes 4 --step 8 --resilience elastic", None, "Use at most: --step 3"),
    ("--nodes 1 --step 2 --resilience restart", None, "for --resilience elastic"),
    ("--nodes 1 --step 2", None, "--step is for jobs of HyperPod's training operator"),
    ("--nodes 1 --most-nodes 4 --resilience restart", None, "for --resilience elastic"),
    (f"{ASKED['elastic']} --checkpoints-to memory", None, "leave --checkpoints-to away"),
    (ASKED["elastic"], {**BOTH, **SPOT}, "does not support Spot"),
    ("--nodes 1 --spares 1", None, "--spares is for jobs of HyperPod's training operator"),
    (f"{ASKED['restart']} --log-line '('", None, "is no regular expression"),
    ("--nodes 2 --resilience restart", GOVERNED, "has teams: pass --team (research)"),
    ("--nodes 1 --checkpoints-to memory", {PERCENT: ...}, "tiered_checkpoints_percent"),
    ("--nodes 1 --checkpoints-to s3", None, "needs orchestrator.checkpoint_tier"),
]


@pytest.mark.parametrize(("arguments", "changes", "why"), REFUSED)
def test_what_cannot_run_is_refused(
    arguments: str, changes: dict[str, Any] | None, why: str, tmp_path: Path
) -> None:
    result = run(tmp_path, arguments, changes)

    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr


@pytest.mark.parametrize(
    ("base", "arguments", "why"),
    [
        ("eks-p5en", "--resilience restart", "of HyperPod's training operator, and this is eks"),
        ("prod", "--resilience restart", "for HyperPod on EKS, and this is hyperpod-slurm"),
        ("prod", "--checkpoints-to memory", "for HyperPod on EKS, and this is hyperpod-slurm"),
    ],
)
def test_others_have_no_operator(base: str, arguments: str, why: str, tmp_path: Path) -> None:
    result = run(tmp_path, f"--nodes 1 {arguments}", {}, base=base)

    assert result.exit_code == 2
    assert why in result.stderr


# --- the cluster -----------------------------------------------------------------------------------------


def cluster(**changes: Any) -> Any:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return resolve(environment(keys, base=BASE))


def test_kueue_leaves_the_operators_jobs_to_the_operator() -> None:
    def external(*, operator: bool) -> Any:
        chart = scheduling(cluster(orchestrator__training_operator=operator)).chart
        assert chart
        text = chart.values["managerConfig"]["controllerManagerConfigYaml"]
        return YAML(typ="safe").load(text)["integrations"].get("externalFrameworks")

    # the guide spells the kind in two ways, and Kueue compares letters
    assert set(external(operator=True)) == {
        f"HyperPodPy{letter}orchJob.v1.sagemaker.amazonaws.com" for letter in "tT"
    }
    assert external(operator=False) is None


def test_elastic_jobs_and_karpenter_end_at_the_nodes_that_there_may_be() -> None:
    wish = resolve(load(ROOT / "environments" / "wishes" / "elastic-training.yaml").environment)
    (quota,) = elastic_quota(wish)

    assert problems(quota) == []
    assert quota["metadata"]["namespace"] == job_namespace(wish, None).name
    # Kubernetes counts extended resources by their requests only
    assert quota["spec"]["hard"] == {
        "requests.nvidia.com/gpu": str(8 * 8),
        "requests.vpc.amazonaws.com/efa": str(8 * 32),
    }
    assert elastic_quota(cluster()) == ()


@pytest.mark.parametrize("percent", [20, None])
def test_pods_reach_the_daemon_of_tiered_checkpoints_only_where_it_is(percent: int | None) -> None:
    policies = network_policies(cluster(orchestrator__tiered_checkpoints_percent=percent), "default")
    ports = [
        port["port"]
        for policy in policies
        for rule in policy["spec"].get("egress", [])
        for port in rule.get("ports", [])
    ]

    assert (9200 in ports) is (percent is not None)


# --- the pages -------------------------------------------------------------------------------------------

PAGES = ("checkpointless", "elastic-training", "tiered-checkpoints")
COMMANDS = [
    line
    for page in PAGES
    for block in re.findall(
        r"```bash\n(.*?)```", (ROOT / "docs" / "wishes" / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL
    )
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("ultracluster job")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_pages_run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(re.split(r" [|>] ", command)[0])

    result = CliRunner().invoke(app, words[1:])

    assert result.exit_code == 0, result.stderr
    assert [problem for made in YAML(typ="safe").load_all(result.stdout) for problem in problems(made)] == []


def test_every_page_has_a_command() -> None:
    assert len(COMMANDS) == len(PAGES)
