"""Kubernetes objects that HyperPod needs in a cluster before its first node, and those of its Karpenter.

AWS has the former in a chart that lies in a git repository only (aws/sagemaker-hyperpod-cli, helm_chart), so
they are written out here: the health-monitoring agent, without which no faulty node is found, and the rights
that the service uses for deep health checks, patching and restarted jobs. Names of namespace, accounts and
user are the service's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ultracluster.catalog.hyperpod_eks import health_agent_image
from ultracluster.catalog.instance_facts import InstanceType

NAMESPACE = "aws-hyperpod"
SERVICE_USER = "hyperpod-service-linked-role"
"""As whom the service speaks to the Kubernetes API."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""On HyperPod's nodes with `ml.` before the type."""
_AGENT = "health-monitoring-agent"

Manifest = dict[str, Any]


def namespace() -> Manifest:
    """The namespace that the service expects."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"name": NAMESPACE}},
    }


def service_rights() -> tuple[Manifest, ...]:
    """What the service may do for deep health checks, patching and restarted jobs."""
    checks, restart = "deep-health-check-service-account", "job-auto-restart"
    user = {"kind": "User", "name": SERVICE_USER, "apiGroup": _RBAC}
    return (
        _account(checks),
        _role(f"{checks}-role", _rule("get list", "nodes"), _rule("get list patch", "pods")),
        _binding(f"{checks}-role-binding", f"{checks}-role", _of_account(checks)),
        _role("hyperpod-patching", _rule("list", "pods"), _rule("create", "pods/eviction")),
        _binding("hyperpod-patching", "hyperpod-patching", user),
        _role(
            restart,
            _rule("get list watch", "nodes", "nodes/status", "pods", "pods/status"),
            _rule("delete deletecollection", "pods"),
            _rule("patch", "nodes", "nodes/status"),
            _rule("create", "events", groups=("", "events.k8s.io")),
            _rule(
                "get list watch delete patch update",
                "pytorchjobs",
                "pytorchjobs/status",
                groups=("kubeflow.org",),
            ),
            _rule("get create update delete", "leases", groups=("coordination.k8s.io",)),
        ),
        _binding(restart, restart, user),
    )


def health_agent(
    types: Iterable[InstanceType], *, region: str, image: str | None = None
) -> tuple[Manifest, ...]:
    """The agent on each node of these types, which marks faulty ones for replacement.

    Args:
        types: of HyperPod's groups.
        region: where the image comes from; see `health_agent_image`.
        image: a copy of the image, for networks without a way to AWS's.
    """
    types = list(types)
    manifests: list[Manifest] = [
        _role(
            _AGENT,
            _rule("get", "nodes"),
            _rule("patch", "nodes", "nodes/status"),
            _rule("create patch update", "events", groups=("", "events.k8s.io")),
        ),
        _account(_AGENT),
        _binding(_AGENT, _AGENT, _of_account(_AGENT)),
    ]
    image = image or health_agent_image(region)
    if gpus := _labels(types, "NVIDIA"):
        manifests.append(_daemon_set(_AGENT, image, gpus, {}))
    if neuron := _labels(types, "AWS"):
        arguments = [
            "--enable-k8s-exporter=false",
            "--config.system-log-monitor=/config/system-message-monitor.json",
        ]
        no_gpus = {"NVIDIA_VISIBLE_DEVICES": "void", "NVIDIA_DRIVER_CAPABILITIES": ""}
        manifests.append(_daemon_set(f"{_AGENT}-non-nvidia", image, neuron, no_gpus, arguments))
    return tuple(manifests)


def karpenter_pools(
    groups: Mapping[str, InstanceType], *, max_nodes: int, idle_minutes: int
) -> tuple[Manifest, ...]:
    """A class and a pool of nodes for each group, so that each has its own limit.

    SageMaker Developer Guide, "Create a NodeClass", "Create a NodePool". The cluster knows both kinds of
    objects once HyperPod has installed its Karpenter.

    Args:
        groups: type by name of the instance group; names may have capitals, Kubernetes' names may not.
        max_nodes: at the most in each group.
        idle_minutes: that a node is empty before it is ended; one with a pod is never taken away.
    """
    manifests: list[Manifest] = []
    for group, instance_type in groups.items():
        name = group.lower()
        manifests += [
            {
                "apiVersion": "karpenter.sagemaker.amazonaws.com/v1",
                "kind": "HyperpodNodeClass",
                "metadata": {"name": name},
                "spec": {"instanceGroups": [group]},
            },
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": {"name": name},
                "spec": {
                    # a job that runs for weeks is not moved to a cheaper node
                    "disruption": {
                        "consolidationPolicy": "WhenEmpty",
                        "consolidateAfter": f"{idle_minutes}m",
                    },
                    "limits": {"cpu": str(instance_type.vcpu * max_nodes)},
                    "template": {
                        "spec": {
                            "expireAfter": "Never",
                            "nodeClassRef": {
                                "group": "karpenter.sagemaker.amazonaws.com",
                                "kind": "HyperpodNodeClass",
                                "name": name,
                            },
                            "requirements": [{"key": INSTANCE_TYPE, "operator": "Exists"}],
                        }
                    },
                },
            },
        ]
    return tuple(manifests)


_RBAC = "rbac.authorization.k8s.io"


def _labels(types: Sequence[InstanceType], maker: str) -> list[str]:
    names = [
        instance_type.hyperpod_name
        for instance_type in types
        if instance_type.accelerator and instance_type.accelerator.manufacturer == maker
    ]
    return list(dict.fromkeys(names))


def _rule(verbs: str, *resources: str, groups: Sequence[str] = ("",)) -> Manifest:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": verbs.split()}


def _role(name: str, *rules: Manifest) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }


def _account(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": NAMESPACE},
    }


def _of_account(name: str) -> Manifest:
    return {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}


def _binding(name: str, role: str, subject: Manifest) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _daemon_set(
    name: str,
    image: str,
    types: list[str],
    environment: Mapping[str, str],
    arguments: Sequence[str] = (),
) -> Manifest:
    resources = {"cpu": "500m", "memory": "512Mi"}
    fields = {"NODE_NAME": "spec.nodeName", "NODE_IP": "status.hostIP"}
    # what it reads and writes of the host: the kernel's messages, in the host's own time, and the log that
    # HyperPod uploads
    host = {"log": ("/var/log", False), "kmsg": ("/dev/kmsg", True), "localtime": ("/etc/localtime", True)}
    container: Manifest = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": resources, "requests": resources},
        "securityContext": {"runAsUser": 1000, "runAsGroup": 2000},
        "env": [
            *({"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()),
            *({"name": key, "value": value} for key, value in environment.items()),
        ],
        "volumeMounts": [
            {"name": key, "mountPath": path, "readOnly": read_only} for key, (path, read_only) in host.items()
        ],
    }
    if arguments:
        container["args"] = list(arguments)
    on_types = {"key": INSTANCE_TYPE, "operator": "In", "values": types}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "serviceAccountName": _AGENT,
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": [on_types]}]
                            }
                        }
                    },
                    "containers": [container],
                    "tolerations": [
                        {"effect": effect, "operator": "Exists"} for effect in ("NoSchedule", "NoExecute")
                    ],
                    "volumes": [{"name": key, "hostPath": {"path": path}} for key, (path, _) in host.items()],
                },
            },
        },
    }
