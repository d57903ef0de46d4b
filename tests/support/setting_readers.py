"""Who reads each setting of an environment file.

What runs without the CDK is traced: rules, plan, `cluster.json`, charts, configuration of Slurm and
ParallelCluster. For the rest, which a synth would run, the code is read: a module names the model, or a model
that holds it, and has the setting as an attribute.
"""

from __future__ import annotations

import ast
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from project import ENVIRONMENTS, ROOT
from wish_cases import OVERLAYS

from tools.rule_examples import base_of
from ultracluster.config import Environment, Loaded, load, parse
from ultracluster.config.base import Model
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.source import Source
from ultracluster.kubernetes.charts import device_charts, job_charts
from ultracluster.kubernetes.isolation import job_namespace
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import value_sources
from ultracluster.plan.environment_plan import plan
from ultracluster.rules import check
from ultracluster.rules.examples import applied, examples
from ultracluster.slurm.configuration import slurm_configuration

Setting = tuple[type[Model], str]
PACKAGE = str(ROOT / "constructs" / "ultracluster")


@cache
def models() -> tuple[type[Model], ...]:
    """Every model of an environment."""
    found: dict[type[Model], None] = {Environment: None}
    pending: list[type[Model]] = [Environment]
    for model in pending:
        for field in model.model_fields.values():
            for part in models_in(field.annotation):
                if part not in found:
                    found[part] = None
                    pending.append(part)
    return tuple(found)


def models_in(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for part in typing.get_args(annotation):
        yield from models_in(part)


def settings(of: Iterable[type[Model]]) -> set[Setting]:
    """Settings with a choice: `kind: eks` of `Eks` chooses the model, and has no other reader."""
    return {
        (model, name)
        for model in of
        for name, field in model.model_fields.items()
        if not (
            typing.get_origin(field.annotation) is typing.Literal
            and len(typing.get_args(field.annotation)) == 1
        )
    }


def parts(value: object) -> Iterator[Model]:
    """All models in a value."""
    if isinstance(value, Model):
        yield value
        yield from (part for name in type(value).model_fields for part in parts(getattr(value, name)))
    elif isinstance(value, Mapping):
        yield from (part for one in value.values() for part in parts(one))
    elif isinstance(value, tuple | list):
        yield from (part for one in value for part in parts(one))


def environments() -> list[Loaded]:
    """Every shipped one and wish, and examples of rules that have further models."""
    files = [*(f"environments/{name}.yaml" for name in ENVIRONMENTS), *OVERLAYS]
    found = [load(ROOT / file) for file in files]
    there = {type(part) for one in found for part in parts(one.environment)}
    for example in examples().values():
        if not example.where and there < set(models()):
            data = applied(applied(base_of(example), example.bad), example.good)
            loaded = parse(Source(str(ROOT / "environments" / "example.yaml"), data=data))
            new = {type(part) for part in parts(loaded.environment)} - there
            if new:
                there |= new
                found.append(loaded)
    return found


RULES = str(ROOT / "constructs" / "ultracluster" / "rules")


def traced(without: str = "no such folder") -> set[Setting]:
    """Settings that code of the package reads by name after an environment is loaded.

    Args:
        without: a folder of the package whose modules do not count.
    """
    loaded = environments()
    with _recorded(without) as found:
        for one in loaded:
            check(one)
            cluster = resolve(one.environment)
            script_configurations(cluster)
            plan(cluster).document()
            if cluster.traits.slurm:
                slurm_configuration(cluster)
            else:
                for text in (device_charts, job_charts, scheduling):
                    text(cluster)
                job_namespace(cluster, None)
            if isinstance(cluster.settings, ParallelCluster):
                cluster_configuration(cluster, value_sources(one.environment).placeholders())
    return found


@contextmanager
def _recorded(without: str) -> Iterator[set[Setting]]:
    found: set[Setting] = set()
    get = object.__getattribute__

    def read_by_name(self: Model, name: str) -> Any:
        if name[0] != "_" and name in type(self).__pydantic_fields__:
            code = sys._getframe(1).f_code
            file = code.co_filename
            if name in code.co_names and file.startswith(PACKAGE) and not file.startswith(without):
                found.add((type(self), name))
        return get(self, name)

    Model.__getattribute__ = read_by_name  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield found
    finally:
        del Model.__getattribute__


def named(of: Iterable[type[Model]] | None = None, without: str = "no such folder") -> set[Setting]:
    """Settings that are an attribute in a module outside config/ and `without` that knows the model.

    It knows a model that it names, or one that has it as a field, and one whose field it has as an attribute.
    """
    fields = [(holder, name, part) for holder in models() for name, part in _held(holder)]
    found: set[Setting] = set()
    for model in models() if of is None else of:
        own = _names(model)
        holding = [(holder, name) for holder, name, part in fields if part.__name__ in own]
        known = own.union(*(_names(holder) for holder, _ in holding if holder is not Environment))
        through = {name for _, name in holding}
        near = [
            attributes for names, attributes in _modules(without) if known & names or through & attributes
        ]
        found |= {(model, name) for model, name in settings([model]) if any(name in one for one in near)}
    return found


def _held(model: type[Model]) -> Iterator[tuple[str, type[Model]]]:
    """Fields that hold further models."""
    for name, field in model.model_fields.items():
        yield from ((name, part) for part in models_in(field.annotation))


def _names(model: type[Model]) -> set[str]:
    """Of the model and of those that it extends."""
    return {one.__name__ for one in model.__mro__ if issubclass(one, Model) and one is not Model}


@cache
def _modules(without: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Names and attributes of each module that is no model."""
    found: list[tuple[frozenset[str], frozenset[str]]] = []
    for file in [*(ROOT / "constructs").rglob("*.py"), *(ROOT / "stacks").glob("*.py")]:
        if file.parent.name != "config" and not str(file).startswith(without):
            nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            names |= {node.name for node in nodes if isinstance(node, ast.alias)}
            attributes = {
                node.attr
                for node in nodes
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
            }
            found.append((frozenset(names), frozenset(attributes)))
    return tuple(found)
