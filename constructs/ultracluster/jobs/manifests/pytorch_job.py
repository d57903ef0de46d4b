"""One PyTorch job, gang-scheduled, for each scheduler of Kubernetes.

JobSet (kubernetes-sigs/jobset v0.12.0, `jobset.x-k8s.io/v1alpha2`) for Kueue and KAI, Volcano's own job
(volcano-sh/volcano v1.15.1, `batch.volcano.sh/v1alpha1`) for Volcano, and Kubernetes' own Job for HyperPod's
task governance, which brings no other kind.
"""

from __future__ import annotations

from typing import Any, assert_never

from ultracluster.catalog import ultraservers
from ultracluster.jobs.jax_launch import check_jax
from ultracluster.jobs.manifests.job_pod import pod_template
from ultracluster.jobs.manifests.ray_job import ray_job
from ultracluster.jobs.manifests.resilience import check_resilience, operator_job
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.kubernetes import kai, kueue
from ultracluster.kubernetes.checkpoints import check_checkpoints
from ultracluster.kubernetes.claims import CLIQUE, job_claims
from ultracluster.kubernetes.topology import LAYERS, label_of, nearest_level, topology_of
from ultracluster.kubernetes.volcano import TIERS
from ultracluster.model import Cluster
from ultracluster.model.team_shares import namespace_of, scheduler_of

Manifest = dict[str, Any]

NEURON_DEVICES = "aws.amazon.com/neuron"
NEURON_SCHEDULER = "my-scheduler"
"""Name of the second scheduler that Neuron's chart installs (its `customScheduler.fullnameOverride`)."""
RESTARTS = 3
"""How often all pods of a job start again when one of them has failed."""


def pytorch_manifests(cluster: Cluster, job: PyTorchJob) -> tuple[Manifest, ...]:
    """The objects of a job, in the order in which they are applied.

    Raises:
        ValueError: there is no scheduler for it, or it cannot do what is asked.
    """
    scheduler = scheduler_of(cluster)
    if scheduler == "none":
        raise ValueError("orchestrator.scheduler is `none`: nothing starts all pods of a job at once")
    if not job.image:
        wanted = {"jax": "JAX", "ray": "Ray"}.get(job.framework, "PyTorch")
        raise ValueError(
            f"a pod needs an image: --image, with {wanted}, libfabric and the EFA plugin of NCCL"
        )
    _check_domain(job)
    if job.framework == "jax":
        check_jax(job)
    if job.checkpoints_to:
        check_checkpoints(cluster, job.checkpoints_to)
    namespace = namespace_of(cluster, job.team) if job.team else "default"
    claimed = job_claims(cluster, job.pool, name=job.name, namespace=namespace).objects
    if job.framework == "ray":
        return (*claimed, ray_job(cluster, job))
    if job.resilience:
        return (*claimed, _resilient_job(cluster, job))
    match scheduler:
        case "volcano":
            return (*claimed, _volcano_job(cluster, job))
        case "task-governance":
            return (*claimed, *_governed_job(cluster, job))
        case "kai":
            return (*claimed, _kai_jobset(cluster, job))
        case "kueue":
            return (*claimed, _kueue_jobset(cluster, job))
        case "slurm":
            raise ValueError("the cluster runs Slurm, not Kubernetes: a batch script starts the job")
        case _ as never:
            assert_never(never)


def _check_domain(job: PyTorchJob) -> None:
    """Refuse a job that must not leave an UltraServer, and does not fit into one."""
    sizes = [ultraservers()[name].instances for name in job.pool.instance_type.ultraserver]
    if job.within == "ultraserver" and sizes and job.nodes > max(sizes):
        raise ValueError(
            f"--within ultraserver: an UltraServer of {job.pool.instance_type.name} has at most "
            f"{max(sizes)} nodes, and the job asks for {job.nodes}; without it NVLink joins those of each"
        )


def _kueue_jobset(cluster: Cluster, job: PyTorchJob) -> Manifest:
    labels = {kueue.QUEUE_LABEL: kueue.queue(job.team), kueue.PRIORITY_LABEL: job.priority}
    return _jobset(
        cluster,
        job,
        labels=labels,
        pod_annotations=_kueue_topology(cluster, job),
        scheduler_name=_neuron_scheduler(cluster, job),
    )


def _kai_jobset(cluster: Cluster, job: PyTorchJob) -> Manifest:
    kind = topology_of(cluster, job.pool)
    annotations: dict[str, str] = {}
    if level := job.within or nearest_level(kind):
        annotations[kai.TOPOLOGY] = kind
        key = kai.REQUIRED if job.within else kai.PREFERRED
        annotations[key] = label_of(kind, level)
    queue = {kai.QUEUE_LABEL: job.team or kai.DEFAULT_QUEUE}
    return _jobset(
        cluster,
        job,
        labels={**queue, "priorityClassName": job.priority},
        annotations=annotations,
        pod_labels=queue,
        scheduler_name=kai.SCHEDULER,
    )


