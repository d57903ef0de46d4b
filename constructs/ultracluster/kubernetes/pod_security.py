"""Kubernetes' Pod Security Standards: the labels of a namespace, and what a pod of ours says to be let in.

Kubernetes documentation, "Pod Security Standards" and "Pod Security Admission". What EFA and accelerators
need comes from their device plugins, and the limit of locked memory from containerd (lifecycle_scripts,
step `limits`): neither level lets a pod add IPC_LOCK, and a process that is not root could not use it.
"""

from __future__ import annotations

from typing import Any

from ultracluster.config.kubernetes import PodSecurity

Manifest = dict[str, Any]

DEFAULT_UID = 1000
"""Of a job's processes, where they may not be root and the team names none."""
_LABEL = "pod-security.kubernetes.io"


def namespace_labels(level: PodSecurity, release: str) -> dict[str, str]:
    """Refuse, tell of and log what the level forbids, as this Kubernetes release means it.

    Args:
        level: `restricted` or `baseline`.
        release: of the control plane, as `1.36`: what a later one adds comes with the upgrade.
    """
    labels: dict[str, str] = {}
    for mode in ("enforce", "warn", "audit"):
        labels |= {f"{_LABEL}/{mode}": level, f"{_LABEL}/{mode}-version": f"v{release}"}
    return labels


def no_labels(level: PodSecurity, release: str) -> dict[str, str]:
    """The same labels for a namespace in which everything is allowed again."""
    everything = {
        key: "privileged" for key, value in namespace_labels(level, release).items() if value == level
    }
    return namespace_labels(level, release) | everything


def pod_context(level: PodSecurity, uid: int | None) -> Manifest:
    """`securityContext` of a pod of the namespace.

    Args:
        level: of the namespace.
        uid: of its processes; in a `baseline` namespace the image decides where it is None.
    """
    context: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
    if level == "restricted" or uid is not None:
        uid = DEFAULT_UID if uid is None else uid
        # without fsGroup, for which the kubelet may change the owner of every file of a volume
        context |= {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid}
    return context


def container_context(level: PodSecurity) -> Manifest:
    """`securityContext` of each of its containers."""
    context: Manifest = {"allowPrivilegeEscalation": False}
    if level == "restricted":
        context["capabilities"] = {"drop": ["ALL"]}
    return context
