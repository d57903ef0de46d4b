"""An endpoint of HyperPod's inference operator: `InferenceEndpointConfig`.

`inference.sagemaker.aws.amazon.com/v1` as aws/sagemaker-hyperpod-cli 011ca92 defines it (operator 3.2), and
`inferenceGateway`, `kubernetes.tolerations` and `kubernetes.podTemplateAnnotations` as the release notes of
operators 3.6 and 3.7 document them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.kubernetes.isolation import DEFAULT, SERVING_PORT, job_namespace
from ultracluster.kubernetes.tolerations import job_tolerations
from ultracluster.model import Cluster
from ultracluster.model.inference import inference_has
from ultracluster.model.observability import collects
from ultracluster.model.team_shares import Pool, namespace_of, scheduler_of
from ultracluster.serving.fit import Share
from ultracluster.serving.pod import Engine, memory_gib, scrape_annotations

Manifest = dict[str, Any]
Cache = Literal["none", "l1", "l2-redis", "tiered"]
Routing = Literal["prefixaware", "kvaware", "session", "roundrobin"]

MODEL = "/opt/ml/model"
"""Where the operator mounts a model."""
_BUFFER_BYTES = 8 * 2**30
"""Of a GPU of a decoder, for caches that arrive (SageMaker Developer Guide, Disaggregated Prefill and
Decode)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a model is."""

    kind: Literal["s3", "fsx", "huggingface"]
    place: str
    """Bucket, id of the file system, or `organisation/model`."""
    folder: str = ""
    """In the bucket, or on the file system."""
    region: str = ""
    token_secret: str | None = None
    """Secret of the namespace whose key `token` opens gated models of Hugging Face."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Replicas by the requests that come."""

    least: int
    most: int
    invocations: float
    """A minute, for each replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What is asked for."""

    name: str
    pool: Pool
    share: Share
    source: Source
    image: str
    engine: Engine
    replicas: int
    prefill: int = 0
    """Replicas that only read prompts; then `replicas` only write answers. 0: each does both."""
    cache: Cache = "l1"
    redis: str | None = None
    routing: Routing | None = None
    scaling: Scaling | None = None
    metrics: bool = True
    gateway: str | None = None
    team: str | None = None
    arguments: tuple[str, ...] = ()
    """Further ones of the engine."""


def endpoint_manifests(cluster: Cluster, endpoint: Endpoint) -> tuple[Manifest, ...]:
    """The objects of an endpoint, in the order in which they are applied."""
    namespace = job_namespace(cluster, endpoint.team).name
    metadata: Manifest = {"name": endpoint.name, "namespace": namespace}
    if labels := _queue(cluster, endpoint):
        metadata["labels"] = labels
    manifest: Manifest = {
        "apiVersion": "inference.sagemaker.aws.amazon.com/v1",
        "kind": "InferenceEndpointConfig",
        "metadata": metadata,
        "spec": _spec(cluster, endpoint),
    }
    return (*_let_in(cluster, endpoint, namespace), manifest)


def _spec(cluster: Cluster, endpoint: Endpoint) -> Manifest:
    pool = endpoint.pool
    terms = [{"matchExpressions": [{"key": GROUP_LABEL, "operator": "In", "values": [pool.group]}]}]
    spec: Manifest = {
        "modelName": endpoint.name,
        "endpointName": endpoint.name,
        "instanceType": f"ml.{pool.instance_type.name}",
        "replicas": endpoint.replicas,
        # this routing knows no other API (KV caching and intelligent routing, compatibility)
        "invocationEndpoint": "/completions" if endpoint.routing == "kvaware" else "v1/chat/completions",
        "modelSourceConfig": _source(endpoint.source),
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
        "loadBalancer": {"healthCheckPath": "/health"},
        "metrics": _metrics(endpoint),
        "worker": _worker(cluster, endpoint),
    }
    if endpoint.engine == "vllm":
        spec["kvCacheSpec"] = _cache(endpoint)
    if endpoint.routing:
        spec["intelligentRoutingSpec"] = {"enabled": True, "routingStrategy": endpoint.routing}
    if endpoint.gateway:
        spec["inferenceGateway"] = {"enabled": True, "name": endpoint.gateway}
    if endpoint.scaling:
        spec["autoScalingSpec"] = _scaling(endpoint, endpoint.scaling)
    if endpoint.prefill:
        spec["pdSpec"] = _apart(endpoint)
    if settings := _pod_settings(cluster, endpoint):
        spec["kubernetes"] = settings
    return spec


def _source(source: Source) -> Manifest:
    match source.kind:
        case "s3":
            place = {"bucketName": source.place, "region": source.region}
            return {
                "modelSourceType": "s3",
                "modelLocation": source.folder,
                "s3Storage": place,
                "prefetchEnabled": True,
            }
        case "fsx":
            return {
                "modelSourceType": "fsx",
                "modelLocation": source.folder,
                "fsxStorage": {"fileSystemId": source.place},
            }
        case "huggingface":
            model: Manifest = {"modelId": source.place}
            if source.token_secret:
                model["tokenSecretRef"] = {"name": source.token_secret, "key": "token"}
            return {"modelSourceType": "huggingface", "huggingFaceModel": model, "prefetchEnabled": True}


