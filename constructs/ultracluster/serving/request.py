"""Requests for a model server: checked against the environment, and made into objects of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ultracluster.catalog.hyperpod_eks import disaggregated_types, engine_floor, inference_since
from ultracluster.config.hyperpod_eks import HyperPodInference
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes.isolation import DEFAULT, job_namespace
from ultracluster.model import Cluster
from ultracluster.model.inference import inference_has
from ultracluster.model.job_fit import check_team
from ultracluster.model.team_shares import pools
from ultracluster.serving.deployment import serving_manifests
from ultracluster.serving.endpoint import Cache, Endpoint, Routing, Scaling, endpoint_manifests
from ultracluster.serving.fit import check_replicas, serving_pool, share_of
from ultracluster.serving.model_source import plain_model, source_of
from ultracluster.serving.pod import Engine, Server

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]{0,400}")
_TWO = re.compile(r"([0-9]{1,4}):([0-9]{1,4})")
_RELEASE = re.compile(r":v?([0-9]+)\.([0-9]+)\.([0-9]+)")
_FOR_ADMINISTRATORS = (
    "Members of teams may not make this, which no queue counts: an administrator applies it."
)
_REDIS = re.compile(r"rediss?://([A-Za-z0-9._:-]{1,200}@)?[A-Za-z0-9._-]{1,255}(:[0-9]{1,5})?(/[0-9]{1,3})?")
_OURS = ("--host", "--port", "--model", "--model-path")
"""Arguments of engines that Service, probes and metrics depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingWishes:
    """The options, as they were typed."""

    name: str
    model: str
    image: str
    engine: Engine = "vllm"
    group: str | None = None
    team: str | None = None
    replicas: int = 1
    gpus: int | None = None
    apart: str | None = None
    """`PREFILL:DECODE` replicas."""
    token_secret: str | None = None
    arguments: tuple[str, ...] = ()
    nodes: int = 1
    router_image: str | None = None
    instance_type: str | None = None
    file_system: str | None = None
    kv_cache: Cache = "l1"
    redis: str | None = None
    routing: Routing | None = None
    autoscale: str | None = None
    invocations: float = 60
    gateway: str | None = None
    metrics: bool = True


@dataclass(frozen=True, slots=True)
class Served:
    """Objects of a model server, and what to know about them."""

    objects: Iterable[dict[str, Any]]
    notes: list[str] = field(default_factory=list[str])


def endpoint_request(cluster: Cluster, asked: ServingWishes) -> Served:
    """An endpoint of HyperPod's inference operator.

    Raises:
        ValueError: there can be none.
    """
    settings, wanted = _operator(cluster)
    _forms(asked)
    check_team(cluster, asked.team)
    pool = serving_pool(cluster, _of_type(cluster, asked.group, asked.instance_type))
    prefill, decode = _two(asked.apart, "--disaggregate", "2:2") if asked.apart else (0, asked.replicas)
    scaling = _scaling(wanted, asked.autoscale, asked.invocations)
    endpoint = Endpoint(
        name=asked.name,
        pool=pool,
        share=share_of(pool, asked.gpus),
        source=source_of(cluster, wanted, asked.model, pool.group, asked.file_system, asked.token_secret),
        image=asked.image,
        engine=asked.engine,
        replicas=scaling.least or 1 if scaling else decode,
        prefill=prefill,
        cache=asked.kv_cache,
        redis=asked.redis,
        routing=asked.routing,
        scaling=scaling,
        metrics=asked.metrics,
        gateway=asked.gateway,
        team=asked.team,
        arguments=asked.arguments,
    )
    _cached(settings, wanted, endpoint)
    _routed(settings, wanted, endpoint)
    _apart(settings, wanted, endpoint)
    most = max(decode, scaling.most if scaling else 0)
    check_replicas(cluster, pool, endpoint.share, prefill + most, asked.team)
    return Served(endpoint_manifests(cluster, endpoint), _endpoint_notes(cluster, endpoint))


def plain_request(cluster: Cluster, asked: ServingWishes) -> Served:
    """A model server of vLLM or SGLang as plain objects of Kubernetes.

    Raises:
        ValueError: there can be none.
    """
    if cluster.kubernetes is None:
        raise ValueError(
            f"a model server is an object of Kubernetes, and this is {cluster.settings.kind}: start it "
            "in a batch job"
        )
    _forms(asked)
    check_team(cluster, asked.team)
    pool = serving_pool(cluster, asked.group)
    share = share_of(pool, asked.gpus, asked.nodes)
    prefill, decode = _two(asked.apart, "--disaggregate", "1:1") if asked.apart else (0, asked.replicas)
    if asked.router_image is not None and not asked.apart:
        raise ValueError("--router-image is for --disaggregate, whose replicas stand behind a router")
    server = Server(
        name=asked.name,
        pool=pool,
        share=share,
        engine=asked.engine,
        image=asked.image,
        model=plain_model(cluster, asked.model, pool.group),
        replicas=decode,
        prefill=prefill,
        router_image=_router(asked.engine, asked.image, asked.router_image) if prefill else None,
        team=asked.team,
        token_secret=asked.token_secret,
        arguments=asked.arguments,
    )
    _plain_apart(server)
    _declared(cluster, pool.group, nodes=asked.nodes, apart=asked.apart)
    check_replicas(cluster, pool, share, prefill + decode, asked.team)
    return Served(serving_manifests(cluster, server), _serve_notes(cluster, server))


