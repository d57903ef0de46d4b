"""The cluster of docs/tutorials/first-job-kubernetes.md: empty, full, training, and done.

What is asked meets `kubernetes_cluster.Cluster`, which refuses what an API refuses; pods, logs are invented.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account
from kubernetes_cluster import CUSTOM, Cluster, serving
from kubernetes_service import Api, serve_cluster

from ultracluster.account.aws import Identity
from ultracluster.cli import job_queue, job_watch
from ultracluster.config import load
from ultracluster.jobs.manifests.job_documents import USER
from ultracluster.jobs.manifests.pytorch_job import pytorch_manifests
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.model import resolve
from ultracluster.model.job_fit import job_pool

WAITS = (
    "couldn't assign flavors to pod set node: insufficient unused quota for nvidia.com/gpu in flavor train, "
    "8 more needed"
)
FIRST = (
    "2 processes on cuda, 812,032 parameters, from step 0",
    "step 10 loss 3.912000",
    "step 20 loss 3.104000",
)
RUNS: dict[str, Any] = {
    "phase": "Running",
    "startTime": "2026-11-23T15:00:00Z",
    "containerStatuses": [
        {"name": "trainer", "restartCount": 0, "state": {"running": {"startedAt": "2026-11-23T15:00:00Z"}}}
    ],
}


@contextmanager
def empty(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    known = account("us-east-2")
    known._identity = Identity("111122223333", "arn:aws:sts::111122223333:assumed-role/research/ada")
    patch.setattr(job_queue, "open_account", lambda *_: known)
    patch.setattr(job_watch, "EVERY", 0.05)
    with tempfile.TemporaryDirectory() as keys, serving(Path(keys), Cluster(*CUSTOM)) as cluster:
        cluster.namespace("default")
        api = Api()
        api.endpoint, api.authority = cluster.endpoint, cluster.authority
        serve_cluster(known, api)
        yield cluster


def submit(folder: Path, cluster: Cluster) -> dict[str, Any]:
    """The job of step 3, as the API has it."""
    known = resolve(load(folder / "environments" / "eks-p5en.yaml").environment)
    job = PyTorchJob(
        pool=job_pool(known, None), nodes=2, name="train", script="/fsx/train.py", processes=8,
        image="example.com/trainer:1", priority="normal",
    )  # fmt: skip
    made = pytorch_manifests(known, job)[-1]
    made["metadata"]["annotations"] = {USER: "ada"}
    return cluster.put(made["apiVersion"], "jobsets", made)


def start(cluster: Cluster, jobset: dict[str, Any]) -> list[dict[str, Any]]:
    """Its pods, as JobSet and Job make them."""
    template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]

    def own(index: int) -> dict[str, str]:
        return {
            "jobset.sigs.k8s.io/jobset-name": "train",
            "batch.kubernetes.io/job-completion-index": str(index),
        }

    pods = cluster.start_pods(jobset, template, 2, own, **RUNS)
    for index, pod in enumerate(pods):
        pod["spec"]["nodeName"] = f"ip-10-0-0-{index}.us-east-2.compute.internal"
    return pods


@contextmanager
def waiting(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with empty(folder, patch) as cluster:
        uid = submit(folder, cluster)["metadata"]["uid"]
        owner = {"kind": "JobSet", "name": "train", "uid": uid}
        held = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": WAITS}
        cluster.put(
            "kueue.x-k8s.io/v1beta2",
            "workloads",
            {
                "metadata": {"name": "jobset-train", "namespace": "default", "ownerReferences": [owner]},
                "status": {"conditions": [held]},
            },
        )
        yield


@contextmanager
def running(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with empty(folder, patch) as cluster:
        first, second = start(cluster, submit(folder, cluster))
        cluster.log(first).write(*FIRST)
        cluster.log(second).write("NCCL INFO Using network AWS Libfabric")
        yield


@contextmanager
def trained(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with empty(folder, patch) as cluster:
        over = threading.Event()
        controller = threading.Thread(target=_train, args=(cluster, over))
        controller.start()
        try:
            yield
        finally:
            over.set()
            controller.join()


def _train(cluster: Cluster, over: threading.Event) -> None:
    while not over.wait(0.05):
        if cluster.names("jobsets", "default"):
            jobset = cluster.find("jobsets", "default", "train")
            first, _ = start(cluster, jobset)
            cluster.log(first).write(*FIRST, "step 60 loss 2.481000")
            done = {"type": "Completed", "status": "True", "lastTransitionTime": "2026-11-23T15:10:00Z"}
            jobset["status"] = {"conditions": [done]}
            return