def _worker(cluster: Cluster, endpoint: Endpoint) -> Manifest:
    kind, share = endpoint.pool.instance_type, endpoint.share
    part = share.gpus / endpoint.pool.per_node
    requests = {endpoint.pool.resource: str(share.gpus)}
    if kind.vcpu:
        requests["cpu"] = str(max(1, int(kind.vcpu * 0.8 * part)))
    if kind.memory_gib:
        requests["memory"] = f"{max(1, int(memory_gib(cluster, kind.memory_gib) * 0.7 * part))}Gi"
    worker: Manifest = {
        "image": endpoint.image,
        "args": _arguments(endpoint),
        "modelInvocationPort": {"containerPort": SERVING_PORT, "name": "http"},
        "modelVolumeMount": {"name": "model-weights", "mountPath": MODEL},
        "resources": {"requests": requests, "limits": {endpoint.pool.resource: str(share.gpus)}},
    }
    if endpoint.engine == "sglang":
        worker["command"] = ["python3", "-m", "sglang.launch_server"]
    if endpoint.prefill:
        variables = {
            "PD_BUFFER_SIZE": str(_BUFFER_BYTES),
            "LMCACHE_SAVE_DECODE_CACHE": "False",
            # both sides must work out the same keys for the same prompt
            "PYTHONHASHSEED": "0",
        }
        worker["environmentVariables"] = [{"name": key, "value": value} for key, value in variables.items()]
    return worker


def _arguments(endpoint: Endpoint) -> list[str]:
    gpus, name = str(endpoint.share.gpus), endpoint.name
    listens = ["--host", "0.0.0.0", "--port", str(SERVING_PORT)]  # noqa: S104 - only of the pod
    match endpoint.engine:
        case "vllm":
            own = ["--model", MODEL, "--tensor-parallel-size", gpus, "--served-model-name", name]
        case "sglang":
            own = ["--model-path", MODEL, "--tp", gpus, "--served-model-name", name, "--enable-metrics"]
    return [*own, *listens, *endpoint.arguments]


def _cache(endpoint: Endpoint) -> Manifest:
    match endpoint.cache:
        case "none":
            return {"enableL1Cache": False, "enableL2Cache": False}
        case "l1":
            return {"enableL1Cache": True, "enableL2Cache": False}
        case "l2-redis":
            below = {"l2CacheBackend": "redis", "l2CacheLocalUrl": endpoint.redis}
        case "tiered":
            below = {"l2CacheBackend": "tieredstorage"}
    return {"enableL1Cache": True, "enableL2Cache": True, "l2CacheSpec": below}


def _metrics(endpoint: Endpoint) -> Manifest:
    if not endpoint.metrics:
        return {"enabled": False}
    return {"enabled": True, "modelMetrics": {"port": SERVING_PORT, "path": "/metrics"}}


def _scaling(endpoint: Endpoint, scaling: Scaling) -> Manifest:
    """By what SageMaker counts of the endpoint: a query that needs no workspace."""
    dimensions = {"EndpointName": endpoint.name, "VariantName": "AllTraffic"}
    return {
        "minReplicaCount": scaling.least,
        "maxReplicaCount": scaling.most,
        "cloudWatchTrigger": {
            "namespace": "AWS/SageMaker",
            "metricName": "Invocations",
            "metricStat": "Sum",
            "metricCollectionPeriod": 60,
            "metricType": "Average",
            "targetValue": scaling.invocations,
            "dimensions": [{"name": key, "value": value} for key, value in dimensions.items()],
        },
    }


def _apart(endpoint: Endpoint) -> Manifest:
    gpus = {endpoint.pool.resource: str(endpoint.share.gpus)}
    each = {"resources": {"requests": gpus, "limits": gpus}}
    return {
        "prefillSpec": {"replicas": endpoint.prefill, **each},
        "decodingSpec": {"replicas": endpoint.replicas, **each},
        # EFA does not leave a zone
        "topologySpec": {"sameAZ": True},
    }


def _pod_settings(cluster: Cluster, endpoint: Endpoint) -> Manifest:
    settings = cluster.settings
    assert isinstance(settings, HyperPodEks)
    manifest: Manifest = {}
    if endpoint.pool.settings.taints:
        manifest["tolerations"] = job_tolerations(endpoint.pool)
    if endpoint.metrics and collects(cluster) and inference_has(settings, "gateway"):
        # the operator's own collector serves HyperPod's observability; this lets ours in
        manifest["podTemplateAnnotations"] = scrape_annotations(endpoint.engine)
    return manifest


def _queue(cluster: Cluster, endpoint: Endpoint) -> Mapping[str, str]:
    """With task governance the team's queue, at the highest priority: a service is not ended for a job."""
    if endpoint.team is None or scheduler_of(cluster) != "task-governance":
        return {}
    queue = f"{namespace_of(cluster, endpoint.team)}-localqueue"
    return {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/priority-class": "high-priority"}


def _let_in(cluster: Cluster, endpoint: Endpoint, namespace: str) -> tuple[Manifest, ...]:
    """A team's namespace lets nobody in; load balancers come from addresses of the VPC, and the operator
    chooses the port that they come to."""
    settings = cluster.kubernetes
    if namespace == DEFAULT or not (settings and settings.network_policies):
        return ()
    spec: Manifest = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}
    return (
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": f"{endpoint.name}-endpoint", "namespace": namespace},
            "spec": spec,
        },
    )
