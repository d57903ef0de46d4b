"""`ultracluster serve`: a model server as plain objects of Kubernetes, or an endpoint of HyperPod."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ultracluster.cli.environments import EnvironmentArgument, load_file, refuse
from ultracluster.cli.job_options import typed_options
from ultracluster.cli.terminal import remark
from ultracluster.config import InvalidEnvironmentError
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import resolve
from ultracluster.rules import enforce
from ultracluster.serving.request import ServingWishes, endpoint_request, plain_request

if TYPE_CHECKING:
    from ultracluster.model import Cluster

_OF_ENDPOINTS = (
    "instance_type", "file_system", "kv_cache", "redis", "routing", "autoscale", "invocations", "gateway",
    "metrics",
)  # fmt: skip
_OF_OBJECTS = ("nodes", "router_image")


def serve(
    context: typer.Context,
    environment: EnvironmentArgument,
    name: Annotated[str, typer.Argument(help="Name of the service.")],
    model: Annotated[
        str,
        typer.Option(help="s3://bucket/folder, a folder on Lustre (/fsx/...), or hf:organisation/model."),
    ],
    image: Annotated[str, typer.Option(help="Container image of the engine, by version or digest.")],
    endpoint: Annotated[
        bool, typer.Option("--endpoint", help="As an endpoint of HyperPod's inference operator.")
    ] = False,
    engine: Annotated[
        Literal["vllm", "sglang"], typer.Option(help="Inference engine in the image.")
    ] = "vllm",
    group: Annotated[
        str | None, typer.Option(help="Node group; that of `serving`, else the first with GPUs, by default.")
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option(help="Endpoint: the first group of this type, instead of --group.")
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="Team (namespace); required if the environment has teams.")
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, help="How many; --disaggregate has its own numbers.")] = 1,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs of a replica on a node; all of it by default.")
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of one replica; above 1 as LeaderWorkerSet.")] = 1,
    apart: Annotated[
        str | None,
        typer.Option(
            "--disaggregate",
            metavar="PREFILL:DECODE",
            help="Number of prefill and of decode replicas, on separate nodes.",
            show_default=False,
        ),
    ] = None,
    router_image: Annotated[
        str | None,
        typer.Option(help="Of vllm-router, with --disaggregate; SGLang's image has its router."),
    ] = None,
    file_system: Annotated[
        str | None, typer.Option(help="Endpoint: id of the Lustre file system that a folder is on (fs-...).")
    ] = None,
    token_secret: Annotated[
        str | None,
        typer.Option("--token-secret", help="Secret with key `token`, for gated models of Hugging Face."),
    ] = None,
    kv_cache: Annotated[
        Literal["none", "l1", "l2-redis", "tiered"],
        typer.Option(help="Endpoint: where keys and values of prompts are kept beside GPUs."),
    ] = "l1",
    redis: Annotated[str | None, typer.Option(help="Address for --kv-cache l2-redis, redis://...")] = None,
    routing: Annotated[
        Literal["prefixaware", "kvaware", "session", "roundrobin"] | None,
        typer.Option(
            help="Endpoint: which replica gets a request; none by default: the load balancer decides."
        ),
    ] = None,
    autoscale: Annotated[
        str | None, typer.Option(metavar="MIN:MAX", help="Endpoint: replicas by requests that come.")
    ] = None,
    invocations: Annotated[
        float,
        typer.Option(min=0.1, max=1e6, help="Requests a minute for each replica, with --autoscale."),
    ] = 60,
    gateway: Annotated[
        str | None, typer.Option(help="Endpoint: name of a gateway that the model joins, or that is made.")
    ] = None,
    metrics: Annotated[
        bool, typer.Option("--metrics/--no-metrics", help="Endpoint: of the model server.")
    ] = True,
    arg: Annotated[
        list[str] | None, typer.Option("--arg", help="Further argument of the engine; may be repeated.")
    ] = None,
) -> None:
    """Print a model server of vLLM or SGLang, for `kubectl apply -f -`.

    Plain objects of Kubernetes; with --endpoint one object of HyperPod's inference operator.

    Exit code 2 if there can be none.
    """
    others = _OF_OBJECTS if endpoint else _OF_ENDPOINTS
    if given := [option for one, option in typed_options(context).items() if one in others]:
        refuse(f"{', '.join(given)}: {'not with' if endpoint else 'only with'} --endpoint")
    wishes = ServingWishes(
        name=name,
        model=model,
        image=image,
        engine=engine,
        group=group,
        team=team,
        replicas=replicas,
        gpus=gpus,
        apart=apart,
        token_secret=token_secret,
        arguments=tuple(arg or ()),
        nodes=nodes,
        router_image=router_image,
        instance_type=instance_type,
        file_system=file_system,
        kv_cache=kv_cache,
        redis=redis,
        routing=routing,
        autoscale=autoscale,
        invocations=invocations,
        gateway=gateway,
        metrics=metrics,
    )
    cluster = _cluster(environment)
    try:
        served = endpoint_request(cluster, wishes) if endpoint else plain_request(cluster, wishes)
    except ValueError as error:
        refuse(f"{environment}: {error}")
    for note in served.notes:
        remark(note)
    typer.echo("---\n".join(yaml_text(one) for one in served.objects), nl=False)


def _cluster(path: Path) -> Cluster:
    try:
        loaded = load_file(path)
        enforce(loaded)
    except InvalidEnvironmentError as error:
        refuse(str(error))
    return resolve(loaded.environment)


__all__ = ["serve"]
