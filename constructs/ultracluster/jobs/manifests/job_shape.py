# pyright: basic
# An object of Kubernetes has any form: what another program wrote is looked at, not believed.
"""What no API of Kubernetes takes in the pods of a job, and the line where it stands.

Only what is certain: a field that is not named here may be new.

Source: validation of PodTemplateSpec in kubernetes/kubernetes (pkg/apis/core/validation, v1.34).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml.nodes import MappingNode, SequenceNode

from ultracluster.config.findings import dotted
from ultracluster.config.plain_text import clipped, one_line
from ultracluster.config.remedy import YamlPath
from ultracluster.config.yaml_bounds import (
    MOST_VALUES,
    TooDeepError,
    TooMuchError,
    compose_documents,
    load_documents,
)
from ultracluster.jobs.manifests.job_kinds import EACH, JobKind, kind_of

MOST = 20
"""Faults that are told of one file: who has more has one cause for most of them."""
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Fault:
    """One value that has the wrong shape."""

    line: int
    """Counts from 1."""
    path: YamlPath
    why: str
    instead: str

    def __str__(self) -> str:
        return f"{clipped(dotted(self.path)) or 'the job'}: {self.why}: {self.instead}"


Found = tuple[YamlPath, str, str]
Check = Callable[[Any, YamlPath], Iterator[Found]]


def shape_faults(text: str) -> list[Fault]:
    """Those of every job in `text`; none where it is no YAML, which others say."""
    try:
        documents = load_documents(text)
        if _many(documents) or not (found := list(_all(documents))):
            return []
        nodes = compose_documents(text)
    except (TooDeepError, TooMuchError, ValueError):
        return []
    return [Fault(_line(nodes[number], path), path, why, instead) for number, (path, why, instead) in found]


def _many(documents: list[Any]) -> bool:
    """Return whether aliases repeat more than a file can mean; others say it."""
    left, made = list(documents), 0
    while left and made <= MOST_VALUES:
        one, made = left.pop(), made + 1
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return made > MOST_VALUES


def _all(documents: list[Any]) -> Iterator[tuple[int, Found]]:
    left = MOST
    for number, one in enumerate(documents):
        kind = kind_of(one) if isinstance(one, dict) else None
        for found in _job(kind, one) if kind else ():
            yield number, found
            left -= 1
            if not left:
                return


def _job(kind: JobKind, job: Any) -> Iterator[Found]:
    """Yield what is wrong on the way to the pods, and in them."""
    ways = (_way(way, job, needed=way is kind.template and EACH not in way) for way in kind.ways)
    yield from dict.fromkeys(found for way in ways for found in way)  # they begin alike


def _way(way: tuple[str, ...], job: Any, *, needed: bool) -> Iterator[Found]:
    """Faults on one way; a JobSet may have no jobs, a Job has its pods."""
    places: list[tuple[YamlPath, Any]] = [((), job)]
    for step in way:
        inner: list[tuple[YamlPath, Any]] = []
        for path, value in places:
            if step == EACH:
                yield from _each(path, value, inner)
            elif not isinstance(value, dict):
                yield path, f"{_is(value)}, and has no {step}", f"write a mapping with {step}"
            elif value.get(step) is not None:
                inner.append(((*path, step), value[step]))
            elif needed:
                yield path, f"has no {step}, which its pods need", f"write {step}"
        needed, places = needed or step == EACH, inner
    for path, template in places:
        if not isinstance(template, dict):
            yield path, f"{_is(template)}, and no template of pods", "write a mapping with spec"
        elif template.get("spec") is None:
            yield path, "has no spec, and a pod without one cannot be made", "write spec, with containers"
        else:
            yield from _pod(template["spec"], (*path, "spec"))


def _each(path: YamlPath, value: Any, inner: list[tuple[YamlPath, Any]]) -> Iterator[Found]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        inner += [((*path, key if isinstance(key, int) else str(key)), one) for key, one in items]
    else:
        yield path, f"{_is(value)}, and what starts pods is a list or a mapping", "write one"


def _pod(spec: Any, path: YamlPath) -> Iterator[Found]:
    if not isinstance(spec, dict):
        yield path, f"{_is(spec)}, and what pods are is a mapping", "write one, with containers"
        return
    if not spec.get("containers") and isinstance(spec.get("containers"), list | None):
        yield (
            ((*path, "containers") if "containers" in spec else path),
            "there is no container, and a pod without one cannot be made",
            "write containers, each with name and image",
        )
    names: dict[str, YamlPath] = {}
    for key in ("initContainers", "containers"):
        yield from _items(spec, key, path, _container)
        for number, one in enumerate(spec[key] if isinstance(spec.get(key), list) else ()):
            name = one.get("name") if isinstance(one, dict) else None
            own = (*path, key, number, "name")
            if isinstance(name, str) and (first := names.setdefault(name, own)) != own:
                other = dotted(first[len(path) : -1])
                yield own, f"{other} has the same name, {_shown(name)}", "call each by its own"
    yield from _items(spec, "volumes", path, _named)
    yield from _items(spec, "tolerations", path, _mapping)
    yield from _words(spec, "nodeSelector", path)


def _container(one: Any, path: YamlPath) -> Iterator[Found]:
    if not isinstance(one, dict):
        yield path, f"{_is(one)}, and a container is a mapping", "write one, with name and image"
        return
    yield from _named(one, path)
    yield from _text(one, "image", path, "write the name of the image")
    yield from _items(one, "command", path, _word)
    yield from _items(one, "args", path, _word)
    yield from _items(one, "env", path, _variable)
    yield from _items(one, "volumeMounts", path, _mount)
    resources = one.get("resources")
    if isinstance(resources, dict):
        for key in ("limits", "requests"):
            yield from _words(resources, key, (*path, "resources"), numbers=True)
    elif resources is not None:
        yield (*path, "resources"), f"{_is(resources)}, and no mapping", "write limits below it"


def _named(one: Any, path: YamlPath) -> Iterator[Found]:
    fix = "write a name of lower-case letters, digits and `-`, 63 at the most"
    if not isinstance(one, dict):
        yield path, f"{_is(one)}, and no mapping", "write one, with a name"
        return
    wrong = list(_text(one, "name", path, fix))
    yield from wrong
    if not wrong and not _LABEL.fullmatch(one["name"]):
        yield (*path, "name"), f"{_shown(one['name'])} is no name", fix


def _variable(one: Any, path: YamlPath) -> Iterator[Found]:
    if not isinstance(one, dict):
        yield path, f"{_is(one)}, and a variable is a mapping", "write name and value"
        return
    yield from _text(one, "name", path, "write the name of the variable")
    if not isinstance(one.get("value"), str | None):
        yield (*path, "value"), f"{_is(one['value'])}, and variables are text", "write it in quotes"


def _mount(one: Any, path: YamlPath) -> Iterator[Found]:
    if not isinstance(one, dict):
        yield path, f"{_is(one)}, and a mount is a mapping", "write name and mountPath"
        return
    yield from _text(one, "name", path, "write the name of the volume")
    yield from _text(one, "mountPath", path, "write the folder in the container")


def _mapping(one: Any, path: YamlPath) -> Iterator[Found]:
    if not isinstance(one, dict):
        yield path, f"{_is(one)}, and no mapping", "write one"


def _word(one: Any, path: YamlPath) -> Iterator[Found]:
    if not isinstance(one, str):
        yield path, f"{_is(one)}, and a command has words", "write it in quotes"


def _text(one: dict[Any, Any], key: str, path: YamlPath, fix: str) -> Iterator[Found]:
    value = one.get(key)
    if value is None or value == "":
        yield path, f"has no {key}", fix
    elif not isinstance(value, str):
        fix = fix if isinstance(value, dict | list) else "write it in quotes"
        yield (*path, key), f"{_is(value)}, and no text", fix


def _items(one: dict[Any, Any], key: str, path: YamlPath, each: Check) -> Iterator[Found]:
    value = one.get(key)
    if value is None:
        return
    if not isinstance(value, list):
        yield (*path, key), f"{_is(value)}, and no list", "write a list: one `- ` before each"
        return
    for number, item in enumerate(value):
        yield from each(item, (*path, key, number))


def _words(one: dict[Any, Any], key: str, path: YamlPath, *, numbers: bool = False) -> Iterator[Found]:
    """A mapping of text; with `numbers` also of numbers, as quantities are."""
    value = one.get(key)
    if value is None:
        return
    if not isinstance(value, dict):
        yield (*path, key), f"{_is(value)}, and no mapping", "write a name and a value on each line"
        return
    for name, item in value.items():
        number = numbers and isinstance(item, int | float) and not isinstance(item, bool)
        if not isinstance(item, str) and not number:
            yield (*path, key, str(name)), f"{_is(item)}, and no text", "write it in quotes"


def _is(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", type(None): "empty"}
    words = kinds.get(type(value)) or _shown(str(value).lower() if isinstance(value, bool) else value)
    return f"it is {words}"


def _shown(value: object) -> str:
    return f"`{clipped(one_line(str(value)), 80)}`"


def _line(node: Any, path: YamlPath) -> int:
    """Return where a value begins, or the nearest that holds it."""
    line: int = node.start_mark.line
    for step in path:
        inner: Any = None
        if isinstance(node, MappingNode):
            pairs = {key.value: (key, value) for key, value in node.value}
            if str(step) in pairs:
                line, inner = pairs[str(step)][0].start_mark.line, pairs[str(step)][1]
        elif isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = node.value[step]
            line = inner.start_mark.line
        if inner is None:
            break
        node = inner
    return line + 1
