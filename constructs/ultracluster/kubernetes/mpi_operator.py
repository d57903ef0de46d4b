"""The MPI operator in objects of our own: it has no chart, and its makers' manifests are not copied.

kubeflow/mpi-operator v0.8.0 (`catalog/mpi_operator.json`). The schema of MPIJob is small: it says what must
be there and of what kind it is, and leaves templates of pods to the operator and to Kubernetes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ultracluster.catalog.eks import mpi_operator_image
from ultracluster.config.nodes import ROLE_LABEL
from ultracluster.kubernetes.tolerations import Tolerations

NAMESPACE = "mpi-operator"
NAME = "mpi-operator"
GROUP, VERSION = "kubeflow.org", "v2beta1"
_RBAC = "rbac.authorization.k8s.io"
_NOBODY = 65532
_HEALTH = 8080

Manifest = dict[str, Any]


def mpi_operator(*, image: str | None = None, tolerations: Tolerations | None = None) -> tuple[Manifest, ...]:
    """The operator and the definition of MPIJob, in the order in which they are applied.

    Args:
        image: a copy of its container image, for networks without a way to its maker's.
        tolerations: of taints that the system nodes have.
    """
    return (
        _object("v1", "Namespace", NAMESPACE, namespace=None),
        job_definition(),
        _object("v1", "ServiceAccount", NAME),
        _object(f"{_RBAC}/v1", "ClusterRole", NAME, namespace=None, rules=_OPERATOR),
        _binding("ClusterRoleBinding", "ClusterRole", None),
        _object(f"{_RBAC}/v1", "Role", NAME, rules=_ELECTION),
        _binding("RoleBinding", "Role", NAMESPACE),
        # whoever may edit a namespace may run jobs in it
        _object(
            f"{_RBAC}/v1",
            "ClusterRole",
            f"{NAME}-edit",
            namespace=None,
            labels={f"{_RBAC}/aggregate-to-edit": "true"},
            rules=[_rule("create delete get list patch update watch", "mpijobs", groups=(GROUP,))],
        ),
        _deployment(image or mpi_operator_image(), tolerations or []),
    )


def job_definition() -> Manifest:
    """The definition of MPIJob `v2beta1`."""
    return _object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"mpijobs.{GROUP}",
        namespace=None,
        spec={
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "MPIJob", "listKind": "MPIJobList", "plural": "mpijobs", "singular": "mpijob"},
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                        {
                            "name": "State",
                            "type": "string",
                            "jsonPath": '.status.conditions[?(@.status=="True")].type',
                        },
                    ],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {"spec": _SPEC, "status": _open()},
                        }
                    },
                }
            ],
        },
    )


def _open(**more: Any) -> Manifest:
    """An object of which the operator knows more than this schema."""
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **more}


def _one_of(*values: str) -> Manifest:
    return {"type": "string", "enum": list(values)}


def _number(least: int) -> Manifest:
    return {"type": "integer", "format": "int32", "minimum": least}


def _replicas(least: int, most: int | None = None) -> Manifest:
    count = _number(least) if most is None else {**_number(least), "maximum": most}
    return _open(
        required=["template"],
        properties={
            "replicas": count,
            "restartPolicy": _one_of("Always", "ExitCode", "Never", "OnFailure"),
            "template": _open(required=["spec"], properties={"metadata": _open(), "spec": _open()}),
        },
    )


_SPEC = _open(
    required=["mpiReplicaSpecs"],
    properties={
        "slotsPerWorker": _number(1),
        "runLauncherAsWorker": {"type": "boolean"},
        "sshAuthMountPath": {"type": "string"},
        "launcherCreationPolicy": _one_of("AtStartup", "WaitForWorkersReady"),
        "mpiImplementation": _one_of("Intel", "MPICH", "OpenMPI"),
        "runPolicy": _open(
            properties={
                "activeDeadlineSeconds": {"type": "integer", "format": "int64", "minimum": 1},
                "backoffLimit": _number(0),
                "cleanPodPolicy": _one_of("All", "None", "Running"),
                "managedBy": {"type": "string"},
                "suspend": {"type": "boolean"},
                "ttlSecondsAfterFinished": _number(0),
            }
        ),
        "mpiReplicaSpecs": {
            "type": "object",
            "required": ["Launcher"],
            "properties": {"Launcher": _replicas(1, 1), "Worker": _replicas(0)},
        },
    },
)


def _rule(verbs: str, *resources: str, groups: Sequence[str] = ("",)) -> Manifest:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": verbs.split()}


_OPERATOR = [
    _rule("create get list update watch", "configmaps", "secrets", "services"),
    _rule("create delete get list patch update watch", "pods"),
    _rule("create patch", "events"),
    _rule("create get list update watch", "jobs", groups=("batch",)),
    _rule("update", "jobs/status", groups=("batch",)),
    _rule("get list patch update watch", "mpijobs", groups=(GROUP,)),
    _rule("update", "mpijobs/finalizers", groups=(GROUP,)),
    _rule("get patch update", "mpijobs/status", groups=(GROUP,)),
    # it watches them whether or not it schedules gangs
    _rule("get list watch", "priorityclasses", groups=("scheduling.k8s.io",)),
]
_ELECTION = [_rule("create get update", "leases", groups=("coordination.k8s.io",))]


def _object(
    api: str,
    kind: str,
    name: str,
    *,
    namespace: str | None = NAMESPACE,
    labels: dict[str, str] | None = None,
    **more: Any,
) -> Manifest:
    metadata: Manifest = {"name": name, "labels": {"app.kubernetes.io/name": NAME, **(labels or {})}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def _binding(kind: str, role: str, namespace: str | None) -> Manifest:
    return _object(
        f"{_RBAC}/v1",
        kind,
        NAME,
        namespace=namespace,
        roleRef={"apiGroup": _RBAC, "kind": role, "name": NAME},
        subjects=[{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    )


def _deployment(image: str, tolerations: Tolerations) -> Manifest:
    label = {"app.kubernetes.io/name": NAME}
    container = {
        "name": NAME,
        "image": image,
        # without arguments the image prints its help
        "args": [f"--lock-namespace={NAMESPACE}"],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": _HEALTH}, "initialDelaySeconds": 10},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    return _object(
        "apps/v1",
        "Deployment",
        NAME,
        spec={
            "replicas": 1,
            "selector": {"matchLabels": label},
            "template": {
                "metadata": {"labels": label},
                "spec": {
                    "serviceAccountName": NAME,
                    "nodeSelector": {ROLE_LABEL: "system"},
                    **({"tolerations": tolerations} if tolerations else {}),
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _NOBODY,
                        "runAsGroup": _NOBODY,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                },
            },
        },
    )


__all__ = ["GROUP", "NAMESPACE", "VERSION", "job_definition", "mpi_operator"]
