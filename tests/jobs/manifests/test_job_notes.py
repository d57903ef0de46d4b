"""Manifests held against the nodes of the cluster: what is said, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import ROOT

from ultracluster.config import load
from ultracluster.jobs.manifests.job_kinds import kind_of
from ultracluster.jobs.manifests.job_notes import EFA, job_notes
from ultracluster.model import resolve

CLUSTER = resolve(load(ROOT / "environments" / "hyperpod-eks-p5.yaml").environment)
KIND = next(
    group.type for group in CLUSTER.with_role("compute").values() if group.type and group.type.accelerator
)
WHOLE = {"nvidia.com/gpu": 8, EFA: KIND.efa_interfaces, "hugepages-2Mi": "5120Mi", "memory": "1500Gi"}
SHARED = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 - of a pod


def pod(limits: dict[str, Any], **spec: Any) -> dict[str, Any]:
    container = {"name": "w", "image": "a", "resources": {"limits": limits}, "volumeMounts": SHARED}
    return {"spec": {"containers": [container], **spec}}


def job(template: dict[str, Any], pods: int = 2) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "ft"},
        "spec": {"completions": pods, "parallelism": pods, "template": template},
    }


def notes(manifest: dict[str, Any]) -> list[str]:
    kind = kind_of(manifest)
    assert kind
    return job_notes(CLUSTER, kind, json.loads(json.dumps(manifest)))


def of_kind(name: str, template: dict[str, Any]) -> dict[str, Any]:
    """Two pods of each kind of job."""
    replica = {"replicas": 2, "template": template}
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "JobSet": (
            "jobset.x-k8s.io/v1alpha2",
            {"replicatedJobs": [{"name": "a", "replicas": 2, "template": {"spec": {"template": template}}}]},
        ),
        "PyTorchJob": (
            "kubeflow.org/v1",
            {
                "pytorchReplicaSpecs": {
                    "Master": {**replica, "replicas": 1},
                    "Worker": {**replica, "replicas": 1},
                }
            },
        ),
        "MPIJob": ("kubeflow.org/v2beta1", {"mpiReplicaSpecs": {"Worker": replica}}),
        "Job": ("batch.volcano.sh/v1alpha1", {"tasks": [replica]}),
        "HyperPodPyTorchJob": ("sagemaker.amazonaws.com/v1", {"replicaSpecs": [replica]}),
    }
    version, spec = kinds[name]
    return {"apiVersion": version, "kind": name, "metadata": {"name": "a"}, "spec": spec}


def ray_job(head: dict[str, Any], workers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    cluster = {
        "rayVersion": "2.52.0",
        "authOptions": {"mode": "token"},
        "headGroupSpec": {"template": head},
        "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "template": workers}],
        **spec.pop("rayClusterSpec", {}),
    }
    rest = {"shutdownAfterJobFinishes": True, "rayClusterSpec": cluster, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "a"}, "spec": rest}


def without(template: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Without what `keys` name of its container."""
    for container in template["spec"]["containers"]:
        for key in keys:
            del container[key]
    return template


HEAD = pod({"cpu": 8, "memory": "64Gi"})


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (ray_job(HEAD, pod({**WHOLE, EFA: 0})), "none of its"),
        (ray_job(pod({**WHOLE, "hugepages-2Mi": 0}), pod(WHOLE)), "hugepages-2Mi: 5120Mi"),
        (ray_job(HEAD, pod({**WHOLE, "memory": "8Gi"})), "memory: 8 GiB of a node"),
        (ray_job(pod({"cpu": 8}), pod(WHOLE)), "head: without a limit of memory Ray takes"),
        (ray_job(HEAD, without(pod(WHOLE), "resources")), "workers w: without a limit of memory"),
        (ray_job(HEAD, pod(WHOLE), shutdownAfterJobFinishes=False), "`shutdownAfterJobFinishes: true`"),
        (ray_job(HEAD, pod(WHOLE), clusterSelector={"a": "b"}), "clusterSelector: no queue counts"),
        (ray_job(HEAD, pod(WHOLE), rayClusterSpec={"enableInTreeAutoscaling": True}), "Kueue refuses it"),
        (ray_job(HEAD, pod(WHOLE), rayClusterSpec={"authOptions": None}), "authOptions: {mode: token}"),
    ],
)
def test_what_a_rayjob_lacks(manifest: dict[str, Any], says: str) -> None:
    (note,) = notes(manifest)
    assert says in note


