# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""Manifests of people, held against the nodes of the cluster: notes, never refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ultracluster.catalog import InstanceType
from ultracluster.jobs.manifests.job_kinds import EACH, RAY_CLUSTER, JobKind
from ultracluster.jobs.variables import text_notes, variable_note
from ultracluster.kubernetes.accelerator_pods import HUGE_PAGES_MIB
from ultracluster.model import Cluster

EFA = "vpc.amazonaws.com/efa"
_ACCELERATORS = ("nvidia.com/gpu", "aws.amazon.com/neuron")
_TYPE_LABEL = "node.kubernetes.io/instance-type"
_COUNTS = ("replicas", "parallelism")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of a pod
_DEVICES = "/dev/infiniband"
_OF_RUNTIME = "ultracluster/of-runtime"
"""Marks a pod of which a runtime in the cluster has the volumes."""
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]i?)?")
_GIB = {"": 2**-30, "K": 1e3 / 2**30, "M": 1e6 / 2**30, "G": 1e9 / 2**30, "T": 1e12 / 2**30}
_GIB |= {"Ki": 2**-20, "Mi": 2**-10, "Gi": 1.0, "Ti": 1024.0}
_LITTLE = 0.25
"""Share of a node's memory below which a pod with all its accelerators mostly runs out of it."""


def job_notes(cluster: Cluster, kind: JobKind, job: dict[str, Any]) -> list[str]:
    """Return what the pods of a job lack or ask too much of, each with the line to write."""
    pods = [(count, spec) for count, spec in _pods(kind, job) if isinstance(spec, dict)]
    everything = sum(count for count, spec in pods if _accelerators(spec))
    notes: list[str] = list(_of_ray(job)) if kind.label == RAY_CLUSTER else []
    for count, spec in pods:
        for note in _of_pod(cluster, spec, count, alone=everything == 1):
            notes += [note] if note not in notes else []
    return notes


