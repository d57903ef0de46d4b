"""VPC endpoints: which ones the nodes need without the internet, and which ones we make.

`catalog/endpoints.json` holds the services, each with its reason and source.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ultracluster.config.network import Network
from ultracluster.model.cluster import Cluster


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
    words = _true_of(cluster)
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


def _true_of(cluster: Cluster) -> set[str]:
    """Words of endpoints.json that hold of a cluster."""
    words: set[str] = {"always", cluster.traits.kind, cluster.traits.scheduler}
    if cluster.traits.hyperpod:
        words.add("hyperpod")
    if cluster.environment.storage.accounting_database is not None:
        words.add("accounting-database")
    if cluster.lustre is not None and cluster.lustre.efa:
        words.add("lustre-efa")
    return words


@cache
def _rows() -> tuple[tuple[Endpoint, str], ...]:
    file = Path(__file__).parents[1] / "catalog" / "endpoints.json"
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["endpoints"]
    return tuple(
        (
            Endpoint(service=row["service"], kind=row["kind"], reason=row["reason"]),
            str(row["when"]),
        )
        for row in rows
    )
