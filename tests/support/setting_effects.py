"""What a change of one setting changes: what is rendered without the CDK, a finding, or a template."""

from __future__ import annotations

import copy
import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import Phase, find
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from project import ROOT
from setting_readers import Setting, environments, models, models_in, settings

from ultracluster.config import InvalidEnvironmentError, Loaded, load, parse
from ultracluster.config.base import Model
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.source import Source
from ultracluster.kubernetes.charts import device_charts, job_charts
from ultracluster.kubernetes.isolation import job_namespace
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configurations
from ultracluster.model.state_documents import state_documents
from ultracluster.parallelcluster.configuration_file import cluster_configuration
from ultracluster.parallelcluster.deployed_values import value_sources
from ultracluster.plan.environment_plan import plan
from ultracluster.rules import check
from ultracluster.rules.examples import applied
from ultracluster.slurm.configuration import slurm_configuration

YamlPath = tuple[str | int, ...]
DATA = Path(__file__).with_suffix(".yaml")
TRIES = 2
"""Values of a setting that are tried at each place of an environment."""
PLACES = 3
"""Places of an environment at which a setting is changed."""
FILES = 12
"""Environments in which a setting is changed, at most."""


@dataclass(frozen=True)
class Place:
    """A setting in an environment, with its value there."""

    loaded: Loaded
    path: YamlPath
    value: Any


def owner(setting: Setting) -> Setting:
    """The class that declares the setting, which those below it share."""
    model, name = setting
    return next(
        (part, name) for part in reversed(model.__mro__) if name in vars(part).get("__annotations__", ())
    )


def leaves() -> set[Setting]:
    """Settings that hold no further settings, each as its owner's."""
    return {
        owner((model, name))
        for model, name in settings(models())
        if not list(models_in(model.model_fields[name].annotation))
    }


@cache
def data() -> Mapping[str, Any]:
    """setting_effects.yaml."""
    return yaml.safe_load(DATA.read_text(encoding="utf-8"))


def where() -> dict[Setting, dict[int, list[Place]]]:
    """Places of each setting, by environment."""
    found: dict[Setting, dict[int, list[Place]]] = {}
    further = (changed_environment(row, changed=False) for row in (*data()["further"], *data()["templates"]))
    for number, loaded in enumerate([*further, *environments()]):
        for model, path in _models(loaded.environment):
            for name in type(model).model_fields:
                places = found.setdefault(owner((type(model), name)), {})
                if number in places or len(places) < FILES:
                    places.setdefault(number, []).append(Place(loaded, (*path, name), getattr(model, name)))
    return found


def _models(value: object, path: YamlPath = ()) -> Iterator[tuple[Model, YamlPath]]:
    if isinstance(value, Model):
        yield value, path
        for name in type(value).model_fields:
            yield from _models(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping):
        for key, part in typing.cast("Mapping[str, object]", value).items():
            yield from _models(part, (*path, key))
    elif isinstance(value, tuple):
        for index, part in enumerate(typing.cast("tuple[object, ...]", value)):
            yield from _models(part, (*path, index))


def has_effect(setting: Setting, at: Mapping[int, Sequence[Place]]) -> bool:
    """Whether a change of the setting changes what is rendered, planned or found, in any environment."""
    return any(
        _differs(changed, number, place.loaded)
        for number, places in at.items()
        for place in places[:PLACES]
        for changed in _parsed(place, _values_of(setting, place.value))
    )


def _values_of(setting: Setting, now: Any) -> Iterable[Any]:
    model, name = setting
    given = data()["values"].get(f"{model.__name__}.{name}")
    field = model.model_fields[name]
    return _values(field.annotation, now, (*field.metadata, field)) if given is None else [given]


def _differs(changed: Loaded, number: int, before: Loaded) -> bool:
    """Whether something else is shown. What cannot be rendered has to be refused, by a finding."""
    try:
        return any(new != old for new, old in zip(shown(changed), _Kept.of(number, before), strict=False))
    except Exception as error:
        if not any(finding.blocks for finding in check(changed)):
            raise AssertionError(f"no rule refuses what cannot be rendered: {error!r}") from error
        return True


def _parsed(place: Place, values: Iterable[Any]) -> Iterator[Loaded]:
    """The environment with other values in that place, of those that have the shape."""
    now = list(place.value) if isinstance(place.value, tuple) else place.value
    left = TRIES
    for value in values:
        if left == 0:
            return
        if type(value) is type(now) and value == now:
            continue
        data = _with(place.loaded.source.data, place.path, value)
        try:
            changed = _loaded(place.loaded.environment.file, data)
        except InvalidEnvironmentError:
            continue
        left -= 1
        yield changed


def _loaded(file: Path, data: Any) -> Loaded:
    found = parse(Source(str(file), data=data))
    return Loaded(found.environment.at(file), found.source)


def _with(environment: Any, path: YamlPath, value: Any) -> Any:
    result = copy.deepcopy(environment)
    holder = result
    for key in path[:-1]:
        if isinstance(holder, dict) and typing.cast("dict[Any, Any]", holder).get(key) is None:
            holder[key] = {}
        holder = holder[key]
    holder[path[-1]] = value
    return result


