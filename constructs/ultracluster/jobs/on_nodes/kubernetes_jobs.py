"""What the Kubernetes API says of pods that would end with a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from ultracluster.account.aws import AccountError
from ultracluster.account.kubernetes_api import KubernetesApi, is_node
from ultracluster.account.nodes.node import Node
from ultracluster.jobs.on_nodes.running_job import Running, together

_OF_A_JOB = (
    "batch.kubernetes.io/job-name", "job-name", "training.kubeflow.org/job-name", "ray.io/cluster",
    "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "volcano.sh/job-name",
)  # fmt: skip
"""Labels that name the job of a pod, of the operators that a training cluster mostly has."""
_STAYS = ("DaemonSet", "Node")
"""Owners whose pods belong to the node itself."""
_COMES_AGAIN = ("ReplicaSet", "StatefulSet")
"""Owners whose pods Kubernetes starts again elsewhere; with an accelerator they are counted all the same."""


def jobs_on_kubernetes(nodes: Sequence[Node], api: Callable[[], KubernetesApi]) -> Running:
    """Return what pods of jobs there are on nodes.

    Args:
        nodes: those asked about; one that Kubernetes does not know has no pods.
        api: opens the cluster's API.
    """
    places: list[tuple[str, str, str, str]] = []
    try:
        opened = api()
        items = opened.nodes()
        for node in nodes:
            for item in (item for item in items if is_node(item, node)):
                selector = quote(f"spec.nodeName={item['metadata']['name']}", safe="")
                pods = opened.items(f"/api/v1/pods?fieldSelector={selector}")
                places += [place for pod in pods if (place := _place(pod, node))]
    except AccountError as error:
        return Running(unknown=str(error))
    return Running(together(places))


def _place(pod: dict[str, Any], node: Node) -> tuple[str, str, str, str] | None:
    """Return what a pod is of, or None where nothing is lost with it."""
    metadata, status = pod.get("metadata", {}), pod.get("status", {})
    owners: list[dict[str, str]] = metadata.get("ownerReferences") or []
    owner = owners[0] if owners else dict[str, str]()
    kind = owner.get("kind", "")
    if status.get("phase") in ("Succeeded", "Failed") or kind in _STAYS:
        return None
    if kind in _COMES_AGAIN and not _accelerated(pod):
        return None
    labels: dict[str, str] = metadata.get("labels") or {}
    namespace = str(metadata.get("namespace", ""))
    named = next((labels[key] for key in _OF_A_JOB if labels.get(key)), "")
    name = str(named or owner.get("name") or metadata.get("name", ""))
    return f"{namespace}/{name}", namespace, name, node.name


def _accelerated(pod: dict[str, Any]) -> bool:
    """Whether it holds a device: `nvidia.com/gpu`, `aws.amazon.com/neuron`, `vpc.amazonaws.com/efa`."""
    containers: list[dict[str, Any]] = pod.get("spec", {}).get("containers", [])
    limits: list[dict[str, Any]] = [
        container.get("resources", {}).get("limits") or {} for container in containers
    ]
    return any("/" in resource for limit in limits for resource in limit)
