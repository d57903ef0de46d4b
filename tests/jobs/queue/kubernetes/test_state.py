"""States of jobs as their operators write them: nodes, what they wait for, why they failed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes_cluster import Cluster
from queue_support import (
    RUNNING,
    as_person,
    cluster,
    one_job,
    open_queue,
    pending,
    run_jobset,
    submission,
    with_teams,
)

from ultracluster.jobs.queue.protocol import (
    Program,
)
from ultracluster.kubernetes.teams import group_of, team_rights

__all__ = ["cluster"]

pytestmark = pytest.mark.slow  # starts programs or listens


def test_a_job_that_runs_has_nodes(cluster: Cluster) -> None:
    queue = one_job(cluster)
    for index, pod in enumerate(run_jobset(cluster, **RUNNING)):
        pod["spec"]["nodeName"] = f"ip-10-0-0-{index}.ec2.internal"
    (job,) = queue.jobs()
    assert (job.state, job.nodes) == ("running", ("ip-10-0-0-0.ec2.internal", "ip-10-0-0-1.ec2.internal"))
    assert job.started == datetime(2026, 11, 23, 15, tzinfo=UTC)
    assert queue.job("research/train") == job


def test_a_rayjob_is_its_head_its_workers_and_what_submits_its_program(cluster: Cluster) -> None:
    known = with_teams(**{"orchestrator.kuberay": True})
    cluster.rights = list(team_rights(known))
    person = as_person(cluster, "ada", group_of("research"))
    queue, said = open_queue(cluster, known, account=person)
    queue.submit(submission(known, Program("grpo.py", b"pass", ("--steps", "3")), framework="ray"))
    job = cluster.find("rayjobs", "research", "train")
    assert job["spec"]["entrypoint"] == "python /ultracluster/program/grpo.py --steps 3"
    assert said[-1] == "program: /ultracluster/program/grpo.py"
    assert [(job.state, job.wanted_nodes) for job in queue.jobs()] == [("waiting", 2)]

    ray = job["spec"]["rayClusterSpec"]
    name = "train-x7k2p"
    job["status"] = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterName": name}

    (state,) = RUNNING["containerStatuses"]
    states = [{**state, "name": name} for name in ("ray", "ray-job-submitter")]
    running = {**RUNNING, "containerStatuses": states}

    def labels(role: str) -> Any:
        return lambda index: {
            "ray.io/cluster": name,
            "ray.io/node-type": role,
            "name": f"{name}-{role}-9{index}",
        }

    (head,) = cluster.start_pods(job, ray["headGroupSpec"]["template"], 1, labels("head"), **running)
    (worker,) = cluster.start_pods(
        job, ray["workerGroupSpecs"][0]["template"], 1, labels("worker"), **running
    )
    submitter = job["spec"]["submitterPodTemplate"]
    (driver,) = cluster.start_pods(
        job, submitter, 1, lambda _: {"batch.kubernetes.io/job-name": "train"}, **running
    )
    other = {"ray.io/cluster": "other-x7k2p", "ray.io/node-type": "head"}
    cluster.start_pods(job, ray["headGroupSpec"]["template"], 1, lambda _: dict(other), **running)
    head["spec"]["nodeName"], worker["spec"]["nodeName"] = "ip-0", "ip-1"
    cluster.log(driver).write("step 1 reward 0.5")
    cluster.log(worker).write("(WorkerDict) loaded")

    (listed,) = queue.jobs()
    assert (listed.state, listed.nodes) == ("running", ("ip-0", "ip-1"))
    assert queue.log("train").data == b"step 1 reward 0.5\n"
    assert queue.log("train", part="2").data == b"(WorkerDict) loaded\n"
    assert queue.log("train", part="ip-1").data == b"(WorkerDict) loaded\n"

    job["status"] |= {
        "jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed",
        "message": "Job entrypoint command failed with exit code 1", "endTime": "2026-11-23T15:06:00Z",
    }  # fmt: skip
    found = queue.job("train")
    assert (found.state, found.ended) == ("failed", datetime(2026, 11, 23, 15, 6, tzinfo=UTC))
    assert found.why == "AppFailed: Job entrypoint command failed with exit code 1"
    job["status"] |= {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
    assert queue.job("train").state == "completed"
    assert queue.cancel(["train"]) == {"train": ""}


WAITING = (
    "couldn't assign flavors to pod set node: insufficient unused quota for nvidia.com/gpu in flavor train, "
    "8 more needed"
)


UNSCHEDULABLE = "0/4 nodes are available: 4 Insufficient vpc.amazonaws.com/efa."


def workload(cluster: Cluster, *conditions: dict[str, str]) -> None:
    job = cluster.find("jobsets", "research", "train")
    cluster.put(
        "kueue.x-k8s.io/v1beta2",
        "workloads",
        {
            "metadata": {
                "name": "jobset-train", "namespace": "research",
                "ownerReferences": [{"kind": "JobSet", "name": "train", "uid": job["metadata"]["uid"]}],
            },
            "status": {"conditions": list(conditions)},
        },
    )  # fmt: skip


def test_what_a_job_waits_for_is_said_by_who_knows(cluster: Cluster) -> None:
    queue = one_job(cluster)
    workload(cluster, {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": WAITING})
    (job,) = queue.jobs()
    assert (job.state, job.detail, job.why) == ("waiting", "Queued", WAITING)

    cluster.find("workloads", "research", "jobset-train")["status"]["conditions"] = [
        {"type": "QuotaReserved", "status": "True"},
        {"type": "Admitted", "status": "True"},
    ]
    pods = run_jobset(cluster, phase="Pending")
    pods[1]["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": UNSCHEDULABLE}
    ]
    (job,) = queue.jobs()
    assert (job.state, job.detail) == ("waiting", "Pending")
    assert job.why == f"{pods[1]['metadata']['name']}: Unschedulable: {UNSCHEDULABLE}"

    pods[1]["status"] = pending(
        state={"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling\x1b[2J"}}
    )
    why = queue.job("train").why
    assert "ImagePullBackOff: Back-off pulling\\x1b[2J" in why

    pods[1]["status"] = RUNNING
    (job,) = queue.jobs()
    assert (job.state, job.why) == ("running", "1 of 2 pods run")


def test_pods_that_a_quota_refuses_are_an_event(cluster: Cluster) -> None:
    queue = one_job(cluster)
    cluster.put(
        "v1",
        "events",
        {
            "metadata": {"name": "e1", "namespace": "research"},
            "type": "Warning", "reason": "FailedCreate", "lastTimestamp": "2026-11-23T15:00:00Z",
            "message": 'pods "train-node-0-0" is forbidden: exceeded quota: ultracluster',
            "involvedObject": {"kind": "Job", "name": "train-node-0"},
        },
    )  # fmt: skip
    assert queue.job("train").why.startswith("FailedCreate: pods")


def test_the_pod_that_ended_first_is_why_a_job_failed(cluster: Cluster) -> None:
    queue = one_job(cluster)
    pods = run_jobset(cluster, phase="Failed")
    for index, (pod, reason, code) in enumerate(zip(pods, ("Error", "OOMKilled"), (1, 137), strict=True)):
        at = f"2026-11-23T15:0{5 - index}:00Z"
        over = {"terminated": {"reason": reason, "exitCode": code, "finishedAt": at}}
        pod["status"]["containerStatuses"] = [{"name": "trainer", "restartCount": 0, "state": over}]
        pod["spec"]["nodeName"] = f"ip-{index}"
    cluster.find("jobsets", "research", "train")["status"] = {
        "restarts": 3,
        "conditions": [
            {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts",
             "message": "jobset failed due to reaching max number of restarts",
             "lastTransitionTime": "2026-11-23T15:06:00Z"}
        ],
    }  # fmt: skip
    job = queue.job("train")
    assert (job.state, job.detail, job.exit_code, job.restarts) == ("failed", "Failed", 137, 3)
    assert job.why.startswith(
        f"{pods[1]['metadata']['name']} on ip-1 ended first: OOMKilled, exit code 137 (ReachedMax"
    )
    assert job.ended == datetime(2026, 11, 23, 15, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"conditions": [{"type": "Completed", "status": "True"}]}, "completed"),
        (
            {"conditions": [{"type": "Succeeded", "status": "True"}, {"type": "Running", "status": "False"}]},
            "completed",
        ),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, "waiting"),
        ({"conditions": "none", "state": {"phase": "Aborted"}}, "cancelled"),
        ({"state": {"phase": "Completed"}}, "completed"),
        ({"conditions": [None, 5, {"type": None}]}, "waiting"),
        ("nothing", "waiting"),
    ],
)
def test_what_operators_write_is_read_as_it_comes(cluster: Cluster, status: Any, state: str) -> None:
    queue = one_job(cluster)
    cluster.find("jobsets", "research", "train")["status"] = status
    assert queue.job("train").state == state
