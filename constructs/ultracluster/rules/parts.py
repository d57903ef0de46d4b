"""The parts of an environment that rules take, and where each stands in its file."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.lustre import LustreSettings, lustre_of
from ultracluster.config.storage import NewOpenZfs, Storage
from ultracluster.model import Cluster, Group, resolve

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
    yield from _placed(("storage",), parts_in(environment.storage))
    yield ("orchestrator",), environment.orchestrator
    for name, group in cluster.groups.items():
        yield ("node_groups", name), group
        yield ("node_groups", name), group.settings
    for name, team in environment.teams.items():
        yield ("teams", name), team
    yield ("software",), environment.software
    yield ("access",), environment.access


def parts_in(part: object) -> Iterator[Part]:
    """The parts of something that stands by itself, as a construct has it; the thing itself is the first."""
    match part:
        case Environment():
            yield from parts_of(resolve(part))
            return
        case Cluster():
            yield from parts_of(part)
            return
        case _:
            yield (), part
    match part:
        case Group():
            yield (), part.settings
            yield (), part.traits
        case Storage():
            yield from _storage(part)
        case NewOpenZfs():
            yield ("backups",), part.backups
        case _ if isinstance(part, LustreSettings):
            facts = lustre_of(part)
            yield (), facts
            if facts.backups is not None:
                yield ("backups",), facts.backups
            for folder, repository in facts.data_repositories.items():
                yield ("data_repositories", folder), repository
        case _:
            pass


def _storage(storage: Storage) -> Iterator[Part]:
    parts = {
        "lustre": storage.lustre,
        "openzfs": storage.openzfs,
        "accounting_database": storage.accounting_database,
        "scripts_bucket": storage.scripts_bucket,
        "log_bucket": storage.log_bucket,
    }
    for key, part in parts.items():
        if part is not None:
            yield from _placed((key,), parts_in(part))


def _placed(place: Path, parts: Iterator[Part]) -> Iterator[Part]:
    for path, part in parts:
        yield (*place, *path), part
