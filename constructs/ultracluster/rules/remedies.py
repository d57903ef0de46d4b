"""Changes of a whole environment that rules of several folders advise."""

from __future__ import annotations

from typing import Any

from ultracluster.catalog import region
from ultracluster.catalog.eks import refused_zones
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import Remedy, anywhere, ask, either
from ultracluster.config.storage import RdsMySql
from ultracluster.model import Cluster
from ultracluster.rules.arn_values import arns
from ultracluster.rules.zones import usual_zones


def moved_to(of: Cluster, *names: str) -> Remedy:
    """The environment in one of these Regions, with zones that are there; ARNs and ids cannot move."""
    cluster = of
    if any(True for _ in arns(cluster.environment)) or cluster.environment.network.vpc:
        return ask("decision", f"region: {' or '.join(names)}, with what exists there")
    return either(*(_moved_to(cluster, name) for name in names))


def _moved_to(cluster: Cluster, name: str) -> Remedy:
    home, environment = region(name), cluster.environment
    zones = usual_zones(home, refused_zones()) if home else []
    changes: dict[YamlPath, Any] = {("region",): name}
    if zones and home and not environment.network.zone_id.startswith(f"{home.zone_prefix}-"):
        changes["network", "zone_id"] = zones[0]
        if cluster.kubernetes and cluster.kubernetes.second_zone_id:
            changes["orchestrator", "second_zone_id"] = zones[-1]
        database = environment.storage.accounting_database
        if isinstance(database, RdsMySql) and database.second_zone_id:
            changes["storage", "accounting_database", "second_zone_id"] = zones[-1]
    return anywhere(changes)


def new_database(of: Cluster) -> Remedy:
    """An accounting database of our own, where its second zone is known."""
    cluster = of
    network = cluster.environment.network
    zones = usual_zones(cluster.home, (network.zone_id,)) if cluster.home else []
    if network.vpc or not zones:
        return ask("fact", "storage.accounting_database: {kind: rds-mysql, ...} with its zone or subnets")
    database = {"kind": "rds-mysql", "second_zone_id": zones[0]}
    return anywhere({("storage", "accounting_database"): database})
