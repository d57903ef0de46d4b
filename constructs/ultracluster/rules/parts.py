"""The parts of an environment that rules take, and where each stands in its file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ultracluster.config import Environment
from ultracluster.config.base import Model
from ultracluster.config.findings import Path
from ultracluster.config.lustre import LustreSettings, lustre_of
from ultracluster.config.orchestrator import OrchestratorSettings
from ultracluster.model import TRAITS, Cluster, Group, resolve

Part = tuple[Path, object]


def parts_of(cluster: Cluster) -> Iterator[Part]:
    """Every part with its path: the cluster and its environment first, then what they are made of."""
    environment = cluster.environment
    yield (), cluster
    yield (), environment
    yield (), cluster.traits
    if cluster.home is not None:
        yield ("region",), cluster.home
    yield ("network",), environment.network
    yield ("storage",), environment.storage
    yield from _storage(cluster)
    yield from _with_parts(("orchestrator",), environment.orchestrator)
    for name, group in cluster.groups.items():
        yield ("node_groups", name), group
        yield from _with_parts(("node_groups", name), group.settings)
    for name, team in environment.teams.items():
        yield ("teams", name), team
    for name, declared in environment.instance_types.items():
        yield ("instance_types", name), declared
    yield ("software",), environment.software
    yield ("access",), environment.access


def parts_in(part: object) -> Iterator[Part]:
    """The parts of something that stands alone, as a construct has it."""
    match part:
        case Environment():
            yield from parts_of(resolve(part))
        case Cluster():
            yield from parts_of(part)
        case Group():
            yield (), part
            yield from _with_parts((), part.settings)
            yield (), part.traits
        case _ if isinstance(part, LustreSettings):
            facts = lustre_of(part)
            yield (), part
            yield (), facts
            for folder, repository in facts.data_repositories.items():
                yield ("data_repositories", folder), repository
        case _ if isinstance(part, OrchestratorSettings):
            yield (), TRAITS[part.kind]
            yield from _with_parts((), part)
        case Model():
            yield from _with_parts((), part)
        case _:
            yield (), part


def _with_parts(place: Path, model: Model) -> Iterator[Part]:
    """A model of the configuration and the models in its fields: a directory, an endpoint, each partition."""
    yield place, model
    for key, value in model:
        if isinstance(value, Model):
            yield from _with_parts((*place, key), value)
        elif isinstance(value, dict):
            for name, inner in cast("dict[str, Any]", value).items():
                if isinstance(inner, Model):
                    yield from _with_parts((*place, key, name), inner)


def _storage(cluster: Cluster) -> Iterator[Part]:
    storage = cluster.environment.storage
    if cluster.lustre:
        place = ("storage", "lustre")
        yield place, storage.lustre
        yield place, cluster.lustre
        for folder, repository in cluster.lustre.data_repositories.items():
            yield (*place, "data_repositories", folder), repository
    if storage.openzfs:
        yield ("storage", "openzfs"), storage.openzfs
    if storage.accounting_database:
        yield ("storage", "accounting_database"), storage.accounting_database
