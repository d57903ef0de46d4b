"""A queue of jobs on Kubernetes: its cluster, who asks, and jobs as their operators run them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account
from kubernetes_cluster import ADMIN, CUSTOM, Cluster, serving
from kubernetes_service import Api, serve_cluster
from kubernetes_support import environment

from ultracluster.account.aws import Account, Identity
from ultracluster.jobs.manifests.pytorch_job import pytorch_manifests
from ultracluster.jobs.queue.kubernetes import KubernetesQueue
from ultracluster.jobs.queue.kubernetes import submit as submitting
from ultracluster.jobs.queue.protocol import Program, Submission
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster as Environment
from ultracluster.model import resolve
from ultracluster.model.job_fit import job_pool

TEAMS: dict[str, Any] = {"research": {"quota": 16, "limit": 24}, "product": {"quota": 8}}
IMAGE = "111122223333.dkr.ecr.us-east-2.amazonaws.com/trainer:1"
TOKEN = "a1b2c3d4e5f60718"  # noqa: S105


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(submitting, "WAITS", (0.0, 0.0))
    with serving(tmp_path, Cluster(*CUSTOM)) as api:
        api.namespace("default", "research", "product", "kube-system")
        yield api


def with_teams(**changes: Any) -> Environment:
    return resolve(environment({"teams": TEAMS, **changes}))


def as_person(cluster: Cluster, name: str = "operator", *groups: str) -> Account:
    """An account whose token is that of a person in these groups; an admin without."""
    key = f"AKIA{name.upper():X<16}"
    cluster.groups[key] = groups or (ADMIN,)
    NOW.endpoint, NOW.authority = cluster.endpoint, cluster.authority
    return _account(key, name)


NOW = Api()
"""Where the API of this test is."""


@cache
def _account(key: str, name: str) -> Account:
    """One for all tests: clients take half a second."""
    person = account("us-east-2")
    person._session._session.set_credentials(key, "example")
    person._identity = Identity("111122223333", f"arn:aws:sts::111122223333:assumed-role/people/{name}")
    serve_cluster(person, NOW)
    return person


def open_queue(
    cluster: Cluster, known: Environment | None = None, *, team: str | None = "research", **more: Any
) -> tuple[KubernetesQueue, list[str]]:
    said: list[str] = []
    made = more.pop("account", None) or as_person(cluster)
    return KubernetesQueue(made, known or with_teams(), team=team, say=said.append, **more), said


def text(
    known: Environment,
    *,
    team: str | None = "research",
    name: str = "train",
    script: str = "/fsx/train.py",
    framework: Any = "pytorch",
) -> str:
    pool = job_pool(known, None)
    job = PyTorchJob(
        pool=pool, nodes=2, name=name, script=script, processes=8, image=IMAGE, team=team, priority="normal",
        framework=framework,
    )  # fmt: skip
    return "---\n".join(yaml_text(one) for one in pytorch_manifests(known, job))


def submission(known: Environment, program: Program | None = None, **more: Any) -> Submission:
    return Submission(text(known, **more), more.get("name", "train"), TOKEN, program)


def run_jobset(
    cluster: Cluster, name: str = "train", space: str = "research", **status: Any
) -> list[dict[str, Any]]:
    """What JobSet and Job do: a Job, and its pods."""
    jobset = cluster.find("jobsets", space, name)
    (part,) = jobset["spec"]["replicatedJobs"]
    labels = {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": part["name"]}
    child = cluster.objects.get(("batch/v1", "jobs", space, f"{name}-node-0")) or cluster.put(
        "batch/v1",
        "jobs",
        {
            "metadata": {
                "name": f"{name}-node-0", "namespace": space, "labels": labels,
                "ownerReferences": [
                    {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "name": name,
                     "uid": jobset["metadata"]["uid"], "controller": True}
                ],
            },
            "spec": part["template"]["spec"],
        },
    )  # fmt: skip

    def own(index: int) -> dict[str, str]:
        return {
            **labels,
            "batch.kubernetes.io/job-name": f"{name}-node-0",
            "batch.kubernetes.io/job-completion-index": str(index),
        }

    return cluster.start_pods(child, part["template"]["spec"]["template"], 2, own, **status)


RUNNING: dict[str, Any] = {
    "phase": "Running",
    "startTime": "2026-11-23T15:00:00Z",
    "containerStatuses": [
        {"name": "trainer", "restartCount": 0, "state": {"running": {"startedAt": "2026-11-23T15:00:00Z"}}}
    ],
}


def one_job(cluster: Cluster) -> KubernetesQueue:
    queue, _ = open_queue(cluster)
    queue.submit(submission(with_teams()))
    return queue


def pending(**container: Any) -> dict[str, Any]:
    return {"phase": "Pending", "containerStatuses": [{"name": "trainer", "restartCount": 0, **container}]}
