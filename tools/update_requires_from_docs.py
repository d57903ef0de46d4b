#!/usr/bin/env python
"""Rewrites change/update_requires.json from the pages of CloudFormation's template reference.

    python tools/update_requires_from_docs.py DOCS --source "..." --date yyyy-mm-dd
    python tools/update_requires_from_docs.py DOCS --add AWS::SQS::Queue

DOCS is the folder of the pages as Markdown (aws-resource-fsx-filesystem.md and others).

A page says under each property what its change takes ("Update requires"). The registry's schemas, from which
create_only.json is made, name only what replaces a resource: of the rest they say nothing. Rows that
were read by hand on newer pages (`by_hand`) stay, until the pages have them.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "constructs" / "ultracluster" / "change" / "update_requires.json"
WORDS = {
    "No interruption": "none",
    "Some interruptions": "some",
    "Replacement": "replacement",
    "Updates are not supported.": "unsupported",
}
_SYNTAX = re.compile(r'^ +"\[?(\w+)[\]"]', re.M)
_PROPERTY = re.compile(r"^`(\w+)`\s*?(?:<a .*)?$", re.M)
_UPDATE = re.compile(r"^[*_]+Update requires[*_]+: *\[?([^\]\n(]+)", re.M)
_TYPE = re.compile(r"^[*_]+Type[*_]+:.*?\]\([^)]*?(aws-properties-[a-z0-9-]+)\.(?:md|html)", re.M)


class PageError(Exception):
    """A page that is not there, or says what this tool does not know."""


def of_type(docs: Path, kind: str) -> dict[str, Any]:
    """The row of one resource type.

    Raises:
        PageError: there is no page of it, or one that this cannot read.
    """
    service, _, name = kind.removeprefix("AWS::").lower().partition("::")
    for page in (f"aws-resource-{service}-{name}", f"aws-properties-{service}-{name}"):
        if (docs / f"{page}.md").is_file():
            return _properties(docs, page, ())
    raise PageError(f"{kind}: {docs} has no page of it")


def _properties(docs: Path, page: str, above: tuple[str, ...]) -> dict[str, Any]:
    """Names of properties by what their change takes; `within` the same of those that are objects."""
    row: dict[str, Any] = {}
    for name, update, inner in _sections(docs / f"{page}.md"):
        row.setdefault(update, []).append(name)
        known = inner and inner not in (*above, page) and (docs / f"{inner}.md").is_file()
        if known and not inner.endswith("-tag"):  # a tag is a tag
            row.setdefault("within", {})[name] = _properties(docs, inner, (*above, page))
    return row


def _sections(file: Path) -> Iterator[tuple[str, str, str]]:
    """Name, word and page of the object (or nothing) of each property of a page."""
    syntax, _, text = file.read_text(encoding="utf-8").partition("\n## Properties")
    text = re.split(r"\n## ", text, maxsplit=1)[0]
    known = set(_SYNTAX.findall(syntax.partition("### YAML")[0]))
    # values of an enumeration stand in lines of their own, too
    names = [one for one in _PROPERTY.finditer(text) if one[1] in known]
    for one, following in zip(names, [*names[1:], None], strict=True):
        body = text[one.end() : following.start() if following else len(text)]
        update = _UPDATE.search(body)
        said = update[1].strip() if update else "nothing"
        if said not in WORDS:
            raise PageError(f"{file.name}: {one[1]}: `Update requires: {said}` is new")
        inner = _TYPE.search(body)
        yield one[1], WORDS[said], inner[1] if inner else ""


def differences(docs: Path, types: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(kind, what) of each type and property whose page says something else than a table's types."""
    for kind, row in types.items():
        try:
            old, new = dict(leaves(row)), dict(leaves(of_type(docs, kind)))
        except PageError as error:
            yield "gone", str(error)
            continue
        for path in sorted(old.keys() | new.keys()):
            what, how = f"{kind} {path}", (old.get(path), new.get(path))
            if None in how:
                yield ("new", f"{what}: {how[1]}") if how[0] is None else ("gone", f"{what}: {how[0]}")
            elif how[0] != how[1]:
                yield "changed", f"{what}: {how[0]} -> {how[1]}"


def contradictions(types: dict[str, Any], create_only: dict[str, Any]) -> Iterator[str]:
    """Properties that a page updates without interruption, and the schema sets at creation only."""
    for kind, row in types.items():
        always = {path.replace("/*", "") for path in create_only.get(kind, {}).get("always", ())}
        yield from (f"{kind} {path}" for path, word in leaves(row) if word == "none" and path in always)


def leaves(row: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Path with slashes, and word, of each property of a row."""
    for word in WORDS.values():
        yield from ((f"{above}{name}", word) for name in row.get(word, ()))
    for name, inner in row.get("within", {}).items():
        yield from leaves(inner, f"{above}{name}/")


def render(document: dict[str, Any]) -> str:
    """JSON with one line per type or row."""
    parts: list[str] = []
    for name, section in document.items():
        if isinstance(section, list):
            lines, ends = [f"    {json.dumps(one)}" for one in section], "[]"
        else:
            lines, ends = [f"    {json.dumps(key)}: {json.dumps(one)}" for key, one in section.items()], "{}"
        parts.append(f"  {json.dumps(name)}: {ends[0]}\n" + ",\n".join(lines) + f"\n  {ends[1]}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("docs", type=Path, help="the folder with the pages as Markdown")
    parser.add_argument("--add", nargs="*", default=[], metavar="TYPE")
    parser.add_argument("--source", help="where the text of the pages comes from")
    parser.add_argument("--date", help="of the text, yyyy-mm-dd")
    asked = parser.parse_args(arguments)
    document = json.loads(TABLE.read_text(encoding="utf-8"))
    for key in ("source", "date"):
        document["about"][key] = getattr(asked, key) or document["about"][key]
    kinds = sorted({*document["types"], *asked.add})
    try:
        document["types"] = {kind: of_type(asked.docs, kind) for kind in kinds}
    except PageError as error:
        raise SystemExit(str(error)) from None
    TABLE.write_text(render(document), encoding="utf-8")


if __name__ == "__main__":
    main()
