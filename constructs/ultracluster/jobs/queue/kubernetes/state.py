# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""What the objects of Kubernetes say of a job: its state in one word, and why in a sentence.

Conditions: JobSet, Job, Kueue's Workload and kubeflow's jobs have them (`status.conditions`), Volcano has a
phase. What a pod waits for is in its conditions and in the states of its containers (Kubernetes
documentation, "Pod Lifecycle").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ultracluster.config.plain_text import clipped, one_line
from ultracluster.jobs.manifests.job_documents import USER
from ultracluster.jobs.manifests.job_kinds import JOB_NAME, JOBSET_NAME, RAY_CLUSTER, JobKind
from ultracluster.jobs.queue.protocol import QueuedJob, State

Manifest = dict[str, Any]

_ENDS: dict[str, State] = {
    "complete": "completed", "completed": "completed", "succeeded": "completed",
    "failed": "failed", "aborted": "cancelled", "terminated": "failed", "validationfailed": "failed",
}  # fmt: skip
"""Types of conditions and phases, in lower case, with which a job is over."""
_LONGEST = 500
_LONGEST_INDEX = 7
_RANKS = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "volcano.sh/task-index",
    "ray.io/worker-group-replica-index",
)
_STARTING = ("ContainerCreating", "PodInitializing")
"""What is no reason to look: an image is pulled, a volume mounted."""


def queued_job(
    kind: JobKind,
    job: Manifest,
    pods: Sequence[Manifest],
    *,
    team: str,
    workload: Manifest | None = None,
    warnings: Sequence[Manifest] = (),
) -> QueuedJob:
    """A job as a person sees it.

    Args:
        pods: those of this job.
        team: whose namespace it is in; empty for none.
        workload: what Kueue says of it.
        warnings: events of the job and what it made.
    """
    meta, status = _map(job, "metadata"), _map(job, "status")
    annotations = _map(meta, "annotations")
    last = newest_try(pods)
    state, detail, why = _state(meta, status, last, workload, warnings)
    ended = when(status.get("completionTime") or status.get("endTime")) or (
        _end(status) if state in ("completed", "failed") else None
    )
    started = min(filter(None, (when(_map(pod, "status").get("startTime")) for pod in last)), default=None)
    return QueuedJob(
        id=f"{_text(meta.get('namespace'))}/{_text(meta.get('name'))}",
        name=_text(meta.get("name")),
        user=_text(annotations.get(USER)),
        team=team,
        state=state,
        detail=_text(detail),
        why=clipped(_text(why), _LONGEST),
        nodes=tuple(
            dict.fromkeys(_text(name) for pod in last if (name := _map(pod, "spec").get("nodeName")))
        ),
        wanted_nodes=_wanted(kind, job),
        submitted=when(meta.get("creationTimestamp")),
        started=started,
        ended=ended,
        exit_code=_exit_code(last) if state == "failed" else 0 if state == "completed" else None,
        restarts=_restarts(status, last),
    )


Place = tuple[bool, str, int, int, str]
"""Of a pod in its job: whether it is a worker, its part, its Job, its index, and its name if it has none."""


def place_of(pod: Manifest) -> Place:
    """The place of a pod in its job: what its controller wrote, or the number at the end of its name."""
    meta = _map(pod, "metadata")
    labels = {**_map(meta, "annotations"), **_map(meta, "labels")}
    role, job_index = role_of(pod), _digits(labels.get("jobset.sigs.k8s.io/job-index")) or 0
    found = next((index for key in _RANKS if (index := _digits(labels.get(key))) is not None), None)
    name = str(meta.get("name", ""))
    if found is None and not {JOB_NAME, RAY_CLUSTER} & labels.keys():  # those have names by chance
        found = _digits(name.rpartition("-")[2])
    return role == "worker", role, job_index, found or 0, name if found is None else ""


def ranks_of(pods: Sequence[Manifest]) -> dict[Place, int]:
    """The rank of each place: its index where the job has one part, else its number over all parts."""
    places = sorted({place_of(pod) for pod in pods})
    if len({place[:3] for place in places}) == 1 and not any(place[4] for place in places):
        return {place: place[3] for place in places}
    return {place: number for number, place in enumerate(places)}


def newest_try(pods: Sequence[Manifest]) -> list[Manifest]:
    """Of each place the pod that was made last, in the order of their places."""
    newest: dict[Place, Manifest] = {}
    for pod in sorted(pods, key=lambda pod: str(_map(pod, "metadata").get("creationTimestamp", ""))):
        newest[place_of(pod)] = pod
    return [pod for _, pod in sorted(newest.items(), key=lambda item: item[0])]


def _digits(value: Any) -> int | None:
    text = str(value) if value is not None else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _LONGEST_INDEX else None


