"""The pod of a model server: its command line, what it takes of a node, when it counts as well."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.kubernetes.accelerator_pods import HUGE_PAGES_MIB, environment_variables
from ultracluster.kubernetes.claims import Claims, job_claims
from ultracluster.kubernetes.isolation import SERVES, SERVING_PORT, job_namespace, job_user
from ultracluster.kubernetes.pod_security import container_context, pod_context
from ultracluster.kubernetes.storage import lustre_claim
from ultracluster.kubernetes.tolerations import job_tolerations
from ultracluster.model import Cluster
from ultracluster.model.checkpoint_memory import checkpoints_percent
from ultracluster.model.devices import claims_efa, has_compute_domains
from ultracluster.model.observability import collects
from ultracluster.model.team_shares import Pool
from ultracluster.serving.fit import Share

Manifest = dict[str, Any]
Engine = Literal["vllm", "sglang"]
Role = Literal["prefill", "decode"]
Member = Literal["leader", "worker"]

EFA = "vpc.amazonaws.com/efa"
"""Interfaces that the device plugin counts."""
SERVES_LABEL = SERVES
"""On the pods of one server, with its name."""
NIXL_PORT = 5600
"""Where replicas of vLLM tell each other where their caches are (vLLM documentation, NixlConnector)."""
BOOTSTRAP_PORT = 8998
"""The same of SGLang (SGLang documentation, PD Disaggregation)."""
RENDEZVOUS_PORT = 20000
"""Where the nodes of one replica find each other."""
_HOURS = 2
"""That loading a model may take before its pod is started again."""
_CACHE = "/tmp/models"  # noqa: S108 - only of the pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What is asked for."""

    name: str
    pool: Pool
    share: Share
    engine: Engine
    image: str
    model: str
    """A folder on Lustre, or `organisation/model` of Hugging Face."""
    replicas: int
    prefill: int = 0
    """Replicas that only read prompts; then `replicas` only write answers. 0: each does both."""
    router_image: str | None = None
    """Of what sends a prompt to one of the former and its answer's request to one of the latter."""
    team: str | None = None
    token_secret: str | None = None
    """Secret of the namespace whose key `token` opens gated models of Hugging Face."""
    arguments: tuple[str, ...] = ()
    """Further ones of the engine."""

    @property
    def over_nodes(self) -> bool:
        """Return whether a replica spans several nodes."""
        return self.share.nodes > 1

    @property
    def fabric(self) -> bool:
        """Return whether its pods speak to each other over EFA."""
        return self.over_nodes or bool(self.prefill)


def pod_template(
    cluster: Cluster,
    server: Server,
    *,
    role: Role | None = None,
    member: Member | None = None,
) -> Manifest:
    """A pod of the server.

    Args:
        role: where prefill and decode are apart.
        member: where a replica spans several nodes.
    """
    namespace, user = job_namespace(cluster, server.team), job_user(cluster, server.team)
    answers = member != "worker"
    resources, claims = share_resources(cluster, server), server_claims(cluster, server)
    counted = {key: value for key, value in resources.items() if key != EFA or not claims_efa(cluster)}
    container: Manifest = {
        "name": "server",
        "image": server.image,
        **_command(server, role, member),
        "env": _variables(cluster, server),
        "resources": {
            "limits": counted,
            "requests": counted,
            **({"claims": claims.of_container} if claims.templates else {}),
        },
        "securityContext": container_context(namespace.level),
        "volumeMounts": [
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - only of the pod
            {"name": "cache", "mountPath": _CACHE},
        ],
    }
    volumes: list[Manifest] = [
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "cache", "emptyDir": {}},
    ]
    for name, lustre in cluster.lustres_of(server.pool.group).items():
        claim = lustre_claim(name)
        container["volumeMounts"].append({"name": claim, "mountPath": lustre.mount_path, "readOnly": True})
        volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    if answers:
        container["ports"] = [{"name": "http", "containerPort": SERVING_PORT}]
        container |= probes()
    spec: Manifest = {
        "securityContext": pod_context(namespace.level, user),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 60,
        "nodeSelector": {GROUP_LABEL: server.pool.group},
        "tolerations": job_tolerations(server.pool),
        "containers": [container],
        "volumes": volumes,
    }
    metadata: Manifest = {"labels": labels_of(server, role)}
    if claims.templates:
        spec["resourceClaims"] = claims.of_pod
    if answers and collects(cluster):
        metadata["annotations"] = scrape_annotations(server.engine)
    return {"metadata": metadata, "spec": spec}


def server_claims(cluster: Cluster, server: Server) -> Claims:
    """Return what its pods claim, where they speak to each other; to be applied before the server."""
    if not server.fabric:
        return Claims()
    return job_claims(
        cluster,
        server.pool,
        name=server.name,
        namespace=job_namespace(cluster, server.team).name,
        efa_interfaces=int(share_resources(cluster, server).get(EFA, "0")),
    )


def labels_of(server: Server, role: Role | Literal["router"] | None = None) -> dict[str, str]:
    """By which a service finds the pods of a server, or of one of its parts."""
    return {SERVES_LABEL: server.name, **({f"{SERVES_LABEL}-as": role} if role else {})}