def privileged(template: dict[str, Any]) -> dict[str, Any]:
    template["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    return job(template)


def train_job(limits: dict[str, Any] | None, nodes: int = 2, **trainer: Any) -> dict[str, Any]:
    resources = {} if limits is None else {"resourcesPerNode": {"limits": limits}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a"},
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": nodes, **resources, **trainer}},
    }


def said(variables: dict[str, str], command: str = "python train.py") -> dict[str, Any]:
    """A job with variables and a command of the shell."""
    template = pod(WHOLE)
    container = template["spec"]["containers"][0]
    container["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    container |= {"command": ["bash", "-c"], "args": [command]}
    return job(template)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({**WHOLE, EFA: None}, f"none of its {KIND.efa_interfaces} EFA devices"),
        ({**WHOLE, EFA: 1}, "only 1 of its"),
        ({**WHOLE, "hugepages-2Mi": None}, "hugepages-2Mi: 5120Mi"),
        ({**WHOLE, "memory": "8Gi"}, "memory: 8 GiB of a node"),
        ({"nvidia.com/gpu": 16}, "no node has more than 8"),
    ],
)
def test_what_pods_lack(limits: dict[str, Any], says: str) -> None:
    (note,) = notes(job(pod({key: one for key, one in limits.items() if one is not None})))
    assert says in note


@pytest.mark.parametrize("name", ["JobSet", "PyTorchJob", "MPIJob", "HyperPodPyTorchJob", "Job"])
def test_each_kind_with_several_pods(name: str) -> None:
    assert notes(of_kind(name, pod(WHOLE))) == []
    assert "EFA devices" in notes(of_kind(name, pod({**WHOLE, EFA: 0})))[0]


def test_the_network_of_the_node_alone_has_no_devices() -> None:
    """A pod in it that is not privileged, and does not mount the folder of devices, opens none of them."""
    assert "EFA devices" in notes(job(pod({**WHOLE, EFA: 0}, hostNetwork=True)))[0]
    assert notes(privileged(pod({**WHOLE, EFA: 0}))) == []


def test_a_train_job_is_read_by_what_it_writes_over_its_runtime() -> None:
    assert "EFA devices" in notes(train_job({**WHOLE, EFA: 0}))[0]
    assert "memory: 8 GiB" in notes(train_job({**WHOLE, "memory": "8Gi"}))[0]
    env = [{"name": "NCCL_ALGO", "value": "Ring"}]
    (note,) = notes(train_job(WHOLE, env=env))
    assert note.startswith("container trainer: NCCL_ALGO is better left out: NCCL and its EFA plugin choose")


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (said({"FI_EFA_USE_DEVICE_RDMA": "1"}), "container w: FI_EFA_USE_DEVICE_RDMA is better left out"),
        (said({"NCCL_SOCKET_IFNAME": "eth0"}), "NCCL_SOCKET_IFNAME is better left out"),
        (said({}, "export NCCL_PROTO=simple\npython train.py"), "container w: NCCL_PROTO is better left out"),
        (said({}, "torchrun \\  # sizes\n  train.py"), "something stands after the `\\`"),
    ],
)
def test_what_containers_say(manifest: dict[str, Any], says: str) -> None:
    (note,) = notes(manifest)
    assert says in note


def test_shared_memory() -> None:
    template = pod(WHOLE)
    template["spec"]["containers"][0]["volumeMounts"] = []
    assert "64 MiB" in notes(job(template))[0]


def test_more_pods_than_nodes() -> None:
    most = sum(group.most_nodes for group in CLUSTER.with_role("compute").values() if group.type == KIND)
    assert f"have {most} at most" in notes(job(pod(WHOLE), most + 1))[0]


@pytest.mark.parametrize(
    "manifest",
    [
        job(pod({**WHOLE, EFA: 0}), 1),
        privileged(pod({**WHOLE, EFA: 0}, hostNetwork=True)),
        job(
            pod(
                {**WHOLE, EFA: 0},
                hostNetwork=True,
                volumes=[{"name": "efa", "hostPath": {"path": "/dev/infiniband"}}],
            )
        ),
        ray_job(HEAD, without(pod(WHOLE), "volumeMounts")),  # KubeRay mounts memory at /dev/shm
        train_job(WHOLE),
        train_job({**WHOLE, EFA: 0}, nodes=1),
        train_job(None),
        said({"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "^docker,lo,veth"}),
        said({}, "echo 'a \\ b'"),
        job(pod({**WHOLE, EFA: 0}, resourceClaims=[{"name": "efa"}])),
        job(pod({"nvidia.com/gpu": 1, "memory": "8Gi"})),
        job(pod({"cpu": 4})),
        job({"spec": {"containers": "many"}}),
        job({"spec": "none"}),
    ],
)
def test_nothing_is_said_of_what_works_or_cannot_be_read(manifest: dict[str, Any]) -> None:
    assert notes(manifest) == []
