"""What a template holds, whatever it holds: its resources, and what its values refer to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

Template = Mapping[str, Any]
"""A CloudFormation template as JSON holds it."""
Json = Mapping[str, Any]

IMPORT: Final = "import:"
"""What stands before the name of an export in a reference to it."""


def resources_of(template: Any) -> dict[str, Json]:
    """The resources of a template by logical id; none of what is no template."""
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