def scrape_annotations(engine: str) -> dict[str, str]:
    """By which the cluster's agent finds a model server, and knows it from a training script."""
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(SERVING_PORT),
        "prometheus.io/path": "/metrics",
        SERVES: engine,
    }


def probes() -> Manifest:
    """Both engines answer `/health` when the model is loaded, and stop to when they hang."""
    asked = {"httpGet": {"path": "/health", "port": SERVING_PORT}}
    return {
        "startupProbe": {**asked, "periodSeconds": 10, "failureThreshold": _HOURS * 360},
        "readinessProbe": {**asked, "periodSeconds": 10, "failureThreshold": 3},
        "livenessProbe": {**asked, "periodSeconds": 30, "failureThreshold": 5, "timeoutSeconds": 10},
    }


def share_resources(cluster: Cluster, server: Server) -> dict[str, str]:
    """Of one pod: its GPUs, and of processors, memory and EFA interfaces as large a part."""
    pool, gpus = server.pool, server.share.gpus
    kind, part = pool.instance_type, gpus / pool.per_node
    resources = {pool.resource: str(gpus)}
    if server.fabric and (interfaces := kind.least_efa_interfaces):
        resources[EFA] = str(max(1, int(interfaces * part)))
        resources["hugepages-2Mi"] = f"{int(HUGE_PAGES_MIB * part) // 2 * 2}Mi"
    if kind.vcpu:
        resources["cpu"] = str(max(1, int(kind.vcpu * 0.9 * part)))
    if kind.memory_gib:
        resources["memory"] = f"{max(1, int(memory_gib(cluster, kind.memory_gib) * 0.8 * part))}Gi"
    return resources


def memory_gib(cluster: Cluster, node_gib: float) -> float:
    """Return what tiered storage leaves of a node's memory."""
    return node_gib * (100 - checkpoints_percent(cluster)) / 100


def _command(server: Server, role: Role | None, member: Member | None) -> Manifest:
    match server.engine:
        case "vllm":
            return {"command": ["vllm"], "args": ["serve", *_vllm(server, role, member), *server.arguments]}
        case "sglang":
            start = ["-m", "sglang.launch_server"]
            return {"command": ["python3"], "args": [*start, *_sglang(server, role), *server.arguments]}


def _vllm(server: Server, role: Role | None, member: Member | None) -> list[str]:
    arguments = [
        server.model,
        f"--served-model-name={server.name}",
        "--host=0.0.0.0",
        f"--port={SERVING_PORT}",
        f"--tensor-parallel-size={server.share.gpus}",
    ]
    if server.over_nodes:
        arguments += [
            f"--pipeline-parallel-size={server.share.nodes}",
            f"--nnodes={server.share.nodes}",
            "--node-rank=$(LWS_WORKER_INDEX)",
            "--master-addr=$(LWS_LEADER_ADDRESS)",
            f"--master-port={RENDEZVOUS_PORT}",
        ]
        arguments += ["--headless"] if member == "worker" else []
    if role:
        moved = {
            "kv_connector": "NixlConnector",
            "kv_role": "kv_producer" if role == "prefill" else "kv_consumer",
            "kv_buffer_device": "cuda",
            # a cache that does not arrive is an error, and not silently worked out again
            "kv_load_failure_policy": "fail",
            # without it NIXL takes UCX, which does not use EFA's RDMA
            "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
        }
        arguments.append(f"--kv-transfer-config={json.dumps(moved, separators=(',', ':'))}")
    return arguments


def _sglang(server: Server, role: Role | None) -> list[str]:
    arguments = [
        f"--model-path={server.model}",
        f"--served-model-name={server.name}",
        "--host=0.0.0.0",
        f"--port={SERVING_PORT}",
        f"--tp={server.share.gpus * server.share.nodes}",
        # off by default: without it the server has no /metrics
        "--enable-metrics",
    ]
    if server.over_nodes:
        arguments += [
            f"--nnodes={server.share.nodes}",
            "--node-rank=$(LWS_WORKER_INDEX)",
            f"--dist-init-addr=$(LWS_LEADER_ADDRESS):{RENDEZVOUS_PORT}",
        ]
    if role:
        arguments += [f"--disaggregation-mode={role}", "--disaggregation-transfer-backend=nixl"]
        if role == "prefill":
            arguments.append(f"--disaggregation-bootstrap-port={BOOTSTRAP_PORT}")
    return arguments


def _variables(cluster: Cluster, server: Server) -> list[Manifest]:
    known = {"HF_HOME": _CACHE, "HOME": "/tmp"}  # noqa: S108 - only of the container
    if server.fabric:
        known |= environment_variables(
            server.pool, joined=has_compute_domains(cluster, server.pool.instance_type)
        )
    if server.prefill:
        known |= {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}
        if server.engine == "vllm":
            known["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(NIXL_PORT)
        else:
            known["SGLANG_DISAGGREGATION_NIXL_BACKEND"] = "LIBFABRIC"
    variables: list[Manifest] = [{"name": name, "value": value} for name, value in known.items()]
    if server.prefill and server.engine == "vllm":
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        variables.append({"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": address})
    if server.token_secret:
        token = {"secretKeyRef": {"name": server.token_secret, "key": "token"}}
        variables.append({"name": "HF_TOKEN", "valueFrom": token})
    return variables
