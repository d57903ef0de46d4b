"""Stacks of one environment under the names of another's, so that they can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ultracluster.change.template import Template, as_mapping, as_text, resources_of


def paired(before: Mapping[str, Template], after: Mapping[str, Template]) -> dict[str, Template]:
    """`before` with its stacks and exports renamed to those of `after` where only the environment's name
    differs: `dev-storage` is to be compared with `prod-storage`."""
    if len(before) == len(after) == 1:
        renamed = dict(zip(before, after, strict=True))
    else:
        rest = {name.rpartition("-")[2]: name for name in after if name not in before}
        renamed = {name: rest.get(name.rpartition("-")[2], name) for name in before if name not in after}
        renamed = {old: new for old, new in renamed.items() if list(renamed.values()).count(new) == 1}
    made = {
        renamed.get(name, name): cast("Template", _renamed(template, renamed))
        for name, template in before.items()
    }
    for old, new in renamed.items():
        if old != new:
            made[new] = _twins(made[new], after[new])
    return made


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A template with the exports and imports of renamed stacks renamed."""
    if isinstance(value, list):
        return [_renamed(item, names) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        if key in ("Fn::ImportValue", "Export"):
            name = as_mapping(inner).get("Name") if key == "Export" else inner
            if isinstance(name, str):
                stack = max((old for old in names if name.startswith(f"{old}-")), key=len, default="")
                new = names[stack] + name[len(stack) :] if stack else name
                made[key] = {"Name": new} if key == "Export" else new
                continue
        made[key] = _renamed(inner, names)
    return made


def _twins(before: Template, after: Template) -> Template:
    """Logical ids that hold the stack's name: the only one left of its type on either side is the same."""
    old, new = resources_of(before), resources_of(after)
    left, came = [name for name in old if name not in new], [name for name in new if name not in old]
    pairs: dict[str, str] = {}
    for name in left:
        kind = as_text(old[name].get("Type"))
        same = [one for one in left if as_text(old[one].get("Type")) == kind]
        others = [one for one in came if as_text(new[one].get("Type")) == kind]
        if len(same) == len(others) == 1:
            pairs[name] = others[0]
    return cast("Template", _referring(before, pairs)) if pairs else before


def _referring(value: Any, names: Mapping[str, str]) -> Any:
    """A template with logical ids renamed, as keys of Resources and in references."""
    if isinstance(value, list):
        return [_referring(item, names) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return names.get(value, value) if isinstance(value, str) else value
    return {
        names.get(key, key): _referring(inner, names) for key, inner in cast("dict[str, Any]", value).items()
    }