def shown(loaded: Loaded) -> Iterator[str]:
    """What comes of an environment without the CDK, what takes little time first."""
    environment = loaded.environment
    cluster = resolve(environment)
    made = script_configurations(cluster)
    yield json.dumps([made.of_all, made.by_group], default=str, sort_keys=True)
    yield repr(state_documents(cluster))
    if cluster.traits.slurm:
        yield repr(slurm_configuration(cluster))
    else:
        yield repr([text(cluster) for text in (device_charts, job_charts, scheduling)])
        yield repr(job_namespace(cluster, None))
    if isinstance(cluster.settings, ParallelCluster):
        yield repr(cluster_configuration(cluster, value_sources(environment).placeholders()))
    yield repr(plan(cluster).document())
    yield repr(sorted((finding.code, str(finding.path), finding.message) for finding in check(loaded)))


class _Kept:
    """What is shown of each environment as it is, made as far as it is asked for."""

    _all: typing.ClassVar[dict[int, tuple[list[str], Iterator[str]]]] = {}

    @classmethod
    def of(cls, number: int, loaded: Loaded) -> Iterator[str]:
        kept, rest = cls._all.setdefault(number, ([], shown(loaded)))
        yield from kept
        for text in rest:
            kept.append(text)
            yield text


def _values(kind: Any, now: Any, about: Sequence[Any] = ()) -> Iterator[Any]:
    """Values of a type, those near the one that it has now first."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        more = [part for one in kind.__metadata__ for part in (*getattr(one, "metadata", ()), one)]
        yield from _values(arguments[0], now, (*about, *more))
    elif origin in (typing.Union, types.UnionType):
        for part in arguments:
            yield from _values(part, now, about)
    elif origin is typing.Literal:
        yield from arguments
    elif kind is types.NoneType:
        yield None
    elif kind is bool:
        yield now is not True
    elif kind in (int, float):
        yield from _numbers(kind, now, about)
    elif kind is str:
        yield from _texts(now, about)
    elif origin is Sequence:
        if now:
            yield list(now)[:-1]
        for value in _values(arguments[0], now[0] if now else None):
            yield from ([value], [*(now or ()), value])
    elif origin is dict:
        key, value = arguments
        for name in now or ():
            yield from ({**now, name: one} for one in _values(value, now[name]))
        yield from ({name: one} for name in _values(key, None) for one in _values(value, None))
    else:
        assert kind is Any, kind
        yield from ("changed", 1)


def _numbers(kind: type[int | float], now: Any, about: Sequence[Any]) -> Iterator[Any]:
    number = now if isinstance(now, int | float) else 0
    yield from map(kind, (number + 1, number - 1, number * 2, number // 2))
    bounds = [getattr(part, name, None) for part in about for name in ("ge", "gt", "le")]
    for bound in (bound for bound in bounds if bound is not None):
        yield from map(kind, (bound, bound + 1, bound * 10))


def _texts(now: Any, about: Sequence[Any]) -> Iterator[str]:
    for part in about:
        yield from getattr(part, "examples", None) or ()
    if isinstance(now, str) and now:
        last = max((place for place, letter in enumerate(now) if letter.isdigit()), default=None)
        if last is not None:
            yield now[:last] + ("2" if now[last] == "1" else "1") + now[last + 1 :]
        yield from (now + "x", now[:-1] + ("b" if now[-1] == "a" else "a"))
    patterns = [part.pattern for part in about if getattr(part, "pattern", None)]
    yield from map(_text_of, patterns)
    yield from () if patterns else ("Changed", "changed")


@cache
def _text_of(pattern: str) -> str:
    """Any text of a form: a shorter one would take seconds."""
    first = hypothesis_settings(database=None, derandomize=True, phases=[Phase.generate])
    return find(st.from_regex(pattern, fullmatch=True).filter(str.isascii), lambda _: True, settings=first)


def changed_environment(row: Mapping[str, Any], *, changed: bool) -> Loaded:
    """An environment of the table for templates, as it is or with every change of its rows."""
    file = ROOT / "environments" / f"{row['base']}.yaml"
    environment = applied(load(file).source.data, row.get("with", {}))
    for change in row.get("changes", ()) if changed else ():
        environment = _with(environment, path_of(change["at"]), change["to"])
    return _loaded(file, environment)


def path_of(text: str) -> YamlPath:
    """A dotted path; parts that are numbers are indices."""
    return tuple(int(part) if part.isdigit() else part for part in text.split("."))


def setting_at(loaded: Loaded, path: YamlPath) -> Setting:
    """The setting at a path."""
    holder: Any = loaded.environment
    for key in path[:-1]:
        holder = getattr(holder, str(key)) if isinstance(holder, Model) else holder[key]
    return owner((type(holder), str(path[-1])))


def lines(templates: Mapping[str, Any]) -> set[str]:
    """Each value of templates, with its place: `AWS::EKS::Nodegroup ...UpdateConfig.MaxUnavailable=2`."""
    return {
        f"{resource['Type']} {path}={value}"
        for template in templates.values()
        for resource in template["Resources"].values()
        for path, value in _flat(resource.get("Properties", {}))
    }


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in typing.cast("dict[str, Any]", value).items():
            yield from _flat(part, f"{path}.{key}")
    elif isinstance(value, list):
        for part in typing.cast("list[Any]", value):
            yield from _flat(part, path)
    else:
        yield path, value
