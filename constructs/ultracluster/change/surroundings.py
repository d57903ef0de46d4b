"""Parents and children of a resource in all stacks, across exports, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from ultracluster.change.template import IMPORT, Json, Template, as_mapping, as_text, references, resources_of

Target = tuple[str, str, str | None]
"""Stack, logical id and attribute of what is referred to; None is the resource itself or every attribute."""
_NAMES: Final = ("Name", "ClusterName")
"""Properties that hold a cluster's name in plain text, its own or that of a child's parent."""


class Surroundings:
    """Two sets of templates, by stack name."""

    def __init__(self, before: Mapping[str, Template], after: Mapping[str, Template]) -> None:
        self._before, self._after = before, after

    @cached_property
    def exports(self) -> dict[str, set[Target]]:
        """Targets of the value of each export, after the change."""
        return exports_of(self._after)

    def relatives(self, stack: str, logical_id: str, kind: str) -> Iterator[tuple[Json, Json]]:
        """Both sides' properties of each resource of a type that this one refers to, or that refers to it.

        Empty properties stand for one that is not there.
        """
        own = stack, logical_id, self._sides(stack, logical_id)
        for other_stack in sorted(self._before.keys() | self._after.keys()):
            old = resources_of(self._before.get(other_stack))
            new = resources_of(self._after.get(other_stack))
            for other in sorted(old.keys() | new.keys()):
                sides = old.get(other, {}), new.get(other, {})
                is_kind = as_text((sides[1] or sides[0]).get("Type")) == kind
                is_other = (other_stack, other) != (stack, logical_id)
                if is_kind and is_other and self._linked(own, (other_stack, other, sides)):
                    yield _properties(sides[0]), _properties(sides[1])

    def _sides(self, stack: str, logical_id: str) -> tuple[Json, Json]:
        return (
            resources_of(self._before.get(stack)).get(logical_id, {}),
            resources_of(self._after.get(stack)).get(logical_id, {}),
        )

    def _linked(
        self, one: tuple[str, str, tuple[Json, Json]], other: tuple[str, str, tuple[Json, Json]]
    ) -> bool:
        for (stack, _, sides), (to_stack, to, to_sides) in ((one, other), (other, one)):
            latest, target = _properties(sides[1] or sides[0]), _properties(to_sides[1] or to_sides[0])
            if any(hit[:2] == (to_stack, to) for hit in self._targets(stack, latest)):
                return True
            called = {target[key] for key in _NAMES if isinstance(target.get(key), str)}
            if (name := as_text(latest.get("ClusterName"))) and name in called:
                return True
        return False

    def _targets(self, stack: str, properties: Json) -> Iterator[Target]:
        for name, attribute in references(properties):
            if name.startswith(IMPORT):
                yield from self.exports.get(name.removeprefix(IMPORT), ())
            else:
                yield stack, name, attribute


def exports_of(templates: Mapping[str, Template]) -> dict[str, set[Target]]:
    """Targets of the value of each export."""
    return {
        name: {
            (stack, to, attribute)
            for to, attribute in references(output.get("Value"))
            if not to.startswith(IMPORT)
        }
        for stack, template in templates.items()
        for output in map(as_mapping, as_mapping(as_mapping(template).get("Outputs")).values())
        if isinstance(name := as_mapping(output.get("Export")).get("Name"), str)
    }


def _properties(resource: Json) -> dict[str, Any]:
    return as_mapping(resource.get("Properties"))