def role_of(pod: Manifest) -> str:
    """Return which part of the job it is, where a job has several."""
    labels = _map(_map(pod, "metadata"), "labels")
    for key in (
        "jobset.sigs.k8s.io/replicatedjob-name",
        "training.kubeflow.org/replica-type",
        "volcano.sh/task-spec",
        "ray.io/node-type",
    ):
        if value := labels.get(key):
            return str(value).lower()
    return ""


def of_job(kind: JobKind, job: Manifest, pods: Iterable[Manifest]) -> list[Manifest]:
    """Those pods that are a job's."""
    meta = _map(job, "metadata")
    name, namespace = meta.get("name"), meta.get("namespace")
    value = _map(job, kind.named[0]).get(kind.named[1])
    manifests: list[Manifest] = []
    for pod in pods:
        of = _map(pod, "metadata")
        labels = _map(of, "labels")
        mine = bool(value) and labels.get(kind.label) == value
        mine = mine or (kind.starts_job and labels.get(JOB_NAME) == name)
        if of.get("namespace") != namespace or not mine:
            continue
        # a JobSet's pods have the label of a Job, too: that of the Job which it made
        if kind.label == JOB_NAME and JOBSET_NAME in labels:
            continue
        manifests.append(pod)
    return manifests


def container_states(pod: Manifest) -> list[Manifest]:
    """Of its containers, those that start before the others first."""
    status = _map(pod, "status")
    return [
        one
        for key in ("initContainerStatuses", "containerStatuses")
        for one in status.get(key) or []
        if isinstance(one, dict)
    ]


def _state(
    meta: Manifest,
    status: Manifest,
    pods: Sequence[Manifest],
    workload: Manifest | None,
    warnings: Sequence[Manifest],
) -> tuple[State, str, str]:
    if meta.get("deletionTimestamp"):
        left = len([pod for pod in pods if _phase(pod) in ("Pending", "Running")])
        return "cancelled", "Terminating", f"it is being removed; {left} pods are still there" if left else ""
    true = [condition for condition in _conditions(status) if condition.get("status") == "True"]
    for one in true:
        if end := _ENDS.get(str(one.get("type", "")).lower()):
            return end, str(one["type"]), _ending(one, pods) if end != "completed" else ""
    phase = status.get("state") or status.get("jobDeploymentStatus")
    word = str(phase.get("phase", "") if isinstance(phase, dict) else phase or "")
    if end := _ENDS.get(word.lower()):
        said = phase if isinstance(phase, dict) else status if "jobDeploymentStatus" in status else {}
        return end, word, _ending(said, pods) if end != "completed" else ""
    running = [
        pod for pod in pods if _phase(pod) == "Running" and not _map(pod, "metadata").get("deletionTimestamp")
    ]
    waits = [why for pod in pods if (why := _waits(pod))]
    if running:
        more = f"{len(running)} of {len(pods)} pods run; " if len(running) < len(pods) else ""
        return "running", word or "Running", f"{more}{waits[0]}" if waits else more.removesuffix("; ")
    if waits:
        # a pod that fails again and again holds its node, and is no wait for one
        return "waiting", "Pending", waits[0]
    if pods:
        return "waiting", "Starting", ""
    if workload is not None and (why := _admission(workload)):
        return "waiting", "Queued", why
    suspended = next((one for one in true if one.get("type") == "Suspended"), None)
    if suspended:
        return "waiting", "Suspended", str(suspended.get("message", ""))
    return "waiting", word or "Pending", _warned(warnings)


def _admission(workload: Manifest) -> str:
    """Return why Kueue has not let a job in; empty where it has."""
    conditions = {
        str(condition.get("type", "")): condition for condition in _conditions(_map(workload, "status"))
    }
    admitted = conditions.get("Admitted", {})
    if admitted.get("status") == "True":
        return ""
    for name in ("Evicted", "Requeued"):
        one = conditions.get(name, {})
        if one.get("status") == ("True" if name == "Evicted" else "False") and one.get("message"):
            return f"{one.get('reason', name)}: {one['message']}"
    one = conditions.get("QuotaReserved", {})
    if one.get("status") == "True":
        return str(admitted.get("message") or "quota is reserved; a check of its queue is not over")
    return str(one.get("message") or "it is in its queue, which has not looked at it yet")


