"""VPC endpoints: which ones the nodes need without the internet, and which ones we make.

`catalog/endpoints.json` holds the services, each with its reason and source, and what AWS takes policies for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.network import Network
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model.cluster import Cluster
from ultracluster.model.directory import directory_of
from ultracluster.model.observability import uses_addon, writes_metrics

PolicyKind = Literal["full", "principals"]
"""What a policy confines: principals and resources, or only who asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One VPC endpoint."""

    service: str
    """As in `com.amazonaws.<region>.<service>`."""
    kind: Literal["gateway", "interface"]
    """A gateway is an entry in route tables; an interface takes one address per subnet."""
    reason: str
    """What on a node asks for it."""


def closed_endpoints(cluster: Cluster) -> tuple[Endpoint, ...]:
    """The endpoints without which nodes that have no internet route do not come up."""
    words = words_of(cluster)
    return tuple(endpoint for endpoint, when in _rows() if when in words)


def made_endpoints(cluster: Cluster) -> tuple[Endpoint, ...]:
    """The endpoints that are ours to make in this environment."""
    return made_endpoints_of(cluster.environment.network, closed_endpoints(cluster))


def made_endpoints_of(network: Network, closed: tuple[Endpoint, ...] | None = None) -> tuple[Endpoint, ...]:
    """The endpoints that are ours to make in a network.

    With `egress: nat` that is the gateway to S3, which costs nothing and keeps data off the NAT
    gateway; with `egress: closed` all of `closed`, by default what every cluster needs; in both
    `extra_endpoints`. None in a VPC made elsewhere, unless it says `create_endpoints`.
    """
    if network.vpc and not network.vpc.create_endpoints:
        return ()
    if closed is None:
        closed = tuple(endpoint for endpoint, when in _rows() if when == "always")
    needed = closed
    if network.egress == "nat":
        needed = tuple(endpoint for endpoint in closed if endpoint.kind == "gateway")
    there = {(endpoint.service, endpoint.kind) for endpoint in needed}
    extra = (
        Endpoint(service=service, kind="interface", reason="asked for in network.extra_endpoints")
        for service in dict.fromkeys(network.extra_endpoints)
        if (service, "interface") not in there
    )
    return (*needed, *extra)


def policy_kind(service: str) -> PolicyKind | None:
    """What a policy confines at the endpoint of a service; None where AWS is not known to take one."""
    return _policies().get(service)


def words_of(cluster: Cluster) -> set[str]:
    """Words of endpoints.json that hold of a cluster."""
    words: set[str] = {"always", cluster.traits.kind, cluster.traits.scheduler}
    if cluster.traits.hyperpod:
        words.add("hyperpod")
    settings = cluster.settings
    own = isinstance(settings, ParallelCluster) and settings.directory_service
    directory = own or directory_of(cluster)
    if cluster.environment.storage.accounting_database is not None or directory:
        words.add("secrets")
    if isinstance(settings, ParallelCluster) and cluster.with_role("login"):
        words.add("login-pools")
    if any(lustre.efa for lustre in cluster.lustres.values()):
        words.add("lustre-efa")
    if writes_metrics(cluster):
        words.add("observability")
    if isinstance(settings, HyperPodEks) and (
        settings.task_governance
        or settings.training_operator
        or uses_addon(cluster)
        or settings.inference is not None
        or settings.spaces is not None
        or settings.tiered_checkpoints_percent  # its daemon's registry is not published either
    ):
        words.add("hyperpod-addons")
    return words


@cache
def _rows() -> tuple[tuple[Endpoint, str], ...]:
    return tuple(
        (
            Endpoint(service=row["service"], kind=row["kind"], reason=row["reason"]),
            str(row["when"]),
        )
        for row in _document()["endpoints"]
    )


@cache
def _policies() -> dict[str, PolicyKind | None]:
    document = _document()
    return {row["service"]: row["policy"] for row in (*document["endpoints"], *document["further"])}


@cache
def _document() -> dict[str, Any]:
    file = Path(__file__).parents[1] / "catalog" / "endpoints.json"
    return json.loads(file.read_text(encoding="utf-8"))
