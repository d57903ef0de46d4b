"""A job that only holds nodes, or a part of one, for somebody who works in its pods by hand.

It is the job that the cluster's scheduler takes for training, so that it waits in the team's queue, is
counted, and has the team's user, volumes and network. It runs `sleep`: when that ends, so does the job.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ultracluster.jobs.manifests.job_kinds import kind_of
from ultracluster.jobs.manifests.pytorch_job import pytorch_manifests
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.model import Cluster

Manifest = dict[str, Any]

LONGEST = 7 * 24 * 3600
"""Seconds; a shell that somebody forgot gives its nodes back."""
_DAYS = re.compile(r"(\d{1,3})-(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,5})(?::(\d{2}))?(?::(\d{2}))?", re.ASCII)
_NUMBER = re.compile(r"\d+")
_SLEEP = 'trap "exit 0" TERM INT; sleep {seconds} & wait $!'
_GRACE_SECONDS = 10


def seconds_of(time: str) -> int:
    """Seconds of a limit as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours.

    Raises:
        ValueError: it has another form, or is too long.
    """
    if match := _DAYS.fullmatch(time):
        days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    elif match := _CLOCK.fullmatch(time):
        first, second, third = (int(group or 0) for group in match.groups())
        days, hours, minutes, seconds = (
            (0, first, second, third) if match[3] is not None else (0, 0, first, second)
        )
    else:
        raise ValueError(f"--time {time!r} has another form than 2:00:00 or 1-12")
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not 0 < total <= LONGEST:
        raise ValueError(
            f"--time {time}: a shell lasts a minute at least and {LONGEST // 86400} days at the most"
        )
    return total


def shell_manifests(
    cluster: Cluster, job: PyTorchJob, *, gpus: int | None, seconds: int
) -> tuple[Manifest, ...]:
    """The objects of a shell, in the order in which they are applied.

    Args:
        job: its pool, nodes, name, team and image.
        gpus: accelerators of each pod; the whole node where it is None.
        seconds: after which it ends by itself.

    Raises:
        ValueError: there is no scheduler for it, or it cannot do what is asked.
    """
    pool = job.pool
    if gpus is not None and gpus > pool.per_node:
        raise ValueError(
            f"--gpus {gpus}: a node of {pool.group} has {pool.per_node}. Use at most: --gpus {pool.per_node}"
        )
    objects: tuple[Manifest, ...] = json.loads(json.dumps(pytorch_manifests(cluster, job)))
    made = objects[-1]
    kind = kind_of(made)
    assert kind
    for template in kind.templates(made):
        spec = template["spec"]
        (container,) = spec["containers"]
        container["command"] = ["/bin/sh", "-c", _SLEEP.format(seconds=seconds)]
        container.pop("args", None)
        spec["terminationGracePeriodSeconds"] = _GRACE_SECONDS
        if gpus is None or gpus == pool.per_node:
            continue
        if spec.get("resourceClaims"):
            raise ValueError(f"pods of {pool.group} claim devices of a whole node: leave --gpus away")
        container["resources"] = _part(container["resources"]["requests"], pool.resource, gpus, pool.per_node)
    spec = made["spec"]
    if "failurePolicy" in spec:
        spec["failurePolicy"] = {"maxRestarts": 0}
    if "policies" in spec:  # of Volcano
        spec["policies"] = [
            {"event": "PodEvicted", "action": "TerminateJob"},
            {"event": "PodFailed", "action": "TerminateJob"},
            {"event": "TaskCompleted", "action": "CompleteJob"},
        ]
    return tuple(objects)


def _part(whole: dict[str, str], resource: str, gpus: int, of: int) -> Manifest:
    """Requests of a part of a node; without an accelerator the share of one. EFA is for whole nodes."""
    share = max(1, gpus)
    asked: dict[str, str] = {resource: str(gpus)} if gpus else {}
    if "cpu" in whole:
        asked["cpu"] = str(max(1, int(whole["cpu"]) * share // of))
    if "memory" in whole:
        amount = _NUMBER.match(whole["memory"])
        asked["memory"] = f"{max(1, int(amount[0] if amount else 1) * share // of)}Gi"
    return {"requests": asked, "limits": asked}
