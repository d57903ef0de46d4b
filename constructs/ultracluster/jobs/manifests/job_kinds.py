# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""Kinds of jobs that a cluster of ours runs: where the API keeps them, and where their pods are in them.

Sources: the definitions of kubernetes-sigs/jobset v0.12.0, volcano-sh/volcano v1.15.1,
kubeflow/training-operator v1.9, kubeflow/mpi-operator v0.8, kubeflow/trainer v2, ray-project/kuberay v1.6.2;
aws/sagemaker-hyperpod-cli 011ca92 for HyperPod's operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]

EACH = "*"
"""Each of a list, or of a mapping, on the way to a template."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job."""

    kind: str
    version: str
    """Its apiVersion."""
    plural: str
    label: str
    """On its pods: the name of the job."""
    template: tuple[str, ...] = ()
    """The way to the template of its pods; `*` is each of a list or of a mapping. Empty where it has none."""
    further: tuple[tuple[str, ...], ...] = ()
    """Ways to templates that it may also have."""
    named: tuple[str, ...] = ("metadata", "name")
    """Place of the value of `label` in a job."""
    starts_job: bool = False
    """It starts a Job of its own name, too."""

    @property
    def ways(self) -> tuple[tuple[str, ...], ...]:
        return (self.template, *self.further) if self.template else ()

    def place(self, namespace: str | None) -> str:
        """Path of its objects; in every namespace for None."""
        return place(self.version, self.plural, namespace)

    def templates(self, job: Manifest) -> Iterator[Manifest]:
        """Every template of pods in a job; what is no mapping is left out."""
        for way in self.ways:
            found: list[Any] = [job]
            for step in way:
                found = [one for item in found for one in _below(item, step)]
            yield from (one for one in found if isinstance(one, dict))


JOB_NAME, JOBSET_NAME = "batch.kubernetes.io/job-name", "jobset.sigs.k8s.io/jobset-name"
RAY_CLUSTER = "ray.io/cluster"
_RAY = ("spec", "rayClusterSpec")
_KUBEFLOW = "training.kubeflow.org/job-name"
_POD_OF_JOB = ("spec", "template")
KINDS = (
    JobKind(
        "JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", JOBSET_NAME,
        ("spec", "replicatedJobs", EACH, "template", *_POD_OF_JOB),
    ),
    JobKind(
        "HyperPodPyTorchJob", "sagemaker.amazonaws.com/v1", "hyperpodpytorchjobs", "HPJob",
        ("spec", "replicaSpecs", EACH, "template"),
    ),
    JobKind(
        "PyTorchJob", "kubeflow.org/v1", "pytorchjobs", _KUBEFLOW,
        ("spec", "pytorchReplicaSpecs", EACH, "template"),
    ),
    JobKind(
        "MPIJob", "kubeflow.org/v2beta1", "mpijobs", _KUBEFLOW,
        ("spec", "mpiReplicaSpecs", EACH, "template"),
    ),
    # its pods are those of a runtime that the cluster has, in a JobSet
    JobKind("TrainJob", "trainer.kubeflow.org/v1alpha1", "trainjobs", JOBSET_NAME),
    JobKind(
        "RayJob", "ray.io/v1", "rayjobs", RAY_CLUSTER,
        (*_RAY, "headGroupSpec", "template"),
        further=((*_RAY, "workerGroupSpecs", EACH, "template"), ("spec", "submitterPodTemplate")),
        named=("status", "rayClusterName"), starts_job=True,
    ),
    JobKind(
        "Job", "batch.volcano.sh/v1alpha1", "jobs", "volcano.sh/job-name",
        ("spec", "tasks", EACH, "template"),
    ),
    JobKind("Job", "batch/v1", "jobs", JOB_NAME, _POD_OF_JOB),
)  # fmt: skip
"""What makes others comes first: a JobSet before the Job that it makes."""

COMPANIONS: dict[tuple[str, str], str] = {
    ("v1", "ConfigMap"): "configmaps",
    ("v1", "Service"): "services",
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): "resourceclaimtemplates",
    ("resource.nvidia.com/v1beta1", "ComputeDomain"): "computedomains",
}
"""What a job may bring with it, and its plural: by version and kind."""


def kind_of(document: Manifest) -> JobKind | None:
    """The kind of a job; None where it is none of these."""
    asked = document.get("apiVersion"), document.get("kind")
    return next((kind for kind in KINDS if (kind.version, kind.kind) == asked), None)


def place(version: str, plural: str, namespace: str | None) -> str:
    """Path of a kind's objects in a namespace, or in all."""
    where = f"/namespaces/{namespace}" if namespace is not None else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{where}/{plural}"


def _below(item: Any, step: str) -> list[Any]:
    if step != EACH:
        return [item[step]] if isinstance(item, dict) and step in item else []
    if isinstance(item, dict):
        return list(item.values())
    return list(item) if isinstance(item, list) else []
