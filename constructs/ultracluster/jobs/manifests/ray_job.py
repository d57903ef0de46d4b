"""One RayJob: a Ray cluster on whole nodes, the head's among them, and a program on its head.

ray-project/kuberay v1.6.2, `ray.io/v1`. Kueue admits head, workers and the pod that submits the program
together (kubernetes-sigs/kueue v0.19.2). The operator makes the token, and keeps it in a Secret.
"""

from __future__ import annotations

import copy
import shlex
from typing import Any

from ultracluster.jobs.manifests.job_pod import pod_template
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.kubernetes import kueue
from ultracluster.kubernetes.topology import label_of, nearest_level, topology_of
from ultracluster.model import Cluster
from ultracluster.model.team_shares import namespace_of, scheduler_of

Manifest = dict[str, Any]

FIRST_WITH_TOKENS = "2.52.0"
"""Release of Ray (documentation of Ray, token authentication); an older one in the image has no token."""
GROUP = "kueue.x-k8s.io/podset-group-name"
_SUBMITTER = {"cpu": "500m", "memory": "1Gi"}


def check_ray(job: PyTorchJob) -> None:
    """Refuse what Ray is not started on.

    Raises:
        ValueError: it says why, and what would do.
    """
    if job.pool.resource != "nvidia.com/gpu":
        raise ValueError(
            f"--framework ray is for NVIDIA GPUs, and {job.pool.group} ({job.pool.instance_type.name}) has "
            "none: --group with another"
        )
    if job.resilience or job.checkpoints_to:
        raise ValueError("--resilience and --checkpoints-to are of `job write`: Ray starts no torchrun")


def words_of(job: PyTorchJob) -> tuple[str, ...]:
    """The program and its arguments."""
    return job.program or ("python", job.script)


def ray_job(cluster: Cluster, job: PyTorchJob) -> Manifest:
    """The RayJob.

    Raises:
        ValueError: KubeRay is not installed, or no queue would count it.
    """
    check_ray(job)
    if not (cluster.kubernetes and cluster.kubernetes.kuberay):
        raise ValueError("the job is a RayJob, and orchestrator.kuberay is off: kuberay: true")
    if (scheduler := scheduler_of(cluster)) != "kueue":
        raise ValueError(f"Kueue admits a RayJob as a whole, and this has {scheduler}: scheduler: kueue")
    head = _node(cluster, job)
    workers: list[Manifest] = []
    if job.nodes > 1:
        others = job.nodes - 1
        counts = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), others)
        workers = [
            {"groupName": "node", **counts, "rayStartParams": {}, "template": copy.deepcopy(head)},
        ]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": job.name,
            "namespace": namespace_of(cluster, job.team) if job.team else "default",
            "labels": {kueue.QUEUE_LABEL: kueue.queue(job.team), kueue.PRIORITY_LABEL: job.priority},
        },
        "spec": {
            "suspend": True,  # until its queue admits it
            "entrypoint": shlex.join(words_of(job)),
            # Kueue takes no other: nodes would be held after the end
            "shutdownAfterJobFinishes": True,
            "submitterPodTemplate": _submitter(head),
            "rayClusterSpec": {
                "rayVersion": FIRST_WITH_TOKENS,
                "authOptions": {"mode": "token"},
                "headGroupSpec": {"rayStartParams": {}, "template": head},
                **({"workerGroupSpecs": workers} if workers else {}),
            },
        },
    }


def _node(cluster: Cluster, job: PyTorchJob) -> Manifest:
    """The pod of one node; KubeRay writes what it starts."""
    kind = topology_of(cluster, job.pool)
    annotations: dict[str, str] = {}
    if level := job.within or nearest_level(kind):
        annotations[kueue.REQUIRED if job.within else kueue.PREFERRED] = label_of(kind, level)
        if job.nodes > 1:
            annotations[GROUP] = "nodes"  # head and workers near each other, not each by itself
    template = pod_template(cluster, job, rank="", master="", annotations=annotations)
    (container,) = template["spec"]["containers"]
    container["name"] = "ray"
    del container["command"], container["args"]
    return template


def _submitter(node: Manifest) -> Manifest:
    """The pod that hands the program to the head, and prints what it prints."""
    spec, (container,) = node["spec"], node["spec"]["containers"]
    small: Manifest = {
        "name": "ray-job-submitter",
        "image": container["image"],
        "resources": {"requests": dict(_SUBMITTER), "limits": {"memory": _SUBMITTER["memory"]}},
        "securityContext": copy.deepcopy(container["securityContext"]),
    }
    if env := [one for one in container.get("env", []) if one["name"] in ("HOME", "USER")]:
        small["env"] = copy.deepcopy(env)
    kept = ("restartPolicy", "securityContext", "automountServiceAccountToken", "nodeSelector", "tolerations")
    own = {key: copy.deepcopy(spec[key]) for key in kept if key in spec}
    return {"spec": {**own, "containers": [small]}}