def _waits(pod: Manifest) -> str:
    """Return what a pod that does not run waits for, in the words of who knows."""
    name = str(_map(pod, "metadata").get("name", ""))
    for state in container_states(pod):
        waiting = _map(_map(state, "state"), "waiting")
        reason = str(waiting.get("reason", ""))
        if reason and reason not in _STARTING:
            former = _map(_map(state, "lastState"), "terminated")
            code = f" (exit code {former['exitCode']})" if "exitCode" in former else ""
            return ": ".join(filter(None, (name, f"{reason}{code}", str(waiting.get("message", "")))))
    if _phase(pod) != "Pending":
        return ""
    for condition in _conditions(_map(pod, "status")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return ": ".join(
                filter(None, (name, str(condition.get("reason", "")), str(condition.get("message", ""))))
            )
    return ""


def _ending(said: Manifest, pods: Sequence[Manifest]) -> str:
    """Return why a job failed: the container that ended first, before what its controller makes of it."""
    words = ": ".join(filter(None, (str(said.get("reason", "")), str(said.get("message", "")))))
    first = _first_failure(pods)
    if first is None:
        gone = [one for pod in pods if (one := str(_map(pod, "status").get("reason", "")))]
        return "; ".join(filter(None, (gone[0] if gone else "", words)))
    pod, ended = first
    name, node = str(_map(pod, "metadata").get("name", "")), str(_map(pod, "spec").get("nodeName", ""))
    reason = str(ended.get("reason", "")) or "Error"
    where = f" on {node}" if node else ""
    return f"{name}{where} ended first: {reason}, exit code {ended.get('exitCode')}" + (
        f" ({words})" if words else ""
    )


def _first_failure(pods: Sequence[Manifest]) -> tuple[Manifest, Manifest] | None:
    found = [
        (str(ended.get("finishedAt", "")), index, pod, ended)
        for index, pod in enumerate(pods)
        for state in container_states(pod)
        if (ended := _map(_map(state, "state"), "terminated")) and ended.get("exitCode") not in (0, None)
    ]
    return min(found, key=lambda one: one[:2])[2:] if found else None


def _exit_code(pods: Sequence[Manifest]) -> int | None:
    first = _first_failure(pods)
    code = first[1].get("exitCode") if first else None
    return code if isinstance(code, int) else None


def _restarts(status: Manifest, pods: Sequence[Manifest]) -> int:
    counted = [status.get("restarts"), status.get("retryCount")]
    counted += [state.get("restartCount") for pod in pods for state in container_states(pod)]
    return max((one for one in counted if isinstance(one, int)), default=0)


def _warned(warnings: Sequence[Manifest]) -> str:
    """The newest warning about a job that has no pods: a quota or a policy that refuses them, mostly."""
    newest = max(
        warnings,
        key=lambda warning: str(warning.get("lastTimestamp") or warning.get("eventTime") or ""),
        default=None,
    )
    return f"{newest.get('reason', '')}: {newest.get('message', '')}" if newest else ""


def _wanted(kind: JobKind, job: Manifest) -> int | None:
    """Pods of a job, each of which has a node in the jobs that we write."""
    spec = _map(job, "spec")
    counts: list[Any]
    if kind.version == "batch/v1":
        counts = [spec.get("parallelism", 1)]
    elif kind.kind == "JobSet":
        counts = [
            _number(job.get("replicas", 1))
            * _number(_map(_map(job, "template"), "spec").get("parallelism", 1))
            for job in spec.get("replicatedJobs") or []
        ]
    elif kind.kind == "RayJob":
        inner = _map(spec, "rayClusterSpec")
        workers = inner.get("workerGroupSpecs") or []
        counts = [1, *(worker.get("replicas", 0) for worker in workers if isinstance(worker, dict))]
    elif kind.kind == "TrainJob":
        counts = [_map(spec, "trainer").get("numNodes")]
    else:
        parts = spec.get(kind.template[1]) if kind.template else None
        several = list(parts.values()) if isinstance(parts, dict) else parts or []
        counts = [one.get("replicas", 1) for one in several if isinstance(one, dict)]
    numbers = [_number(count) for count in counts]
    return sum(numbers) or None


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _end(status: Manifest) -> datetime | None:
    times = [
        when(one.get("lastTransitionTime")) for one in _conditions(status) if one.get("status") == "True"
    ]
    phase = status.get("state")
    if isinstance(phase, dict):
        times.append(when(phase.get("lastTransitionTime")))
    return max(filter(None, times), default=None)


def _conditions(status: Manifest) -> list[Manifest]:
    found = status.get("conditions") or []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _phase(pod: Manifest) -> str:
    return str(_map(pod, "status").get("phase", ""))


def when(value: Any) -> datetime | None:
    """A time of Kubernetes; None where it is none."""
    try:
        found = datetime.fromisoformat(str(value)) if value else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None


def _map(of: Manifest, key: str) -> Manifest:
    """A mapping of an object; empty where it is none: what another program wrote has any form."""
    found = of.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str:
    return one_line(str(value or ""))


__all__ = ["container_states", "newest_try", "of_job", "place_of", "queued_job", "ranks_of", "when"]