def _forms(asked: ServingWishes) -> None:
    """Refuse characters that are not allowed, options that would be ignored, and such that undo others."""
    for what, value, form in (
        ("the name", asked.name, _NAME),
        ("--image", asked.image, _IMAGE),
        ("--token-secret", asked.token_secret, _NAME),
    ):
        if value is not None and not form.fullmatch(value):
            raise ValueError(f"{what} {value!r} has characters that are not allowed there")
    if asked.token_secret is not None and not asked.model.startswith("hf:"):
        raise ValueError(f"--token-secret is for models of Hugging Face, and this is {asked.model}")
    if asked.apart and asked.replicas != 1:
        raise ValueError(f"--replicas or --disaggregate, and not both: --disaggregate 1:{asked.replicas}")
    for argument in asked.arguments:
        if (option := argument.partition("=")[0].strip()) in _OURS:
            raise ValueError(f"--arg {argument!r}: the command writes {option} itself")


def _operator(cluster: Cluster) -> tuple[HyperPodEks, HyperPodInference]:

    settings = cluster.settings
    if not isinstance(settings, HyperPodEks):
        instead = "without --endpoint it writes plain objects"
        if cluster.kubernetes is None:
            instead = "start a server in a batch job"
        raise ValueError(f"endpoints are HyperPod's on EKS, and this is {settings.kind}: {instead}")
    if settings.inference is None:
        raise ValueError("the operator is not installed: write orchestrator.inference: {}")
    return settings, settings.inference


def _of_type(cluster: Cluster, group: str | None, instance_type: str | None) -> str | None:

    if instance_type is None:
        return group
    known = {pool.group: pool.instance_type.name for pool in pools(cluster)}
    bare = instance_type.removeprefix("ml.")
    fitting = [one for one, kind in known.items() if kind == bare and group in (None, one)]
    if not fitting:
        there = ", ".join(f"{one} ({kind})" for one, kind in known.items())
        raise ValueError(f"no group has {bare}: there is {there or 'none with accelerators'}")
    return fitting[0]


def _two(text: str, option: str, example: str) -> tuple[int, int]:
    match = _TWO.fullmatch(text)
    if not match:
        raise ValueError(f"{option} {text!r} has another form than {example}")
    first, second = int(match[1]), int(match[2])
    if option == "--disaggregate" and not (first and second):
        raise ValueError("--disaggregate has one replica of each kind at the least: 1:1")
    return first, second


def _scaling(wanted: HyperPodInference, text: str | None, invocations: float) -> Scaling | None:

    if text is None:
        return None
    least, most = _two(text, "--autoscale", "1:4")
    if most < max(1, least):
        raise ValueError(f"--autoscale {text}: the second is the most, and not below the first or 1")
    if not wanted.autoscaler and not wanted.autoscaler_role_arn:
        raise ValueError("KEDA scales endpoints, and orchestrator.inference.autoscaler is off")
    return Scaling(least=least, most=most, invocations=invocations)


def _cached(settings: HyperPodEks, wanted: HyperPodInference, made: Endpoint) -> None:
    cache: Cache = made.cache
    if made.engine != "vllm" and cache in ("l2-redis", "tiered"):
        raise ValueError(f"the operator caches for vLLM only, and this is {made.engine}: --kv-cache none")
    if cache == "l2-redis" and not (made.redis and _REDIS.fullmatch(made.redis)):
        raise ValueError("--kv-cache l2-redis keeps the cache in Redis: --redis redis://host:6379")
    if made.redis and cache != "l2-redis":
        raise ValueError(f"--redis is for --kv-cache l2-redis, and this is {cache}")
    if cache == "tiered" and not settings.tiered_checkpoints_percent:
        raise ValueError(
            "--kv-cache tiered is kept in HyperPod's tiered storage, which the cluster does not have: "
            "orchestrator.tiered_checkpoints_percent: 20"
        )
    if cache == "tiered" and wanted.kv_cache != "tiered":
        raise ValueError(
            "--kv-cache tiered shares what prompts left between endpoints, which the environment does not "
            "declare: add orchestrator.inference.kv_cache: tiered"
        )