def _pods(kind: JobKind, job: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Count the pods that each template makes."""
    if kind.kind == "TrainJob":
        yield from _of_trainer(job)
        return
    for way in kind.ways:
        for count, spec in _on(way, job):
            # KubeRay mounts memory there itself (v1.6.2, common/pod.go)
            own = {_OF_RUNTIME: True} if kind.label == RAY_CLUSTER and isinstance(spec, dict) else {}
            yield count, {**spec, **own} if own else spec


def _on(way: tuple[str, ...], job: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    places: list[tuple[int, Any]] = [(1, job)]
    for step in (*way, "spec"):
        below: list[tuple[int, Any]] = []
        for count, item in places:
            times = count
            if isinstance(item, dict):
                for key in _COUNTS:
                    value = item.get(key)
                    times *= value if isinstance(value, int) and not isinstance(value, bool) else 1
            if step == EACH:
                several = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
                below += [(count, one) for one in several]
            elif isinstance(item, dict) and step in item:
                below.append((times, item[step]))
        places = below
    yield from places


def _of_trainer(job: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Read what a TrainJob sets over its runtime: nodes, resources and variables, no volumes."""
    spec = job.get("spec")
    trainer = spec.get("trainer") if isinstance(spec, dict) else None
    if isinstance(trainer, dict):
        nodes = trainer.get("numNodes")
        container = {**trainer, "name": "trainer", "resources": trainer.get("resourcesPerNode")}
        count = nodes if isinstance(nodes, int) and not isinstance(nodes, bool) else 1
        yield count, {"containers": [container], _OF_RUNTIME: True}


def _of_ray(job: dict[str, Any]) -> Iterator[str]:
    """Notes on what Kueue refuses in a RayJob (v0.19.2, rayjob_webhook.go), on its token and its memory."""
    spec = job.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    if spec.get("clusterSelector"):
        yield "clusterSelector: no queue counts a RayJob on another one's cluster. Write rayClusterSpec"
    elif spec.get("shutdownAfterJobFinishes") is not True:
        yield (
            "its nodes would be held when the job is over, and Kueue refuses that: write "
            "`shutdownAfterJobFinishes: true` below spec"
        )
    inner = spec.get("rayClusterSpec")
    inner = inner if isinstance(inner, dict) else {}
    if inner.get("enableInTreeAutoscaling"):
        yield "enableInTreeAutoscaling: Kueue refuses it, a job has its nodes from its start. Leave it out"
    if not isinstance(inner.get("authOptions"), dict):
        yield (
            "without a token every pod of its namespace may start programs in it: write `authOptions: {mode: "
            "token}` and `rayVersion` (2.52.0 or newer) below rayClusterSpec"
        )
    parts = {"head": inner.get("headGroupSpec")}
    parts |= {f"workers {spec.get('groupName', '')}": spec for spec in _dicts(inner.get("workerGroupSpecs"))}
    for name, part in parts.items():
        template = part.get("template") if isinstance(part, dict) else None
        pod = template.get("spec") if isinstance(template, dict) else None
        containers = _dicts(pod.get("containers")) if isinstance(pod, dict) else []
        if containers and _asked(containers[:1], "memory") is None:
            yield (
                f"{name}: without a limit of memory Ray takes that of the whole node for its own. Write "
                "`memory:` below resources.limits"
            )


def _accelerators(spec: dict[str, Any]) -> bool:
    containers = _dicts(spec.get("containers"))
    return any(_asked(containers, name) for name in _ACCELERATORS)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _of_pod(cluster: Cluster, spec: dict[str, Any], count: int, *, alone: bool) -> Iterator[str]:
    containers = [container for container in spec.get("containers") or [] if isinstance(container, dict)]
    asked = {name: _asked(containers, name) for name in (*_ACCELERATORS, EFA)}
    resource = next((accelerator for accelerator in _ACCELERATORS if asked[accelerator]), "")
    if not resource:
        return
    number = int(asked[resource] or 0)
    yield from _words(containers, nvidia=resource == "nvidia.com/gpu")
    selector = spec.get("nodeSelector")
    wanted = str(selector.get(_TYPE_LABEL, "")) if isinstance(selector, dict) else ""
    types = _types(cluster, wanted.removeprefix("ml."))
    counts = sorted({kind.accelerator.count for kind in types if kind.accelerator})
    if counts and number > counts[-1]:
        yield f"{resource}: {number}: no node has more than {counts[-1]}, and the pods wait for ever"
        return
    whole = [kind for kind in types if kind.accelerator and kind.accelerator.count == number]
    if not whole:
        return
    kind = whole[0]
    most = sum(group.most_nodes for group in cluster.with_role("compute").values() if group.type in whole)
    if most and count > most:
        yield f"{count} pods, each with a whole node: the groups have {most} at most, and they wait for ever"
    if not alone:
        yield from _fabric(kind, spec, asked[EFA] or 0, number)
    yield from _memory(kind, containers, spec, number)


def _types(cluster: Cluster, wanted: str) -> list[InstanceType]:
    kinds = [kind for group in cluster.with_role("compute").values() for kind in group.known_types]
    return [one for one in kinds if not wanted or one.name == wanted]


def _fabric(kind: InstanceType, spec: dict[str, Any], efa: float, number: int) -> Iterator[str]:
    """EFA devices, which NCCL does without in silence, and the huge pages that they use."""
    interfaces = kind.least_efa_interfaces
    if not interfaces or bool(spec.get("resourceClaims")) or _has_devices_of_the_node(spec):
        return
    if efa < interfaces:
        has = f"only {efa:g}" if efa else "none"
        yield (
            f"pods have all {number} accelerators of {kind.name} and {has} of its {interfaces} EFA devices, "
            f"so NCCL goes over TCP between them. Write `{EFA}: {interfaces}` below resources.limits"
        )
    elif not _asked(
        [container for container in spec.get("containers") or [] if isinstance(container, dict)],
        "hugepages-2Mi",
    ):
        yield f"EFA uses huge pages: write `hugepages-2Mi: {HUGE_PAGES_MIB}Mi` below resources.limits"


def _has_devices_of_the_node(spec: dict[str, Any]) -> bool:
    """Return whether a pod may open the devices of its node: it is privileged, or mounts their folder."""
    containers = [container for container in spec.get("containers") or [] if isinstance(container, dict)]
    contexts = [container.get("securityContext") for container in containers]
    privileged = any(isinstance(context, dict) and context.get("privileged") is True for context in contexts)
    volumes = [volume.get("hostPath") for volume in spec.get("volumes") or [] if isinstance(volume, dict)]
    mounted = any(
        isinstance(volume, dict) and str(volume.get("path")).startswith(_DEVICES) for volume in volumes
    )
    return privileged or mounted


def _words(containers: Sequence[dict[str, Any]], *, nvidia: bool) -> Iterator[str]:
    """Variables and commands of containers."""
    for container in containers:
        named = f"container {container.get('name', '')}"
        for one in container.get("env") or []:
            if isinstance(one, dict):
                note = variable_note(str(one.get("name")), str(one.get("value", "")), nvidia=nvidia)
                yield from [f"{named}: {note}"] if note else []
        texts = [one for key in ("command", "args") for one in _list(container.get(key))]
        for text in (text for text in texts if isinstance(text, str)):
            yield from (f"{named}: {note}" for _, note in text_notes(text, nvidia=nvidia))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _memory(
    kind: InstanceType, containers: Sequence[dict[str, Any]], spec: dict[str, Any], number: int
) -> Iterator[str]:
    paths = {
        mount.get("mountPath")
        for item in containers
        for mount in item.get("volumeMounts") or []
        if isinstance(mount, dict)
    }
    hidden = spec.get("hostIPC") is True or bool(spec.get(_OF_RUNTIME))
    if number > 1 and _SHARED_MEMORY not in paths and not hidden:
        yield (
            f"{_SHARED_MEMORY} has 64 MiB, which data loaders and NCCL use up: mount an emptyDir with "
            "`medium: Memory` there"
        )
    memory = _asked(containers, "memory")
    if memory and kind.memory_gib and memory < _LITTLE * kind.memory_gib:
        yield f"memory: {memory:g} GiB of a node with {kind.memory_gib:g} GiB: the kernel ends what uses more"


def _asked(containers: Sequence[dict[str, Any]], name: str) -> float | None:
    """Return what the containers ask of a resource together, memory in GiB; None where none does."""
    found: list[float] = []
    for container in containers:
        resources = container.get("resources")
        limits = resources.get("limits") if isinstance(resources, dict) else None
        match = _QUANTITY.fullmatch(str(limits.get(name, ""))) if isinstance(limits, dict) else None
        if match:
            unit = match[2] or ""
            counted = name in (*_ACCELERATORS, EFA)
            found.append(float(match[1]) * (1 if counted else _GIB.get(unit, 1)))
    return sum(found) if found else None
