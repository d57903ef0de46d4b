"""`ultracluster job`: one job for each scheduler, before what will read it; and what is refused."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from crd_fields import problems
from project import ROOT
from ruamel.yaml import YAML
from rules_support import changed, environment_data
from typer.testing import CliRunner, Result

from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.cli.main import app
from ultracluster.config.source import read

pytestmark = pytest.mark.slow

IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/trainer:1"
TEAMS: dict[str, Any] = {"research": {"quota": 16, "limit": 24}, "product": {"quota": 8}}
GOVERN = {"orchestrator.task_governance": True, "orchestrator.scheduler": "none"}
GOVERNED = {**GOVERN, "teams": TEAMS}
LAYER = "topology.k8s.aws/network-node-layer-"
NODES = {"kueue": "JobSet", "kai": "JobSet", "volcano": "Job"}


def run(folder: Path, base: str, changes: dict[str, Any], *arguments: str) -> Result:
    file = folder / "cluster.yaml"
    with file.open("w") as stream:
        YAML().dump(changed(environment_data(base), changes), stream)
    return CliRunner().invoke(app, ["job", "write", str(file), *arguments])


def objects(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    # a YAML 1.1 reader, as kubectl's is
    loader = YAML(typ="safe")
    loader.version = (1, 1)
    return list(loader.load_all(result.stdout))


def one_job(folder: Path, scheduler: str, *more: str, **changes: Any) -> dict[str, Any]:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    asked = ["--team", "research", "--nodes", "3", "--image", IMAGE, *more]
    manifests = objects(
        run(folder, "eks-p5en", {"orchestrator.scheduler": scheduler, "teams": TEAMS, **keys}, *asked)
    )
    return manifests[-1]


def pod(made: dict[str, Any]) -> dict[str, Any]:
    spec = made["spec"]
    if made["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    elif "tasks" in spec:
        spec = spec["tasks"][0]
    return spec["template"]


# --- every scheduler -------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", kubernetes_releases())
@pytest.mark.parametrize("scheduler", NODES)
def test_what_reads_the_job_takes_it(scheduler: str, release: str, tmp_path: Path) -> None:
    queue = one_job(tmp_path, scheduler)

    assert problems(queue, kubernetes=release) == []
    assert queue["kind"] == NODES[scheduler]
    assert queue["metadata"]["namespace"] == "research"


@pytest.mark.parametrize("scheduler", NODES)
def test_a_wrong_field_of_its_pods_is_found(scheduler: str, tmp_path: Path) -> None:
    queue = one_job(tmp_path, scheduler)
    pod(queue)["spec"]["tolerationz"] = []

    assert problems(queue)


@pytest.mark.parametrize("scheduler", NODES)
def test_a_pod_has_its_node_to_itself_with_fabric_and_files(scheduler: str, tmp_path: Path) -> None:
    spec = pod(one_job(tmp_path, scheduler))["spec"]
    (container,) = spec["containers"]
    resources = container["resources"]

    assert resources["limits"] == resources["requests"]
    assert {key: resources["limits"][key] for key in ("nvidia.com/gpu", "vpc.amazonaws.com/efa")} == {
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "16",
    }
    assert resources["limits"]["hugepages-2Mi"] == "5120Mi"
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "shared-memory": "/dev/shm",  # noqa: S108
        "lustre": "/fsx",
        "home": "/home",
    }
    claims = [
        volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"] if "emptyDir" not in volume
    ]
    assert claims == ["lustre", "home"]
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["nodeSelector"] == {"ultracluster/node-group": "train"}


def test_a_pod_has_folders_of_s3(tmp_path: Path) -> None:
    volumes = {"orchestrator.mountpoint_s3": {"datasets": {"bucket": "example-datasets"}}}
    (made,) = objects(run(tmp_path, "eks-p5en", volumes, "--nodes", "2", "--image", IMAGE))

    spec = pod(made)["spec"]
    assert {"name": "s3-datasets", "mountPath": "/s3/datasets"} in spec["containers"][0]["volumeMounts"]
    claim = {"claimName": "s3-datasets"}
    assert {"name": "s3-datasets", "persistentVolumeClaim": claim} in spec["volumes"]


@pytest.mark.parametrize(
    ("base", "group", "interfaces"),
    [("hyperpod-eks-p5", "train", "32"), ("eks-p5en", "train", "16")],
)
def test_efa_interfaces_are_those_of_the_type(base: str, group: str, interfaces: str, tmp_path: Path) -> None:
    (made,) = objects(run(tmp_path, base, {}, "--nodes", "2", "--image", IMAGE, "--group", group))

    assert pod(made)["spec"]["containers"][0]["resources"]["limits"]["vpc.amazonaws.com/efa"] == interfaces
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "everyone"
    assert made["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("scheduler", "rank", "master"),
    [
        ("kueue", "JOB_COMPLETION_INDEX", "train-node-0-0.train"),
        ("kai", "JOB_COMPLETION_INDEX", "train-node-0-0.train"),
        ("volcano", "VC_TASK_INDEX", "train-node-0.train"),
    ],
)
def test_torchrun_knows_its_rank_and_where_the_first_node_is(
    scheduler: str, rank: str, master: str, tmp_path: Path
) -> None:
    (container,) = pod(one_job(tmp_path, scheduler))["spec"]["containers"]

    assert container["command"] == ["torchrun"]
    assert container["args"] == [
        "--nnodes=3",
        "--nproc-per-node=8",
        f"--node-rank=$({rank})",
        f"--master-addr={master}",
        "--master-port=29500",
        "/fsx/train.py",
    ]


def test_each_scheduler_starts_all_pods_or_none(tmp_path: Path) -> None:
    volcano = one_job(tmp_path, "volcano")["spec"]
    assert volcano["minAvailable"] == volcano["tasks"][0]["replicas"] == 3
    assert (volcano["schedulerName"], volcano["queue"]) == ("volcano", "research")

    for scheduler in ("kueue", "kai"):
        spec = one_job(tmp_path, scheduler)["spec"]["replicatedJobs"][0]["template"]["spec"]
        assert (spec["parallelism"], spec["completions"], spec["completionMode"]) == (3, 3, "Indexed")
    assert one_job(tmp_path, "kueue")["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "research",
        "kueue.x-k8s.io/priority-class": "normal",
    }
    kai = one_job(tmp_path, "kai")
    assert kai["metadata"]["labels"]["kai.scheduler/queue"] == "research"
    assert pod(kai)["spec"]["schedulerName"] == "kai-scheduler"


@pytest.mark.parametrize("within", [None, "layer-2"])
def test_jobs_are_close_to_each_other(within: str | None, tmp_path: Path) -> None:
    more = ["--within", within] if within else []
    level = f"{LAYER}{'2' if within else '3'}"
    word = "required" if within else "preferred"

    kueue = pod(one_job(tmp_path, "kueue", *more))["metadata"]["annotations"]
    assert kueue == {f"kueue.x-k8s.io/podset-{word}-topology": level}
    kai = one_job(tmp_path, "kai", *more)["metadata"]["annotations"]
    assert kai == {"kai.scheduler/topology": "network", f"kai.scheduler/topology-{word}-placement": level}
    volcano = one_job(tmp_path, "volcano", *more)["spec"]["networkTopology"]
    assert volcano == ({"mode": "hard", "highestTierAllowed": 2} if within else {"mode": "soft"})


def test_another_scheduler_can_be_looked_at(tmp_path: Path) -> None:
    assert one_job(tmp_path, "kueue", "--scheduler", "volcano")["apiVersion"] == "batch.volcano.sh/v1alpha1"


@pytest.mark.parametrize("release", kubernetes_releases())
def test_task_governance_gets_kubernetes_own_job(release: str, tmp_path: Path) -> None:
    asked = ["--team", "research", "--nodes", "2", "--image", IMAGE, "--priority", "high"]
    service, made = objects(run(tmp_path, "hyperpod-eks-p5", GOVERNED, *asked))

    assert problems(service, kubernetes=release) == problems(made, kubernetes=release) == []
    assert made["metadata"]["namespace"] == service["metadata"]["namespace"] == "hyperpod-ns-research"
    assert made["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "hyperpod-ns-research-localqueue",
        "kueue.x-k8s.io/priority-class": "high-priority",
    }
    template = pod(made)
    assert template["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert "--master-addr=train-0.train" in template["spec"]["containers"][0]["args"]


def test_neuron_devices_are_asked_for_by_their_own_name(tmp_path: Path) -> None:
    (made,) = objects(run(tmp_path, "eks-trn2", {}, "--nodes", "2", "--image", IMAGE))
    template = pod(made)["spec"]
    (container,) = template["containers"]

    assert container["resources"]["limits"]["aws.amazon.com/neuron"] == "16"
    assert template["tolerations"][0]["key"] == "aws.amazon.com/neuron"
    assert "--nproc-per-node=64" in container["args"]  # two of the eight cores of a device make one
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "FI_PROVIDER": "efa",
        "FI_EFA_USE_DEVICE_RDMA": "1",
    }
    assert problems(made) == []


def test_more_processes_than_logical_cores_have_a_physical_one_each(tmp_path: Path) -> None:
    asked = ["--nodes", "1", "--image", IMAGE, "--processes", "128"]
    (made,) = objects(run(tmp_path, "eks-trn2", {}, *asked))

    (container,) = pod(made)["spec"]["containers"]
    assert {"name": "NEURON_LOGICAL_NC_CONFIG", "value": "1"} in container["env"]


@pytest.mark.parametrize(
    ("base", "scheduler"), [("eks-trn2", "kueue"), ("hyperpod-eks-p5", "task-governance")]
)
def test_jobs_on_neuron_devices_pass_the_extension(tmp_path: Path, base: str, scheduler: str) -> None:
    changes: dict[str, Any] = {"orchestrator.neuron_scheduler": True}
    asked = ["--nodes", "1", "--image", IMAGE]
    if scheduler == "task-governance":
        changes |= {
            **GOVERN,
            "teams": {"a": {"quota": 16}},
            "node_groups.train.instance_type": "trn2.48xlarge",
        }
        asked += ["--team", "a"]

    made = objects(run(tmp_path, base, changes, *asked))[-1]

    assert pod(made)["spec"]["schedulerName"] == "my-scheduler"
    assert problems(made) == []


def test_a_job_stays_in_one_trn2_ultraserver(tmp_path: Path) -> None:
    changes = {"node_groups.trn2.instance_type": "trn2u.48xlarge"}
    done = run(tmp_path, "eks-trn2", changes, "--nodes", "4", "--image", IMAGE, "--within", "ultraserver")

    (made,) = objects(done)
    assert pod(made)["metadata"]["annotations"] == {
        "kueue.x-k8s.io/podset-required-topology": "neuron.amazonaws.com/ultraserver-server-id-4"
    }
    assert "NEURON_RT_ULTRASERVER_MODE" in done.stderr


def test_a_user_that_the_image_does_not_choose_is_told(tmp_path: Path) -> None:
    asked = ["--nodes", "1", "--image", IMAGE]
    own = {"teams": {"research": {"uid": 2001}}}

    told = run(tmp_path, "eks-p5en", {"teams": TEAMS}, "--team", "research", *asked).stderr
    assert "runs as user 1000 (`research` is restricted: no root)" in told
    assert (
        "user 2001 (teams.research.uid)"
        in run(tmp_path, "eks-p5en", own, "--team", "research", *asked).stderr
    )
    assert run(tmp_path, "eks-p5en", {}, *asked).stderr == ""


# --- refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "changes", "arguments", "why"),
    [
        ("eks-p5en", {"teams": TEAMS}, "--nodes 1 --image x", "has teams: pass --team (research, product)."),
        ("eks-p5en", {"teams": TEAMS}, "--nodes 1 --image x --team reserch", "--team research"),
        ("eks-p5en", {"teams": TEAMS}, "--nodes 4 --image x --team research", "--nodes 3"),
        (
            "eks-p5en",
            {"teams": {"a": {"quota": {"train": 16}, "limit": {"train": 16}}}},
            "--nodes 3 --image x --team a",
            "--nodes 2",
        ),
        ("eks-p5en", {}, "--nodes 9 --image x", "train has 8"),
        ("eks-p5en", {}, "--nodes 1", "needs an image"),
        ("eks-p5en", {}, "--nodes 1 --image x --group nope", "one of train"),
        ("eks-p5en", {}, "--nodes 1 --image x --name Train", "characters"),
        ("eks-p5en", {}, "--nodes 1 --image 'x y'", "characters"),
        ("eks-p5en", {}, "--nodes 1 --image x --within ultraserver", "layer-1, layer-2, layer-3"),
        (
            "eks-p5en",
            {"orchestrator.scheduler": "volcano"},
            "--nodes 1 --image x --within ultraserver",
            "layer-1, layer-2, layer-3",
        ),
        ("eks-p5en", {"orchestrator.scheduler": "none"}, "--nodes 1 --image x", "at once"),
        ("eks-p5en", {"orchestrator.jobset": False}, "--nodes 1 --image x", "orchestrator.jobset is off"),
        ("eks-p5en", {"teams": {"a": {"quota": 65}}}, "--nodes 1 --image x", "TEA002"),
        ("eks-p5en", {"node_groups.train.instance_type": "c5.large"}, "--nodes 1 --image x", "accelerators"),
        ("eks-trn2", {}, "--nodes 1 --image x --processes 129", "Use at most: --processes 128"),
        ("eks-trn2", {}, "--nodes 1 --image x --within ultraserver", "layer-1, layer-2, layer-3"),
        (
            "eks-p5en",
            {"node_groups.train.gpu_time_slices": 4},
            "--nodes 1 --image x --group train",
            "requires whole ones",
        ),
        ("hyperpod-eks-p5", GOVERN, "--nodes 1 --image x", "`teams`"),
        (
            "wishes/restricted-groups",
            {},
            "--nodes 1 --image x",
            "tune is restricted: only AWS's own images run there",
        ),
        ("prod", {}, "--nodes 1 --scheduler kueue", "this is hyperpod-slurm"),
        ("prod", {}, "--nodes 1 --within layer-1", "Slurm knows switches"),
    ],
)
def test_what_cannot_run_is_refused(
    base: str, changes: dict[str, Any], arguments: str, why: str, tmp_path: Path
) -> None:
    result = run(tmp_path, base, changes, *shlex.split(arguments))

    assert result.exit_code == 2, result.stdout
    assert result.stdout == ""
    assert why in result.stderr


# --- the page --------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "kubernetes.md").read_text() if (ROOT / "docs" / "kubernetes.md").exists() else ""
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith(
        (
            "ultracluster job",
            "ultracluster export task-governance",
            "ultracluster export team-namespaces",
        )
    )
]


def test_the_page_shows_every_scheduler() -> None:
    shown = " ".join(COMMANDS)

    assert len(COMMANDS) >= 6
    for word in ("--scheduler volcano", "--scheduler kai", "slurm-teams", "task-governance"):
        assert word in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the environments that the page makes: the shipped ones, with its teams.

    Each is alone in its folder: beside the one that it extends it would be a copy (CPY001, CPY002).
    """
    blocks = re.findall(r"```yaml\n(# environments/(\S+)\n.*?)```", PAGE, re.DOTALL)
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    for file in (ROOT / "environments").glob("*.yaml"):
        (drafts / file.name).write_text(file.read_text())
    for text, name in blocks:
        (drafts / name).write_text(text)
    words = shlex.split(command.partition("|")[0].partition(">")[0])
    name = f"{words[3]}.yaml"
    (tmp_path / "environments").mkdir()
    with (tmp_path / "environments" / name).open("w") as stream:
        YAML().dump(read(drafts / name).data, stream)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, words[1:])

    assert result.exit_code == 0, result.stderr
    if not result.stdout.startswith("#!"):
        for one in YAML(typ="safe").load_all(result.stdout):
            assert problems(one) == []
    else:
        subprocess.run(["bash", "-n"], input=result.stdout, text=True, check=True)


