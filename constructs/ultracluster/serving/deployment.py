"""A model server of vLLM or SGLang as plain objects of Kubernetes.

A Deployment where a replica has a node or a part of one; a LeaderWorkerSet (kubernetes-sigs/lws v0.10.0,
`leaderworkerset.x-k8s.io/v1`) where it spans several; two StatefulSets and a router where prefill and decode
are apart, because the router must know each pod by a name of its own.
"""

from __future__ import annotations

from typing import Any, Literal

from ultracluster.kubernetes.isolation import SERVING_PORT, job_namespace, job_user
from ultracluster.kubernetes.pod_security import container_context, pod_context
from ultracluster.model import Cluster
from ultracluster.serving.pod import (
    BOOTSTRAP_PORT,
    Role,
    Server,
    labels_of,
    pod_template,
    server_claims,
)

Manifest = dict[str, Any]


def serving_manifests(cluster: Cluster, server: Server) -> tuple[Manifest, ...]:
    """The objects of a server, in the order in which they are applied.

    Raises:
        ValueError: the cluster lacks what it requires.
    """
    claimed = server_claims(cluster, server).objects
    if server.prefill:
        return (*claimed, *_apart(cluster, server))
    entry = _service(cluster, server, server.name, labels_of(server))
    if server.over_nodes:
        settings = cluster.kubernetes
        if not (settings and settings.leader_worker_set):
            raise ValueError(
                "a replica over several nodes is a LeaderWorkerSet, and orchestrator.leader_worker_set is off"
            )
        entry["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] = "0"
        return (*claimed, entry, _leader_worker_set(cluster, server))
    return (*claimed, entry, _deployment(cluster, server))


def _deployment(cluster: Cluster, server: Server) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(cluster, server, server.name),
        "spec": {
            "replicas": server.replicas,
            "selector": {"matchLabels": labels_of(server)},
            # no GPU is left for one more while an old replica still has its own
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "progressDeadlineSeconds": 7200,
            "template": pod_template(cluster, server),
        },
    }


def _leader_worker_set(cluster: Cluster, server: Server) -> Manifest:
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _metadata(cluster, server, server.name),
        "spec": {
            "replicas": server.replicas,
            "leaderWorkerTemplate": {
                "size": server.share.nodes,
                # the others of a group wait in a collective for a pod that has failed
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": pod_template(cluster, server, member="leader"),
                "workerTemplate": pod_template(cluster, server, member="worker"),
            },
        },
    }


def _apart(cluster: Cluster, server: Server) -> tuple[Manifest, ...]:
    parts: list[Manifest] = []
    counts: dict[Role, int] = {"prefill": server.prefill, "decode": server.replicas}
    for role, count in counts.items():
        name = f"{server.name}-{role}"
        home = _service(cluster, server, name, labels_of(server, role), headless=True)
        parts += [home, _stateful_set(cluster, server, role, name, count)]
    return (
        *parts,
        _service(cluster, server, server.name, labels_of(server, "router")),
        _router(cluster, server, counts),
    )


def _stateful_set(cluster: Cluster, server: Server, role: Role, name: str, count: int) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _metadata(cluster, server, name),
        "spec": {
            "serviceName": name,
            "replicas": count,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels_of(server, role)},
            "template": pod_template(cluster, server, role=role),
        },
    }


def _router(cluster: Cluster, server: Server, counts: dict[Role, int]) -> Manifest:
    namespace, user = job_namespace(cluster, server.team), job_user(cluster, server.team)
    container: Manifest = {
        "name": "router",
        "image": server.router_image,
        **_router_command(server, counts),
        "ports": [{"name": "http", "containerPort": SERVING_PORT}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": SERVING_PORT}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": container_context(namespace.level),
    }
    labels = labels_of(server, "router")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(cluster, server, f"{server.name}-router"),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "securityContext": pod_context(namespace.level, user),
                    "automountServiceAccountToken": False,
                    "containers": [container],
                },
            },
        },
    }


def _router_command(server: Server, counts: dict[Role, int]) -> Manifest:
    """vLLM's router (vllm-project/router) and SGLang's (sglang_router) take the same words but for two."""
    places: list[str] = []
    for role, count in counts.items():
        for number in range(count):
            places += [
                f"--{role}",
                f"http://{server.name}-{role}-{number}.{server.name}-{role}:{SERVING_PORT}",
            ]
            if server.engine == "sglang" and role == "prefill":
                places.append(str(BOOTSTRAP_PORT))
    listens = ["--host", "0.0.0.0", "--port", str(SERVING_PORT)]  # noqa: S104 - only of the pod
    match server.engine:
        case "vllm":
            return {
                "command": ["vllm-router"],
                "args": ["--vllm-pd-disaggregation", "--kv-connector", "nixl", *places, *listens],
            }
        case "sglang":
            return {
                "command": ["python3"],
                "args": ["-m", "sglang_router.launch_router", "--pd-disaggregation", *places, *listens],
            }


def _service(
    cluster: Cluster, server: Server, name: str, selector: dict[str, str], *, headless: bool = False
) -> Manifest:
    spec: Manifest = {"selector": dict(selector), "ports": [{"name": "http", "port": SERVING_PORT}]}
    if headless:
        # a name before the model is loaded: replicas and router look for each other by it
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(cluster, server, name), "spec": spec}


def _metadata(cluster: Cluster, server: Server, name: str) -> dict[Literal["name", "namespace"], str]:
    return {"name": name, "namespace": job_namespace(cluster, server.team).name}
