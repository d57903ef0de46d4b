"""What a template holds: its resources, what its values refer to, its twin in another set of templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

Template = Mapping[str, Any]
"""A CloudFormation template as JSON holds it."""
Json = Mapping[str, Any]

PROTECTED: Final = "TerminationProtection"
"""Beside the sections of a template: whether its stack is protected from deletion; absent where unknown."""
IMPORT: Final = "import:"
"""What stands before the name of an export in a reference to it."""


def resources_of(template: Any) -> dict[str, Json]:
    """The resources of a template by logical id; none where it is not a template."""
    found = as_mapping(as_mapping(template).get("Resources"))
    return {name: one for name, one in found.items() if one and isinstance(one, dict)}


def as_mapping(value: Any) -> dict[str, Any]:
    """The value if it is a dictionary, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """The value if it is text, else none."""
    return value if isinstance(value, str) else ""


def references(value: Any) -> Iterator[tuple[str, str | None]]:
    """(logical id, attribute or None) of every reference in a value; imports as `import:<name>`."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from references(item)
        return
    for key, inner in as_mapping(value).items():
        if key in ("Ref", "Fn::ImportValue") and isinstance(inner, str):
            yield (inner if key == "Ref" else IMPORT + inner), None
        elif key == "Fn::GetAtt" and (parts := _parts(inner)):
            yield parts[0], ".".join(parts[1:]) or None
        elif key == "Fn::FindInMap" and (parts := _parts(inner)):
            yield parts[0], None
        elif key == "Fn::Sub":
            text = next(iter(cast("list[Any]", inner)), "") if isinstance(inner, list) else inner
            for name in re.findall(r"\$\{([^!}][^}]*)\}", as_text(cast("object", text))):
                to, _, attribute = name.strip().partition(".")
                yield to, attribute or None
            yield from references(inner)
        else:
            yield from references(inner)


def _parts(value: Any) -> list[str]:
    """What Fn::GetAtt or Fn::FindInMap names, as far as it is plain text."""
    if isinstance(value, str):
        return value.split(".")
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    return [part for part in parts if isinstance(part, str)] if parts and isinstance(parts[0], str) else []


def paired(before: Mapping[str, Template], after: Mapping[str, Template]) -> dict[str, Template]:
    """`before` with its stacks and exports renamed to those of `after` where only the environment's name
    differs: `dev-storage` is to be compared with `prod-storage`."""
    if len(before) == len(after) == 1:
        renamed = dict(zip(before, after, strict=True))
    else:
        rest = {name.rpartition("-")[2]: name for name in after if name not in before}
        renamed = {name: rest.get(name.rpartition("-")[2], name) for name in before if name not in after}
        renamed = {old: new for old, new in renamed.items() if list(renamed.values()).count(new) == 1}
    templates = {
        renamed.get(name, name): cast("Template", _renamed(template, renamed))
        for name, template in before.items()
    }
    for old, new in renamed.items():
        if old != new:
            templates[new] = _twins(templates[new], after[new])
    return templates


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A template with the exports and imports of renamed stacks renamed."""
    if isinstance(value, list):
        return [_renamed(item, names) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        if key in ("Fn::ImportValue", "Export"):
            name = as_mapping(inner).get("Name") if key == "Export" else inner
            if isinstance(name, str):
                stack = max((old for old in names if name.startswith(f"{old}-")), key=len, default="")
                new = names[stack] + name[len(stack) :] if stack else name
                result[key] = {"Name": new} if key == "Export" else new
                continue
        result[key] = _renamed(inner, names)
    return result


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
