"""The pod of a training job: what it takes of a node, what it mounts, how torchrun starts in it."""

from __future__ import annotations

from typing import Any

from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.jobs.jax_launch import launch
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.kubernetes.accelerator_pods import HUGE_PAGES_MIB, environment_variables
from ultracluster.kubernetes.checkpoints import with_checkpoints
from ultracluster.kubernetes.claims import job_claims
from ultracluster.kubernetes.isolation import job_namespace, job_user
from ultracluster.kubernetes.pod_security import container_context, pod_context
from ultracluster.kubernetes.storage import lustre_claim, s3_claims
from ultracluster.kubernetes.tolerations import job_tolerations
from ultracluster.model import Cluster
from ultracluster.model.checkpoint_memory import checkpoints_percent, memory_for_pods_gib
from ultracluster.model.devices import claims_efa, has_compute_domains
from ultracluster.model.observability import collects
from ultracluster.model.team_shares import Pool

Manifest = dict[str, Any]

PORT = 29500
"""torchrun's own default, where the nodes of a job find each other."""
METRICS_PORT = 9475
"""Where one process of a pod answers for all of them (docs/training-metrics.md)."""
_GRACE_SECONDS = 120
"""For a last checkpoint, when the job must go."""
_NO_HOME = {"HOME": "/tmp", "USER": "trainer"}  # noqa: S108 - only of the container
"""For a user that the image does not know: PyTorch asks for its name, and others write below its home."""


def pod_template(
    cluster: Cluster,
    job: PyTorchJob,
    *,
    rank: str,
    master: str,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    scheduler_name: str | None = None,
) -> Manifest:
    pool, namespace = job.pool, job_namespace(cluster, job.team)
    user = job_user(cluster, job.team)
    claims = job_claims(cluster, pool, name=job.name, namespace=namespace.name)
    resources = whole_node(
        pool, efa=not claims_efa(cluster), checkpoints_percent=checkpoints_percent(cluster)
    )
    mounts = [{"name": "shared-memory", "mountPath": "/dev/shm"}]  # noqa: S108 - only of the pod
    volumes: list[Manifest] = [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]
    home = cluster.environment.storage.openzfs
    places = {lustre_claim(name): one.mount_path for name, one in cluster.lustres_of(pool.group).items()}
    places |= s3_claims(cluster.kubernetes.mountpoint_s3 if cluster.kubernetes else {})
    for claim, path in {**places, **({"home": home.mount_path} if home else {})}.items():
        mounts.append({"name": claim, "mountPath": path})
        volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
    container: Manifest = {
        "name": "trainer",
        "image": job.image,
        **_started(job, rank=rank, master=master),
        "resources": {
            "limits": resources,
            "requests": resources,
            **({"claims": claims.of_container} if claims.templates else {}),
        },
        "securityContext": container_context(namespace.level),
        "volumeMounts": mounts,
    }
    joined = has_compute_domains(cluster, pool.instance_type)
    ours = environment_variables(pool, job.processes, joined=joined)
    variables = {**ours, **metrics_variables(cluster, job)}
    if variables := {**variables, **({} if user is None else _NO_HOME)}:
        container["env"] = [{"name": key, "value": value} for key, value in variables.items()]
    spec: Manifest = {
        "restartPolicy": "Never",
        "securityContext": pod_context(namespace.level, user),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "nodeSelector": {GROUP_LABEL: pool.group},
        "tolerations": job_tolerations(pool),
        "containers": [container],
        "volumes": volumes,
    }
    if claims.templates:
        spec["resourceClaims"] = claims.of_pod
    if scheduler_name:
        spec["schedulerName"] = scheduler_name
    spec = with_checkpoints(cluster, spec, name=job.name, namespace=namespace.name, place=job.checkpoints_to)
    annotations = {**(annotations or {}), **(metrics_annotations() if collects(cluster) else {})}
    metadata = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {**({"metadata": metadata} if metadata else {}), "spec": spec}


def _started(job: PyTorchJob, *, rank: str, master: str) -> Manifest:
    if job.framework == "jax":
        # the rank stands in arguments: Kubernetes puts its variable into no other one
        return {"command": ["bash", "-c", launch(job, PORT), "jax"], "args": [rank, master, job.script]}
    return {"command": ["torchrun"], "args": torchrun(job, rank=rank, master=master)}


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


def metrics_annotations() -> dict[str, str]:
    """By which the cluster's agent finds a pod whose program tells its steps."""
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(METRICS_PORT),
        "prometheus.io/path": "/metrics",
    }


def metrics_variables(cluster: Cluster, job: PyTorchJob) -> dict[str, str]:
    """What `ultracluster_metrics` reads in a pod, where metrics are collected; nothing of it is needed."""
    if not collects(cluster):
        return {}
    told = {"ULTRACLUSTER_METRICS_PORT": str(METRICS_PORT), "ULTRACLUSTER_JOB_ID": job.name}
    accelerator = job.pool.instance_type.accelerator
    if accelerator and job.pool.resource == "nvidia.com/gpu":  # of a part of one no peak is known
        told["ULTRACLUSTER_ACCELERATOR"] = accelerator.name.lower()
    return told


def whole_node(pool: Pool, *, efa: bool = True, checkpoints_percent: int = 0) -> dict[str, str]:
    """Requests of a pod that has a node to itself, besides what runs on every node.

    All accelerators and EFA interfaces, nine tenths of the processors, four fifths of the memory.

    Args:
        pool: the group of the node.
        efa: interfaces are counted; else a claim holds them.
        checkpoints_percent: share of the memory that tiered checkpoints take first.
    """
    instance_type = pool.instance_type
    resources = {pool.resource: str(pool.per_node)}
    if interfaces := instance_type.least_efa_interfaces:
        counted = {"vpc.amazonaws.com/efa": str(interfaces)} if efa else {}
        resources |= {**counted, "hugepages-2Mi": f"{HUGE_PAGES_MIB}Mi"}
    if instance_type.vcpu:
        resources["cpu"] = str(max(1, instance_type.vcpu * 9 // 10))
    if memory := memory_for_pods_gib(instance_type, checkpoints_percent):
        resources["memory"] = f"{max(1, memory * 4 // 5)}Gi"
    return resources
