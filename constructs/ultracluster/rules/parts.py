"""The parts of an environment that rules take, and where each stands in its file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ultracluster.config import Environment
from ultracluster.config.base import Model
from ultracluster.config.findings import YamlPath
from ultracluster.config.lustre import LustreSettings, lustre_of
from ultracluster.config.orchestrator import OrchestratorSettings
from ultracluster.model import TRAITS, Cluster, Group, resolve

Part = tuple[YamlPath, object]


def parts_of(cluster: Cluster) -> Iterator[Part]:
    """Every part with its path: the cluster first, then what it is made of."""
    yield (), cluster
    yield (), cluster.traits
    if cluster.home is not None:
        yield ("region",), cluster.home
    for name, group in cluster.groups.items():
        yield ("node_groups", name), group
    yield from _with_parts((), cluster.environment)


def parts_in(part: object) -> Iterator[Part]:
    """The parts of something that stands by itself, as a construct has it."""
    match part:
        case Environment():
            yield from parts_of(resolve(part))
        case Cluster():
            yield from parts_of(part)
        case Group():
            yield (), part
            yield (), part.traits
            yield from _with_parts((), part.settings)
        case Model():
            if isinstance(part, OrchestratorSettings):
                yield (), TRAITS[part.kind]
            yield from _with_parts((), part)
        case _:
            yield (), part


def _with_parts(place: YamlPath, model: Model) -> Iterator[Part]:
    """A model of the configuration and the models in its fields: a file system, its backups, its folders."""
    yield place, model
    if isinstance(model, LustreSettings):
        yield place, lustre_of(model)
    for key, value in model:
        yield from _in_value((*place, key), value)


def _in_value(place: YamlPath, value: object) -> Iterator[Part]:
    if isinstance(value, Model):
        yield from _with_parts(place, value)
    elif isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _in_value((*place, name), inner)
    elif isinstance(value, tuple):
        for number, inner in enumerate(cast("tuple[Any, ...]", value)):
            yield from _in_value((*place, number), inner)
