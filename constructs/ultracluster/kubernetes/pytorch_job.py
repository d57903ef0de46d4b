"""One PyTorch job, gang-scheduled, for each scheduler of Kubernetes.

JobSet (kubernetes-sigs/jobset v0.12.0, `jobset.x-k8s.io/v1alpha2`) for Kueue and KAI, Volcano's own job
(volcano-sh/volcano v1.15.1, `batch.volcano.sh/v1alpha1`) for Volcano, and Kubernetes' own Job for HyperPod's
task governance, which brings no other kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes import kai, kueue
from ultracluster.kubernetes.pod_resources import whole_node
from ultracluster.kubernetes.tolerations import tolerations
from ultracluster.kubernetes.topology import LAYERS, label_of, topology_of
from ultracluster.kubernetes.volcano import TIERS
from ultracluster.model import resolve
from ultracluster.model.team_shares import Pool, namespace_of, scheduler_of

Manifest = dict[str, Any]

PORT = 29500
"""torchrun's own default, where the nodes of a job find each other."""
RESTARTS = 3
"""How often all pods of a job start again when one of them has failed."""
NO_LOCAL = "^docker,lo,veth"
"""Interfaces that NCCL does not open its connections on; the traffic itself goes over EFA."""
_GRACE_SECONDS = 120
"""For a last checkpoint, when the job must go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PyTorchJob:
    """What is asked for."""

    pool: Pool
    nodes: int
    name: str
    script: str
    """Path of the program that torchrun starts."""
    processes: int
    """On a node."""
    image: str | None = None
    team: str | None = None
    priority: str
    within: str | None = None
    """The level of the network that the job must not leave; close to each other by default."""


def pytorch_manifests(environment: Environment, job: PyTorchJob) -> tuple[Manifest, ...]:
    """The objects of a job, in the order in which they are applied.

    Raises:
        ValueError: there is no scheduler for it, or it cannot do what is asked.
    """
    scheduler = scheduler_of(resolve(environment))
    if scheduler == "none":
        raise ValueError("orchestrator.scheduler is `none`: nothing starts all pods of a job at once")
    if not job.image:
        raise ValueError("a pod needs an image: --image, with PyTorch, libfabric and the EFA plugin of NCCL")
    if scheduler == "volcano":
        return (_volcano_job(environment, job),)
    if scheduler == "task-governance":
        return _governed_job(environment, job)
    settings = environment.orchestrator
    assert isinstance(settings, Eks | HyperPodEks)
    if not settings.jobset:
        raise ValueError("the job is a JobSet, and orchestrator.jobset is off")
    return (_kai_jobset(environment, job) if scheduler == "kai" else _kueue_jobset(environment, job),)


def _kueue_jobset(environment: Environment, job: PyTorchJob) -> Manifest:
    labels = {kueue.QUEUE_LABEL: kueue.queue(job.team), kueue.PRIORITY_LABEL: job.priority}
    return _jobset(environment, job, labels=labels, pod_annotations=_kueue_topology(environment, job))


def _kai_jobset(environment: Environment, job: PyTorchJob) -> Manifest:
    kind = topology_of(environment, job.pool)
    annotations: dict[str, str] = {}
    if kind in ("network", "ultraserver") or job.within:
        annotations[kai.TOPOLOGY] = kind
        key = kai.REQUIRED if job.within else kai.PREFERRED
        annotations[key] = label_of(kind, job.within or "layer-3")
    queue = {kai.QUEUE_LABEL: job.team or kai.DEFAULT_QUEUE}
    return _jobset(
        environment,
        job,
        labels={**queue, "priorityClassName": job.priority},
        annotations=annotations,
        pod_labels=queue,
        scheduler_name=kai.SCHEDULER,
    )


def _jobset(
    environment: Environment,
    job: PyTorchJob,
    *,
    labels: dict[str, str],
    annotations: dict[str, str] | None = None,
    pod_labels: dict[str, str] | None = None,
    pod_annotations: dict[str, str] | None = None,
    scheduler_name: str | None = None,
) -> Manifest:
    pod = _pod(
        environment,
        job,
        rank="$(JOB_COMPLETION_INDEX)",
        master=f"{job.name}-node-0-0.{job.name}",
        labels=pod_labels,
        annotations=pod_annotations,
        scheduler_name=scheduler_name,
    )
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(environment, job, labels, annotations),
        "spec": {
            # all pods again, and not the one that failed alone: the others wait for it in a collective
            "failurePolicy": {"maxRestarts": RESTARTS},
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": _job_spec(job, pod)}}],
        },
    }


def _governed_job(environment: Environment, job: PyTorchJob) -> tuple[Manifest, Manifest]:
    """A Job and the service that gives its pods names."""
    if job.team is None:
        raise ValueError("with task governance a job is a team's: give the environment `teams`")
    namespace = namespace_of(resolve(environment), job.team)
    labels = {
        kueue.QUEUE_LABEL: f"{namespace}-localqueue",
        kueue.PRIORITY_LABEL: f"{job.priority}-priority",
    }
    selector = {"ultracluster/job": job.name}
    pod = _pod(
        environment,
        job,
        rank="$(JOB_COMPLETION_INDEX)",
        master=f"{job.name}-0.{job.name}",
        labels=selector,
        annotations=_kueue_topology(environment, job),
    )
    pod["spec"]["subdomain"] = job.name
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": job.name, "namespace": namespace},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector},
    }
    made: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(environment, job, labels),
        "spec": {**_job_spec(job, pod), "suspend": True},  # until its team's queue admits it
    }
    return service, made


def _volcano_job(environment: Environment, job: PyTorchJob) -> Manifest:
    if job.within and job.within not in TIERS:
        raise ValueError(f"there is no level `{job.within}`: one of {', '.join(LAYERS)}")
    topology: Manifest = {"mode": "soft"}
    if job.within:
        topology = {"mode": "hard", "highestTierAllowed": TIERS[job.within]}
    pod = _pod(environment, job, rank="$(VC_TASK_INDEX)", master=f"{job.name}-node-0.{job.name}")
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": _metadata(environment, job, {}),
        "spec": {
            "schedulerName": "volcano",
            "queue": job.team or "default",
            "priorityClassName": job.priority,
            "minAvailable": job.nodes,
            "maxRetry": RESTARTS,
            "networkTopology": topology,
            # ranks, and names of pods
            "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"]},
            "policies": [
                {"event": "PodEvicted", "action": "RestartJob"},
                {"event": "PodFailed", "action": "RestartJob"},
                {"event": "TaskCompleted", "action": "CompleteJob"},
            ],
            "tasks": [{"name": "node", "replicas": job.nodes, "template": pod}],
        },
    }


def _kueue_topology(environment: Environment, job: PyTorchJob) -> dict[str, str]:
    kind = topology_of(environment, job.pool)
    if job.within:
        return {kueue.REQUIRED: label_of(kind, job.within)}
    close = kind in ("network", "ultraserver")
    return {kueue.PREFERRED: label_of(kind, "layer-3")} if close else {}


def _job_spec(job: PyTorchJob, pod: Manifest) -> Manifest:
    return {
        "completionMode": "Indexed",
        "completions": job.nodes,
        "parallelism": job.nodes,
        "backoffLimit": 0,
        "template": pod,
    }


def _metadata(
    environment: Environment,
    job: PyTorchJob,
    labels: dict[str, str],
    annotations: dict[str, str] | None = None,
) -> Manifest:
    namespace = namespace_of(resolve(environment), job.team) if job.team else "default"
    made: Manifest = {"name": job.name, "namespace": namespace}
    if labels:
        made["labels"] = labels
    if annotations:
        made["annotations"] = annotations
    return made


def _pod(
    environment: Environment,
    job: PyTorchJob,
    *,
    rank: str,
    master: str,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    scheduler_name: str | None = None,
) -> Manifest:
    pool = job.pool
    resources = whole_node(pool)
    mounts = [{"name": "shared-memory", "mountPath": "/dev/shm"}]  # noqa: S108 - of the pod alone
    volumes: list[Manifest] = [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]
    for claim, storage in (("lustre", environment.storage.lustre), ("home", environment.storage.openzfs)):
        if storage:
            mounts.append({"name": claim, "mountPath": storage.mount_path})
            volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
    container: Manifest = {
        "name": "trainer",
        "image": job.image,
        "command": ["torchrun"],
        "args": torchrun(job, rank=rank, master=master),
        "resources": {"limits": resources, "requests": resources},
        # EFA pins memory
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": mounts,
    }
    if variables := environment_variables(pool):
        container["env"] = [{"name": key, "value": value} for key, value in variables.items()]
    spec: Manifest = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "nodeSelector": {"ultracluster/node-group": pool.group},
        "tolerations": tolerations(pool),
        "containers": [container],
        "volumes": volumes,
    }
    if scheduler_name:
        spec["schedulerName"] = scheduler_name
    metadata = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {**({"metadata": metadata} if metadata else {}), "spec": spec}


def torchrun(job: PyTorchJob, *, rank: str, master: str) -> list[str]:
    """Arguments of torchrun on one node."""
    return [
        f"--nnodes={job.nodes}",
        f"--nproc-per-node={job.processes}",
        f"--node-rank={rank}",
        f"--master-addr={master}",
        f"--master-port={PORT}",
        job.script,
    ]


def environment_variables(pool: Pool) -> dict[str, str]:
    """Of the processes of a job: few, because libfabric and the EFA plugin know the types themselves."""
    if not pool.resource.startswith("nvidia.com/"):
        return {}
    made = {"NCCL_SOCKET_IFNAME": NO_LOCAL}
    if pool.instance_type.imex:
        # NVLink between nodes wants a ComputeDomain (NVIDIA's DRA driver), which is not made here
        made["NCCL_MNNVL_ENABLE"] = "0"
    return made


LEVELS = (*LAYERS, "ultraserver")
"""What `within` takes."""

__all__ = [
    "LEVELS",
    "PyTorchJob",
    "environment_variables",
    "pytorch_manifests",
    "torchrun",
]