def test_namespaces_that_hyperpod_makes_are_kept_apart_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(json.dumps(changed(environment_data("hyperpod-eks-p5"), GOVERNED)))
    manifests = objects(CliRunner().invoke(app, ["export", "team-namespaces", str(file)]))

    assert [found for one in manifests for found in problems(one, kubernetes="1.36")] == []
    spaces = {"hyperpod-ns-research", "hyperpod-ns-product"}
    for kind in ("NetworkPolicy", "ResourceQuota", "LimitRange", "ServiceAccount", "RoleBinding"):
        assert {one["metadata"]["namespace"] for one in manifests if one["kind"] == kind} == spaces
    namespaces = {one["metadata"]["name"]: one for one in manifests if one["kind"] == "Namespace"}
    assert set(namespaces) == spaces


@pytest.mark.parametrize(
    ("what", "base", "changes", "why"),
    [
        ("slurm-accounts", "eks-p5en", {}, "has no Slurm"),
        ("slurm-accounts", "prod", {}, "no `teams`"),
        ("task-governance", "eks-p5en", {}, "task_governance: true"),
        ("task-governance", "hyperpod-eks-p5", GOVERN, "no `teams`"),
        ("team-namespaces", "hyperpod-eks-p5", GOVERN, "no teams"),
        ("team-namespaces", "prod", {}, "no teams"),
    ],
)
def test_there_is_not_always_something_to_export(
    what: str, base: str, changes: dict[str, Any], why: str, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(json.dumps(changed(environment_data(base), changes)))
    result = CliRunner().invoke(app, ["export", what, str(file)])

    assert result.exit_code == 2
    assert why in result.stderr


@pytest.mark.parametrize("scheduler", NODES)
def test_pods_tell_their_metrics_where_they_are_collected(scheduler: str, tmp_path: Path) -> None:
    without = pod(one_job(tmp_path, scheduler))
    queue = one_job(tmp_path, scheduler, observability={"kind": "prometheus"})
    told = pod(queue)
    assert problems(queue) == []
    variables = {one["name"]: one["value"] for one in told["spec"]["containers"][0]["env"]}
    assert variables["ULTRACLUSTER_METRICS_PORT"] == told["metadata"]["annotations"]["prometheus.io/port"]
    assert variables["ULTRACLUSTER_ACCELERATOR"] == "h200"
    assert variables["ULTRACLUSTER_JOB_ID"] == queue["metadata"]["name"]
    assert told["metadata"]["annotations"]["prometheus.io/scrape"] == "true"
    kept = without.get("metadata", {}).get("annotations", {})
    assert kept.items() <= told["metadata"]["annotations"].items()
    assert "prometheus.io/scrape" not in kept
    names = [one["name"] for one in without["spec"]["containers"][0]["env"]]
    assert not [name for name in names if name.startswith("ULTRACLUSTER_")]
