"""Of templates that have most of their resources in common, what was not judged yet.

cfn-lint takes a third of a second for a template, and judges resources one by one. A resource is left out if
the same one, with the same kinds of resources behind its references, was in a template before. What a kept
one refers to is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Template = dict[str, Any]
_DIGEST = re.compile(r"\b[0-9a-f]{12}([0-9a-f]{52})?\b")
_IN_TEXT = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")
_SECTIONS = ("Parameters", "Mappings", "Conditions")
"""Left out where nothing refers to them: cfn-lint warns of what is not used."""


class Excerpts:
    """What is new in one template after another. Neither the environment's name nor digests count."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def new_in(self, template: Template, region: str, name: str) -> Template | None:
        """The template without what was seen before; None if that is all of it."""
        resources, outputs = template["Resources"], template.get("Outputs", {})
        kept = [one for one in resources if self._is_new(template, region, name, one, resources[one])]
        told = [one for one in outputs if self._is_new(template, region, name, one, outputs[one])]
        if not kept and not told:
            return None
        needed = list(dict.fromkeys([*kept, *(there for one in told for there in referred(outputs[one]))]))
        for one in needed:  # grows
            needed += [there for there in referred(resources.get(one)) if there not in needed]
        rest = {key: value for key, value in template.items() if key not in (*_SECTIONS, "Outputs", "Rules")}
        sections = {
            section: {key: value for key, value in template.get(section, {}).items() if key in needed}
            for section in _SECTIONS
        }
        return {
            **rest,
            **{section: content for section, content in sections.items() if content},
            "Resources": {one: resources[one] for one in resources if one in needed},
            **({"Outputs": {one: outputs[one] for one in told}} if told else {}),
        }

    def write_new(self, file: Path, region: str, name: str, folder: Path) -> Path | None:
        """As `new_in`, from a file to one of the same name in a folder."""
        found = self.new_in(json.loads(file.read_text(encoding="utf-8")), region, name)
        if found is None:
            return None
        written = folder / file.name
        written.write_text(json.dumps(found, indent=1), encoding="utf-8")
        return written

    def _is_new(self, template: Template, region: str, name: str, key: str, part: Any) -> bool:
        kinds = [template["Resources"].get(one, {}).get("Type") for one in referred(part)]
        text = json.dumps([region, key, part, kinds]).replace(name, "NAME")
        masked = _DIGEST.sub("", text)
        known = masked in self._seen
        self._seen.add(masked)
        return not known


def referred(part: Any) -> Iterator[str]:
    """Logical ids, parameters, mappings and conditions that a part of a template refers to."""
    match part:
        case {"Ref": str(one)} | {"Condition": str(one)}:
            yield one
        case {"Fn::GetAtt": [str(one), *_]} | {"Fn::FindInMap": [str(one), *_]} | {"Fn::If": [str(one), *_]}:
            yield one
        case _:
            pass
    match part:
        case str():
            yield from _IN_TEXT.findall(part)
        case list():
            for one in part:
                yield from referred(one)
        case dict():
            after = part.get("DependsOn", [])
            yield from [after] if isinstance(after, str) else after
            for one in part.values():
                yield from referred(one)
        case _:
            pass