def _jobset(
    cluster: Cluster,
    job: PyTorchJob,
    *,
    labels: dict[str, str],
    annotations: dict[str, str] | None = None,
    pod_labels: dict[str, str] | None = None,
    pod_annotations: dict[str, str] | None = None,
    scheduler_name: str | None = None,
) -> Manifest:
    if not (cluster.kubernetes and cluster.kubernetes.jobset):
        raise ValueError("the job is a JobSet, and orchestrator.jobset is off")
    pod = pod_template(
        cluster,
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
        "metadata": _metadata(cluster, job, labels, annotations),
        "spec": {
            # all pods again, not only the one that failed: the others wait for it in a collective
            "failurePolicy": {"maxRestarts": RESTARTS},
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": _job_spec(job, pod)}}],
        },
    }


def _resilient_job(cluster: Cluster, job: PyTorchJob) -> Manifest:
    """One of HyperPod's training operator, in the queue of its team."""
    check_resilience(cluster, job)
    if scheduler_of(cluster) == "task-governance":
        labels = _governed_labels(_governed_namespace(cluster, job), job)
    else:
        labels = {kueue.QUEUE_LABEL: kueue.queue(job.team), kueue.PRIORITY_LABEL: job.priority}
    # ranks and addresses are the operator's to give
    pod = pod_template(cluster, job, rank="0", master="", annotations=_kueue_topology(cluster, job))
    return operator_job(job, pod, _metadata(cluster, job, labels))


def _governed_namespace(cluster: Cluster, job: PyTorchJob) -> str:
    if job.team is None:
        raise ValueError("with task governance a job is a team's: give the environment `teams`")
    return namespace_of(cluster, job.team)


def _governed_labels(namespace: str, job: PyTorchJob) -> dict[str, str]:
    return {
        kueue.QUEUE_LABEL: f"{namespace}-localqueue",
        kueue.PRIORITY_LABEL: f"{job.priority}-priority",
    }


def _governed_job(cluster: Cluster, job: PyTorchJob) -> tuple[Manifest, Manifest]:
    """A Job and the service that gives its pods names."""
    namespace = _governed_namespace(cluster, job)
    labels = _governed_labels(namespace, job)
    selector = {"ultracluster/job": job.name}
    pod = pod_template(
        cluster,
        job,
        rank="$(JOB_COMPLETION_INDEX)",
        master=f"{job.name}-0.{job.name}",
        labels=selector,
        annotations=_kueue_topology(cluster, job),
        scheduler_name=_neuron_scheduler(cluster, job),
    )
    pod["spec"]["subdomain"] = job.name
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": job.name, "namespace": namespace},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector},
    }
    manifest: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(cluster, job, labels),
        "spec": {**_job_spec(job, pod), "suspend": True},  # until its team's queue admits it
    }
    return service, manifest


def _volcano_job(cluster: Cluster, job: PyTorchJob) -> Manifest:
    joined = topology_of(cluster, job.pool) == "clique"
    by_affinity = joined and job.within == "ultraserver"
    if job.within and job.within not in TIERS and not by_affinity:
        levels = [*LAYERS, *(["ultraserver"] if joined else [])]
        raise ValueError(f"there is no level `{job.within}`: one of {', '.join(levels)}")
    topology: Manifest = {"mode": "soft"}
    if job.within and not by_affinity:
        topology = {"mode": "hard", "highestTierAllowed": TIERS[job.within]}
    pod = pod_template(cluster, job, rank="$(VC_TASK_INDEX)", master=f"{job.name}-node-0.{job.name}")
    if by_affinity:
        # a node is in one tree of Volcano only, that of the network; so the pods ask for each other
        own = {"matchLabels": {"volcano.sh/job-name": job.name}}
        near = [{"labelSelector": own, "topologyKey": CLIQUE}]
        pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": _metadata(cluster, job, {}),
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


def _neuron_scheduler(cluster: Cluster, job: PyTorchJob) -> str | None:
    """Neuron's own, where it is: it must know of every pod that has devices."""
    installed = cluster.kubernetes is not None and cluster.kubernetes.neuron_scheduler
    return NEURON_SCHEDULER if installed and job.pool.resource.startswith(NEURON_DEVICES) else None


def _kueue_topology(cluster: Cluster, job: PyTorchJob) -> dict[str, str]:
    kind = topology_of(cluster, job.pool)
    if job.within:
        return {kueue.REQUIRED: label_of(kind, job.within)}
    nearest = nearest_level(kind)
    return {kueue.PREFERRED: label_of(kind, nearest)} if nearest else {}


def _job_spec(job: PyTorchJob, pod: Manifest) -> Manifest:
    return {
        "completionMode": "Indexed",
        "completions": job.nodes,
        "parallelism": job.nodes,
        "backoffLimit": 0,
        "template": pod,
    }


def _metadata(
    cluster: Cluster,
    job: PyTorchJob,
    labels: dict[str, str],
    annotations: dict[str, str] | None = None,
) -> Manifest:
    namespace = namespace_of(cluster, job.team) if job.team else "default"
    metadata: Manifest = {"name": job.name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return metadata


LEVELS = (*LAYERS, "ultraserver")
"""What `within` takes."""
