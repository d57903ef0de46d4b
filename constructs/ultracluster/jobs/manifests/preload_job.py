"""Files loaded from S3 by a Job of Kubernetes, each pod its part."""

from __future__ import annotations

from typing import Any

from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.jobs.preload import preload_script
from ultracluster.kubernetes import kueue
from ultracluster.kubernetes.isolation import job_namespace, job_user
from ultracluster.kubernetes.pod_security import container_context, pod_context
from ultracluster.kubernetes.storage import lustre_claim
from ultracluster.kubernetes.tolerations import job_tolerations
from ultracluster.model import Cluster
from ultracluster.model.team_shares import Pool, scheduler_of

Manifest = dict[str, Any]

_REQUESTS = {"cpu": "4", "memory": "4Gi"}


def preload_job(
    cluster: Cluster, pool: Pool, path: str, *, nodes: int, name: str, team: str | None, image: str
) -> Manifest:
    """The Job: no accelerators, so that it runs beside what has them."""
    space = job_namespace(cluster, team)
    scheduler = scheduler_of(cluster)
    queue = {"kueue": kueue.queue(team), "task-governance": f"{space.name}-localqueue"}.get(scheduler)
    systems = {lustre_claim(key): one.mount_path for key, one in cluster.lustres_of(pool.group).items()}
    pod: Manifest = {
        "restartPolicy": "Never",
        "securityContext": pod_context(space.level, job_user(cluster, team)),
        "automountServiceAccountToken": False,
        "nodeSelector": {GROUP_LABEL: pool.group},
        "tolerations": job_tolerations(pool),
        # one on a node, where there are enough
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"ultracluster/job": name}},
            }
        ],
        "containers": [
            {
                "name": "preload",
                "image": image,
                "command": ["bash", "-c", preload_script(), "preload"],
                "args": [path, str(nodes)],
                "resources": {"requests": dict(_REQUESTS), "limits": {"memory": _REQUESTS["memory"]}},
                "securityContext": container_context(space.level),
                "volumeMounts": [{"name": claim, "mountPath": at} for claim, at in systems.items()],
            }
        ],
        "volumes": [
            {"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in systems
        ],
    }  # fmt: skip
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": space.name,
            **({"labels": {kueue.QUEUE_LABEL: queue}} if queue else {}),
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": nodes,
            "parallelism": nodes,
            "backoffLimit": 3,
            **({"suspend": True} if queue else {}),
            "template": {"metadata": {"labels": {"ultracluster/job": name}}, "spec": pod},
        },
    }
