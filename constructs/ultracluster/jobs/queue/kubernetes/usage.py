# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""Use of nodes by jobs of Kubernetes: their pods, and Kueue's workloads of jobs whose pods were deleted.

Kubernetes keeps no accounting: a job that was deleted is not recorded.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.jobs.queue.kubernetes.state import Manifest, container_states, place_of, when
from ultracluster.jobs.queue.protocol import QueuedJob
from ultracluster.model import Cluster
from ultracluster.plan.usage import Run

_UNITS = {
    "": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
"""Kubernetes documentation, "Resource units in Kubernetes"."""
_MIG, _MIG_SLICES = "MIG", 7
"""Compute slices of all profiles together; a GPU has seven."""
_ACCELERATORS = re.compile(r"nvidia\.com/(?:gpu(?:\.shared)?|mig-(\d+)g\..+)|aws\.amazon\.com/neuron.*")
NOTE = (
    "Kubernetes keeps no accounting: jobs that were deleted, pods that no job made, and namespaces of no "
    "team but `default` are in the row `idle`"
)


def runs_of_pods(
    cluster: Cluster, job: QueuedJob, pods: Sequence[Manifest], nodes: Mapping[str, Manifest]
) -> Iterator[Run]:
    """A run for each pod that got a node.

    Args:
        nodes: objects of the nodes that are there, by name.
    """
    tries: Counter[Any] = Counter()
    for pod in sorted(pods, key=lambda one: str(one["metadata"].get("creationTimestamp", ""))):
        node = str(pod.get("spec", {}).get("nodeName") or "")
        start, end = _times(pod)
        if not node or start is None:
            continue
        tries[place_of(pod)] += 1
        share, accelerators = _shares(cluster, pod, nodes.get(node))
        yield Run(
            job=job.id, attempt=str(tries[place_of(pod)]), name=job.name, user=job.user, team=job.team,
            nodes=(node,), start=start, end=end, share=share, accelerators=accelerators,
        )  # fmt: skip


def run_of_workload(cluster: Cluster, job: QueuedJob, workload: Manifest) -> Iterator[tuple[Run, str]]:
    """A run for each part of a workload that Kueue admitted, with its node group: its nodes are not known."""
    conditions = {str(one.get("type")): one for one in workload.get("status", {}).get("conditions") or []}
    admitted, finished = conditions.get("Admitted", {}), conditions.get("Finished", {})
    start, end = _seconds(admitted.get("lastTransitionTime")), _seconds(finished.get("lastTransitionTime"))
    if admitted.get("status") != "True" or start is None or finished.get("status") != "True" or end is None:
        return
    uid = str(workload.get("metadata", {}).get("uid", ""))
    for number, part in enumerate((workload["status"].get("admission") or {}).get("podSetAssignments") or []):
        usage = {key: _quantity(value) for key, value in (part.get("resourceUsage") or {}).items()}
        group = _group_of_flavors(cluster, (part.get("flavors") or {}).values())
        known = cluster.groups[group].type if group else None
        each = known.accelerator.count if known and known.accelerator else 0
        asked = sum(amount for key, amount in usage.items() if _ACCELERATORS.fullmatch(key))
        count = math.ceil(asked / each) if each and asked else int(part.get("count") or 1)
        part_of_each = min(1.0, asked / (each * count)) if each and asked else 1.0
        yield (
            Run(
                job=job.id, attempt="1", name=job.name, user=job.user, team=job.team,
                nodes=tuple(f"{uid}/{number}/{index}" for index in range(count)), start=start, end=end,
                share=part_of_each, accelerators=part_of_each if asked else 0.0,
            ),
            group,
        )  # fmt: skip


def group_of(cluster: Cluster, pod: Manifest, node: Manifest | None) -> str:
    """The group of a pod's node: its label, what the pod asked for, or the only group there is."""
    labels = (node or {}).get("metadata", {}).get("labels") or {}
    named = labels.get(GROUP_LABEL) or (pod.get("spec", {}).get("nodeSelector") or {}).get(GROUP_LABEL)
    if named in cluster.groups:
        return str(named)
    compute = list(cluster.with_role("compute"))
    return compute[0] if len(compute) == 1 and node is None else ""


def _group_of_flavors(cluster: Cluster, flavors: Any) -> str:
    compute = list(cluster.with_role("compute"))
    named = {str(one) for one in flavors}
    found = next((one for one in compute if one.lower() in named), "")
    return found or (compute[0] if len(compute) == 1 else "")


def _times(pod: Manifest) -> tuple[float | None, float | None]:
    """When a pod got its node, and when it was over; None while it is not."""
    status = pod.get("status", {})
    conditions = [one for one in status.get("conditions") or [] if isinstance(one, dict)]
    scheduled = next(
        (one.get("lastTransitionTime") for one in conditions if one.get("type") == "PodScheduled"), None
    )
    start = _seconds(status.get("startTime")) or _seconds(scheduled)
    if status.get("phase") not in ("Succeeded", "Failed"):
        return start, None
    ends = [
        at
        for one in container_states(pod)
        if (at := _seconds(((one.get("state") or {}).get("terminated") or {}).get("finishedAt"))) is not None
    ]
    ends = ends or [at for one in conditions if (at := _seconds(one.get("lastTransitionTime"))) is not None]
    return start, max(ends, default=start)


def _shares(cluster: Cluster, pod: Manifest, node: Manifest | None) -> tuple[float, float]:
    """Part of the node that others cannot have, and part of its accelerators."""
    asked = defaultdict[str, float](float)
    for container in pod.get("spec", {}).get("containers") or []:
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for key, amount in _amounts(wanted).items():
            asked[key] += amount
    there = _amounts((node or {}).get("status", {}).get("allocatable") or {})
    there = there or _of_the_type(cluster, group_of(cluster, pod, node))
    devices = [key for key in asked if key == _MIG or _ACCELERATORS.fullmatch(key)]
    accelerators = sum(asked[key] / there[key] if there.get(key) else 1.0 for key in devices)
    others = [asked[key] / there[key] for key in ("cpu", "memory") if there.get(key)]
    return min(1.0, max([accelerators, *others])), min(1.0, accelerators)


def _amounts(resources: Mapping[str, Any]) -> dict[str, float]:
    """Amounts of resources; MIG's profiles are one, in compute slices: several may be on one GPU."""
    found = defaultdict[str, float](float)
    for key, value in resources.items():
        mig = _ACCELERATORS.fullmatch(str(key))
        slices = int(mig[1]) if mig and mig[1] else 0
        found[_MIG if slices else str(key)] += _quantity(value) * (slices or 1)
    return found


def _of_the_type(cluster: Cluster, group: str) -> dict[str, float]:
    """Size of a node that was deleted, by the catalogue."""
    known = cluster.groups[group].type if group in cluster.groups else None
    if known is None:
        return {}
    count = known.accelerator.count if known.accelerator else 0
    memory = (known.memory_gib or 0) * 2.0**30
    return {
        "cpu": known.vcpu or 0, "memory": memory, _MIG: count * _MIG_SLICES,
        "nvidia.com/gpu": count, "aws.amazon.com/neuron": count,
    }  # fmt: skip


def _quantity(value: Any) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", str(value))
    return float(found[1]) * _UNITS.get(found[2], 1.0) if found else 0.0


def _seconds(value: Any) -> float | None:
    at = when(value)
    return at.timestamp() if at else None


__all__ = ["NOTE", "group_of", "run_of_workload", "runs_of_pods"]
