"""`ultracluster job endpoint` and `job serve`: models served, by HyperPod's operator or as plain objects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ultracluster.cli.environments import EnvironmentArgument, load_file, refuse
from ultracluster.cli.serving_model import plain_model, source_of
from ultracluster.cli.terminal import remark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ultracluster.config.hyperpod_eks import HyperPodInference
    from ultracluster.config.kubernetes import HyperPodEks
    from ultracluster.model import Cluster
    from ultracluster.model.team_shares import Pool
    from ultracluster.serving.endpoint import Cache, Endpoint, Routing, Scaling
    from ultracluster.serving.fit import Share
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

Name = Annotated[str, typer.Argument(help="Of what is served; its endpoint and its objects have it.")]
Model = Annotated[
    str,
    typer.Option(help="s3://bucket/folder, a folder on Lustre (/fsx/...), or hf:organisation/model."),
]
Image = Annotated[str, typer.Option(help="Container image of the engine, by version or digest.")]
EngineOption = Annotated[Literal["vllm", "sglang"], typer.Option(help="What the image runs.")]
Group = Annotated[
    str | None, typer.Option(help="Node group; that of `serving`, else the first with GPUs, by default.")
]
Team = Annotated[str | None, typer.Option(help="Whose namespace; required if the environment has teams.")]
Replicas = Annotated[int, typer.Option(min=1, help="How many; --disaggregate has its own numbers.")]
Gpus = Annotated[int | None, typer.Option(min=1, help="GPUs of a replica on a node; all of it by default.")]
Apart = Annotated[
    str | None,
    typer.Option(
        "--disaggregate",
        metavar="PREFILL:DECODE",
        help="Replicas that read prompts and such that write answers, on nodes of their own.",
        show_default=False,
    ),
]
Secret = Annotated[
    str | None,
    typer.Option("--token-secret", help="Secret with key `token`, for gated models of Hugging Face."),
]
Arguments = Annotated[
    list[str] | None, typer.Option("--arg", help="Further argument of the engine; may be repeated.")
]


def endpoint(
    environment: EnvironmentArgument,
    name: Name,
    model: Model,
    image: Image,
    engine: EngineOption = "vllm",
    group: Group = None,
    instance_type: Annotated[
        str | None, typer.Option(help="The first group of this type, instead of --group.")
    ] = None,
    team: Team = None,
    replicas: Replicas = 1,
    gpus: Gpus = None,
    file_system: Annotated[
        str | None, typer.Option(help="Id of the Lustre file system that a folder is on (fs-...).")
    ] = None,
    token_secret: Secret = None,
    kv_cache: Annotated[
        Literal["none", "l1", "l2-redis", "tiered"],
        typer.Option(help="Where keys and values of prompts are kept beside GPUs."),
    ] = "l1",
    redis: Annotated[str | None, typer.Option(help="Address for --kv-cache l2-redis, redis://...")] = None,
    routing: Annotated[
        Literal["prefixaware", "kvaware", "session", "roundrobin"] | None,
        typer.Option(help="Which replica gets a request; none by default: the load balancer decides."),
    ] = None,
    autoscale: Annotated[
        str | None, typer.Option(metavar="MIN:MAX", help="Replicas by requests that come.")
    ] = None,
    invocations: Annotated[
        float,
        typer.Option(min=0.1, max=1e6, help="Requests a minute for each replica, with --autoscale."),
    ] = 60,
    gateway: Annotated[
        str | None, typer.Option(help="Name of a gateway that the model joins, or that is made.")
    ] = None,
    apart: Apart = None,
    metrics: Annotated[bool, typer.Option("--metrics/--no-metrics", help="Of the model server.")] = True,
    arg: Arguments = None,
) -> None:
    """Print an endpoint of HyperPod's inference operator, for `kubectl apply -f -`.

    Exit code 2 if there can be none.
    """
    from ultracluster.serving.endpoint import Endpoint, endpoint_manifests

    cluster = _cluster(environment)
    try:
        settings, wanted = _operator(cluster)
        _forms(name, image, team, token_secret)
        _together(model, token_secret, apart, replicas, arg)
        team = _team(cluster, team)
        pool = _pool(cluster, _of_type(cluster, group, instance_type))
        prefill, decode = _two(apart, "--disaggregate", "2:2") if apart else (0, replicas)
        share = _share(pool, gpus)
        scaling = _scaling(wanted, autoscale, invocations)
        made = Endpoint(
            name=name,
            pool=pool,
            share=share,
            source=source_of(cluster, wanted, model, pool.group, file_system, token_secret),
            image=image,
            engine=engine,
            replicas=scaling.least or 1 if scaling else decode,
            prefill=prefill,
            cache=kv_cache,
            redis=redis,
            routing=routing,
            scaling=scaling,
            metrics=metrics,
            gateway=gateway,
            team=team,
            arguments=tuple(arg or ()),
        )
        _cached(settings, wanted, made)
        _routed(settings, wanted, made)
        _apart(settings, wanted, made)
        _fits(cluster, made, max(decode, scaling.most if scaling else 0))
        notes = _endpoint_notes(cluster, made)
        objects = endpoint_manifests(cluster, made)
    except ValueError as error:
        refuse(f"{environment}: {error}")
    _write(objects, notes)


def serve(
    environment: EnvironmentArgument,
    name: Name,
    model: Model,
    image: Image,
    engine: EngineOption = "vllm",
    group: Group = None,
    team: Team = None,
    replicas: Replicas = 1,
    gpus: Gpus = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of one replica; above 1 as LeaderWorkerSet.")] = 1,
    apart: Apart = None,
    router_image: Annotated[
        str | None,
        typer.Option(help="Of vllm-router, with --disaggregate; SGLang's image has its router."),
    ] = None,
    token_secret: Secret = None,
    arg: Arguments = None,
) -> None:
    """Print a model server of vLLM or SGLang as plain objects of Kubernetes, for `kubectl apply -f -`.

    Exit code 2 if there can be none.
    """
    from ultracluster.serving.deployment import serving_manifests
    from ultracluster.serving.fit import check_replicas, share_of
    from ultracluster.serving.pod import Server

    cluster = _cluster(environment)
    try:
        if cluster.kubernetes is None:
            raise ValueError(
                f"a model server is an object of Kubernetes, and this is {cluster.settings.kind}: start it "
                "in a batch job"
            )
        _forms(name, image, team, token_secret)
        _together(model, token_secret, apart, replicas, arg)
        team = _team(cluster, team)
        pool = _pool(cluster, group)
        share = share_of(pool, gpus, nodes)
        prefill, decode = _two(apart, "--disaggregate", "1:1") if apart else (0, replicas)
        if router_image is not None and not apart:
            raise ValueError("--router-image is for --disaggregate, whose replicas stand behind a router")
        made = Server(
            name=name,
            pool=pool,
            share=share,
            engine=engine,
            image=image,
            model=plain_model(cluster, model, pool.group),
            replicas=decode,
            prefill=prefill,
            router_image=_router(engine, image, router_image) if prefill else None,
            team=team,
            token_secret=token_secret,
            arguments=tuple(arg or ()),
        )
        _plain_apart(made)
        _declared(cluster, pool.group, nodes=nodes, apart=apart)
        check_replicas(cluster, pool, share, prefill + decode, team)
        objects = serving_manifests(cluster, made)
    except ValueError as error:
        refuse(f"{environment}: {error}")
    _write(objects, _serve_notes(cluster, made))


def _cluster(path: Path) -> Cluster:
    from ultracluster.config import InvalidEnvironmentError
    from ultracluster.model import resolve
    from ultracluster.rules import enforce

    try:
        loaded = load_file(path)
        enforce(loaded)
    except InvalidEnvironmentError as error:
        refuse(str(error))
    return resolve(loaded.environment)


def _write(objects: Iterable[dict[str, Any]], notes: list[str]) -> None:
    from ultracluster.kubernetes.yaml_text import yaml_text

    for note in notes:
        remark(note)
    typer.echo("---\n".join(yaml_text(one) for one in objects), nl=False)


def _forms(name: str, image: str, team: str | None, secret: str | None) -> None:
    for what, value, form in (
        ("the name", name, _NAME),
        ("--image", image, _IMAGE),
        ("--token-secret", secret, _NAME),
    ):
        if value is not None and not form.fullmatch(value):
            raise ValueError(f"{what} {value!r} has characters that are not allowed there")


def _together(
    model: str, secret: str | None, apart: str | None, replicas: int, arguments: list[str] | None
) -> None:
    """Refuse options that would be ignored, or that undo what the command writes."""
    if secret is not None and not model.startswith("hf:"):
        raise ValueError(f"--token-secret is for models of Hugging Face, and this is {model}")
    if apart and replicas != 1:
        raise ValueError(f"--replicas or --disaggregate, and not both: --disaggregate 1:{replicas}")
    for argument in arguments or ():
        if (option := argument.partition("=")[0].strip()) in _OURS:
            raise ValueError(f"--arg {argument!r}: the command writes {option} itself")


def _team(cluster: Cluster, team: str | None) -> str | None:
    teams = list(cluster.environment.teams)
    if team is None and teams:
        raise ValueError(f"This environment has teams: pass --team ({', '.join(teams)}).")
    if team is not None and team not in teams:
        raise ValueError(
            f"there is no team `{team}`: "
            + (f"one of {', '.join(teams)}" if teams else "the environment has none")
        )
    return team


def _operator(cluster: Cluster) -> tuple[HyperPodEks, HyperPodInference]:
    from ultracluster.config.kubernetes import HyperPodEks

    settings = cluster.settings
    if not isinstance(settings, HyperPodEks):
        instead = "`job serve` writes plain objects"
        if cluster.kubernetes is None:
            instead = "start a server in a batch job"
        raise ValueError(f"endpoints are HyperPod's on EKS, and this is {settings.kind}: {instead}")
    if settings.inference is None:
        raise ValueError("the operator is not installed: write orchestrator.inference: {}")
    return settings, settings.inference


def _of_type(cluster: Cluster, group: str | None, instance_type: str | None) -> str | None:
    from ultracluster.model.team_shares import pools

    if instance_type is None:
        return group
    known = {pool.group: pool.instance_type.name for pool in pools(cluster)}
    bare = instance_type.removeprefix("ml.")
    fitting = [one for one, kind in known.items() if kind == bare and group in (None, one)]
    if not fitting:
        there = ", ".join(f"{one} ({kind})" for one, kind in known.items())
        raise ValueError(f"no group has {bare}: there is {there or 'none with accelerators'}")
    return fitting[0]


def _pool(cluster: Cluster, group: str | None) -> Pool:
    from ultracluster.serving.fit import serving_pool

    return serving_pool(cluster, group)


def _share(pool: Pool, gpus: int | None) -> Share:
    from ultracluster.serving.fit import share_of

    return share_of(pool, gpus)


def _two(text: str, option: str, example: str) -> tuple[int, int]:
    found = _TWO.fullmatch(text)
    if not found:
        raise ValueError(f"{option} {text!r} has another form than {example}")
    first, second = int(found[1]), int(found[2])
    if option == "--disaggregate" and not (first and second):
        raise ValueError("--disaggregate has one replica of each kind at the least: 1:1")
    return first, second


def _scaling(wanted: HyperPodInference, text: str | None, invocations: float) -> Scaling | None:
    from ultracluster.serving.endpoint import Scaling

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
    from ultracluster.catalog.hyperpod_eks import engine_floor, inference_since
    from ultracluster.model.inference import inference_has

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
    from ultracluster.catalog.hyperpod_eks import disaggregated_types, inference_since
    from ultracluster.model.inference import inference_has

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


def _fits(cluster: Cluster, made: Endpoint, most: int) -> None:
    from ultracluster.serving.fit import check_replicas

    check_replicas(cluster, made.pool, made.share, made.prefill + most, made.team)


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
    from ultracluster.config.kubernetes import Eks, HyperPodEks

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
    from ultracluster.kubernetes.isolation import DEFAULT, job_namespace

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
    from ultracluster.kubernetes.isolation import job_namespace

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


__all__ = ["endpoint", "serve"]