def _routed(settings: HyperPodEks, wanted: HyperPodInference, made: Endpoint) -> None:

    routing: Routing | None = made.routing
    if routing and made.engine != "vllm":
        raise ValueError(f"the operator routes to vLLM only, and this is {made.engine}: without --routing")
    if made.gateway and routing:
        raise ValueError("a gateway routes by itself: --routing or --gateway, and not both")
    if made.gateway and not _NAME.fullmatch(made.gateway):
        raise ValueError(f"--gateway {made.gateway!r} has characters that are not allowed there")
    if made.gateway and not wanted.gateway:
        raise ValueError("there is no gateway: orchestrator.inference.gateway: true")
    if made.pool.settings.taints and not inference_has(settings, "tolerations"):
        raise ValueError(
            f"{made.pool.group} has taints, and endpoints tolerate none before "
            f"{inference_since('tolerations')} of the add-on"
        )
    if routing != "kvaware":
        return
    if not inference_has(settings, "kv-aware routing"):
        raise ValueError(f"kvaware routing asks for {inference_since('kv-aware routing')} of the add-on")
    for engine in ("vllm", "lmcache"):
        floor = engine_floor(engine)
        found = _RELEASE.search(made.image) if f"{engine}/vllm-openai:" in made.image else None
        if found and tuple(map(int, found.groups())) < tuple(map(int, floor.split("."))):
            raise ValueError(f"kvaware routing asks for {engine} {floor} or newer: not {made.image}")


def _apart(settings: HyperPodEks, wanted: HyperPodInference, made: Endpoint) -> None:

    if not made.prefill:
        return
    kind = made.pool.instance_type.name
    if kind not in disaggregated_types():
        raise ValueError(
            f"prefill and decode are apart on {', '.join(disaggregated_types())} only, and {made.pool.group} "
            f"has {kind}"
        )
    if made.pool.group not in wanted.disaggregated_groups:
        raise ValueError(
            f"orchestrator.inference.disaggregated_groups does not name {made.pool.group}: rules have not "
            "looked at it"
        )
    if not inference_has(settings, "disaggregation"):
        raise ValueError(f"--disaggregate asks for {inference_since('disaggregation')} of the add-on")
    if made.engine != "vllm":
        raise ValueError(f"the operator takes prefill and decode of vLLM apart, and this is {made.engine}")
    if made.scaling:
        raise ValueError("--autoscale counts replicas of one kind: not with --disaggregate")


def _router(engine: Engine, image: str, router: str | None) -> str:
    if router is not None and not _IMAGE.fullmatch(router):
        raise ValueError(f"--router-image {router!r} has characters that are not allowed there")
    if router is None and engine == "vllm":
        raise ValueError("vLLM's image has no router: --router-image, with vllm-router in it")
    return router or image


def _plain_apart(made: Server) -> None:
    if not made.prefill:
        return
    if made.over_nodes:
        raise ValueError("a replica of --disaggregate has one node, or a part of one: without --nodes")
    kind = made.pool.instance_type
    if not kind.least_efa_interfaces:
        raise ValueError(f"{kind.name} has no EFA, over which NIXL hands caches over: without --disaggregate")


def _declared(cluster: Cluster, group: str, *, nodes: int, apart: str | None) -> None:
    """Refuse what rules have not judged: the environment says which of both its servers may do."""

    assert isinstance(cluster.settings, Eks | HyperPodEks)
    serving = cluster.settings.serving
    for option, setting, declared in (
        (f"--nodes {nodes}" if nodes > 1 else "", "over_nodes", serving and serving.over_nodes),
        (f"--disaggregate {apart}" if apart else "", "disaggregated", serving and serving.disaggregated),
    ):
        if option and not declared:
            line = f".{setting}: true" if serving else f": {{groups: [{group}], {setting}: true}}"
            raise ValueError(f"{option} is for environments that declare it: add orchestrator.serving{line}")


def _endpoint_notes(cluster: Cluster, made: Endpoint) -> list[str]:

    namespace = job_namespace(cluster, made.team)
    notes: list[str] = [_FOR_ADMINISTRATORS] if made.team else []
    if made.routing == "kvaware" and not _RELEASE.search(made.image):
        notes.append(
            "kvaware routing: the image's versions of vLLM and LMCache cannot be told from its name."
        )
    if made.cache in ("l2-redis", "tiered"):
        notes.append("What is cached is neither encrypted nor kept apart between endpoints.")
    if namespace.level == "restricted":
        notes.append(
            f"`{namespace.name}` is restricted, and what the operator adds to pods is not published: "
            "they may be refused there."
        )
    if namespace.name != DEFAULT and cluster.kubernetes and cluster.kubernetes.network_policies:
        notes.append(
            f"A network policy lets everybody in the VPC in to all pods of `{namespace.name}`: load "
            "balancers come from its addresses."
        )
    return notes


def _serve_notes(cluster: Cluster, made: Server) -> list[str]:

    namespace = job_namespace(cluster, made.team).name
    forward = f"kubectl -n {namespace} port-forward service/{made.name} 8000"
    notes = [
        f"Reached within `{namespace}` at http://{made.name}:8000/v1; from elsewhere: {forward}",
        "Replicas stand outside of queues: no job ends them, and jobs have as many GPUs less.",
    ]
    if made.team:
        notes.append(_FOR_ADMINISTRATORS)
    if made.prefill:
        notes.append("The image needs NIXL with its libfabric backend and EFA's libfabric.")
    return notes
