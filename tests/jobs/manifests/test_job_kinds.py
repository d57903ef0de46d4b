"""Kinds of jobs: their places are those of the API, and the way to their pods finds what we write."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.jobs.manifests.job_kinds import COMPANIONS, KINDS, JobKind, kind_of, place
from ultracluster.kubernetes.teams import team_rights
from ultracluster.model import resolve

POD = {"spec": {"containers": []}}
ROWS: dict[str, dict[str, Any]] = {
    "JobSet": {"replicatedJobs": [{"template": {"spec": {"template": POD}}}] * 2},
    "HyperPodPyTorchJob": {"replicaSpecs": [{"template": POD}] * 2},
    "PyTorchJob": {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"template": POD}}},
    "MPIJob": {"mpiReplicaSpecs": {"Launcher": {"template": POD}, "Worker": {"template": POD}}},
    "RayJob": {
        "rayClusterSpec": {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [{"template": POD}]},
        "submitterPodTemplate": POD,
    },
    "Job batch.volcano.sh/v1alpha1": {"tasks": [{"template": POD}] * 2},
    "Job batch/v1": {"template": POD},
    "TrainJob": {"trainer": {"numNodes": 2}},
}


def row(kind: JobKind) -> dict[str, Any]:
    return ROWS.get(kind.kind) or ROWS[f"{kind.kind} {kind.version}"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind} {kind.version}")
def test_the_way_to_its_pods(kind: JobKind) -> None:
    job = {"apiVersion": kind.version, "kind": kind.kind, "spec": row(kind)}
    assert kind_of(job) is kind
    found = list(kind.templates(job))
    counts = {"Job batch/v1": 1, "TrainJob trainer.kubeflow.org/v1alpha1": 0, "RayJob ray.io/v1": 3}
    assert found == [POD] * counts.get(f"{kind.kind} {kind.version}", 2)
    for broken in ({}, {"spec": None}, {"spec": []}, {"spec": dict.fromkeys(row(kind), "x")}):
        assert list(kind.templates(broken)) in ([], ["x"])


def test_without_kuberay_members_make_no_rayjobs_which_no_queue_would_count() -> None:
    (role, *_) = team_rights(resolve(environment({"teams": {"research": {"quota": 8}}})))
    assert "ray.io" not in {group for rule in role["rules"] for group in rule["apiGroups"]}


def test_places() -> None:
    assert place("v1", "pods", "research") == "/api/v1/namespaces/research/pods"
    assert place("batch/v1", "jobs", None) == "/apis/batch/v1/jobs"


def test_members_may_make_every_kind_and_what_it_brings() -> None:
    asked = {"teams": {"research": {"quota": 8}}, "orchestrator.kuberay": True}
    (role, *_) = team_rights(resolve(environment(asked)))
    may = {
        (group, resource)
        for rule in role["rules"]
        if {"create", "delete", "get", "list", "patch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    kinds = {(kind.version.rpartition("/")[0], kind.plural) for kind in KINDS}
    assert kinds <= may
    # claims are theirs only where the cluster has devices that are claimed
    brought = {("", plural) for (version, _), plural in COMPANIONS.items() if version == "v1"}
    assert brought <= may
