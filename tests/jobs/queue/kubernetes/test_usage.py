"""What pods and workloads say that a job held of its nodes."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.jobs.queue.kubernetes.usage import run_of_workload, runs_of_pods
from ultracluster.jobs.queue.protocol import QueuedJob
from ultracluster.model import Cluster, resolve

JOB = QueuedJob(id="research/train", name="train", user="alice", team="research", state="completed")
NODE: dict[str, Any] = {
    "metadata": {"name": "n1", "labels": {"ultracluster/node-group": "train"}},
    "status": {"allocatable": {"cpu": "96", "memory": "1000Gi", "nvidia.com/gpu": "8"}},
}  # fmt: skip
MIG: dict[str, Any] = {
    "status": {"allocatable": {"cpu": "96", "nvidia.com/mig-1g.18gb": "8", "nvidia.com/mig-3g.71gb": "16"}}
}


@cache
def cluster() -> Cluster:
    return resolve(environment({}))


def pod(
    requests: dict[str, Any] | None = None, phase: str = "Succeeded", index: int = 0, **status: Any
) -> dict[str, Any]:
    ended = {"state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-20T12:00:00Z"}}}
    return {
        "metadata": {
            "name": f"train-{index}", "creationTimestamp": status.pop("made", "2026-11-20T09:59:00Z"),
            "labels": {"batch.kubernetes.io/job-completion-index": str(index)},
        },
        "spec": {
            "nodeName": status.pop("node", "n1"),
            "containers": [{"name": "a", "resources": {"limits": requests or {"nvidia.com/gpu": "8"}}}],
        },
        "status": {
            "phase": phase, "startTime": "2026-11-20T10:00:00Z",
            "containerStatuses": [ended if phase != "Running" else {"state": {"running": {}}}], **status,
        },
    }  # fmt: skip


SHARES: dict[str, tuple[dict[str, Any], Any, float, float]] = {
    "all GPUs": ({"nvidia.com/gpu": "8", "cpu": "10"}, NODE, 1.0, 1.0),
    "one GPU": ({"nvidia.com/gpu": 1, "memory": "10Gi"}, NODE, 0.125, 0.125),
    "half of the CPUs": ({"cpu": "48", "nvidia.com/gpu": 1}, NODE, 0.5, 0.125),
    "millicores": ({"cpu": "24000m"}, NODE, 0.25, 0.0),
    "memory": ({"memory": "750Gi"}, NODE, 0.75, 0.0),
    "slices of MIG": ({"nvidia.com/mig-3g.71gb": "2"}, MIG, 6 / 56, 6 / 56),
    "several profiles": ({"nvidia.com/mig-1g.18gb": 1, "nvidia.com/mig-3g.71gb": 1}, MIG, 4 / 56, 4 / 56),
    "a node that is gone": ({"nvidia.com/gpu": "2"}, None, 0.25, 0.25),
    "MIG of one": ({"nvidia.com/mig-7g.141gb": "2"}, None, 0.25, 0.25),
    "what nobody knows": ({"aws.amazon.com/neuroncore": "2"}, NODE, 1.0, 1.0),
    "EFA is no accelerator": ({"vpc.amazonaws.com/efa": "16", "cpu": "9600m"}, NODE, 0.1, 0.0),
}


@pytest.mark.parametrize("name", SHARES)
def test_the_part_of_a_node(name: str) -> None:
    requests, node, share, accelerators = SHARES[name]
    (run,) = runs_of_pods(cluster(), JOB, [pod(requests)], {"n1": node} if node else {})
    assert (run.share, run.accelerators) == (pytest.approx(share), pytest.approx(accelerators))
    assert (run.job, run.user, run.team, run.nodes) == ("research/train", "alice", "research", ("n1",))
    assert run.end and run.end - run.start == 7200


def test_each_try_of_a_place_is_a_start_and_what_waits_is_none() -> None:
    failed = pod(phase="Failed", made="2026-11-20T09:00:00Z")
    pods = [pod(phase="Running", made="2026-11-20T09:30:00Z"), failed, pod(index=1), pod(node="")]
    runs = list(runs_of_pods(cluster(), JOB, pods, {"n1": NODE}))
    assert sorted(run.attempt for run in runs) == ["1", "1", "2"]
    assert [run.end for run in runs if run.attempt == "2"] == [None]
    assert not list(runs_of_pods(cluster(), JOB, [pod(phase="Pending", startTime=None)], {}))


def test_a_pod_that_was_evicted_ends_with_its_last_condition() -> None:
    conditions = [{"type": "DisruptionTarget", "lastTransitionTime": "2026-11-20T11:00:00Z"}]
    evicted = pod(phase="Failed", containerStatuses=[], conditions=conditions)
    (run,) = runs_of_pods(cluster(), JOB, [evicted], {"n1": NODE})
    assert run.end and run.end - run.start == 3600


def workload(**more: Any) -> dict[str, Any]:
    times = {"Admitted": "2026-11-20T10:00:00Z", "Finished": "2026-11-20T12:00:00Z"} | more
    part = {
        "name": "node",
        "count": 4,
        "flavors": {"nvidia.com/gpu": "train"},
        "resourceUsage": {"nvidia.com/gpu": "20"},
    }
    return {
        "metadata": {"uid": "u1"},
        "status": {
            "admission": {"podSetAssignments": [part]},
            "conditions": [
                {"type": key, "status": "True", "lastTransitionTime": at} for key, at in times.items() if at
            ],
        },
    }  # fmt: skip


def test_a_workload_stands_for_pods_that_are_gone() -> None:
    ((run, group),) = run_of_workload(cluster(), JOB, workload())
    assert (group, len(run.nodes), run.share) == ("train", 3, pytest.approx(20 / 24))
    assert run.end and run.end - run.start == 7200
    assert not list(run_of_workload(cluster(), JOB, workload(Admitted=None)))
    assert not list(run_of_workload(cluster(), JOB, workload(Finished=None)))
