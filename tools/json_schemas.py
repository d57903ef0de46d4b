"""Writes the JSON Schemas of what `--json` prints, the pinned keys that hold them still, and docs/json.md.

Run by `make generate`. The schemas are made from the types that `ultracluster.cli.documents` names. The pin
in tests/cli/json_keys.json takes new keys by itself; it gives none away while a document keeps its number.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel, Field, create_model

from ultracluster.cli.documents import DOCUMENTS, SCHEMAS, schema_file, schema_id
from ultracluster.cli.json_rows import Key, keys_of

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "tests" / "cli" / "json_keys.json"
PAGE = ROOT / "docs" / "json.md"


def schema_of(name: str) -> dict[str, Any]:
    """The schema of a document, as it is published."""
    document = DOCUMENTS[name]
    module, _, kind = document.type.partition(":")
    described = model_of(getattr(import_module(f"ultracluster.{module}"), kind))
    made = _tidy(described.model_json_schema(mode="serialization"))
    identity = {"const": schema_id(name), "description": "This schema."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": schema_id(name),
        "description": f"{document.what}.",
        "type": "object",
        "properties": {"schema": identity, **made["properties"]},
        "required": ["schema", *made.get("required", [])],
        **({"$defs": made["$defs"]} if "$defs" in made else {}),
    }


@cache
def model_of(kind: type) -> type[BaseModel]:
    """A model with the keys of a TypedDict, or with those of a data class (`json_rows`)."""
    required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
    if is_dataclass(kind):
        columns = {key.name: _column(kind, key) for key in keys_of(kind)}
        required = frozenset(columns)
    else:
        texts = attribute_docstrings(kind)
        columns = {name: (hint, texts.get(name)) for name, hint in _hints(kind).items()}
    rows: dict[str, Any] = {
        name: (_plain(hint), Field(... if name in required else None, description=text))
        for name, (hint, text) in columns.items()
    }
    return create_model(kind.__name__, __doc__=inspect.getdoc(kind), **rows)


def _column(kind: type, key: Key) -> tuple[Any, str | None]:
    """Type and description of a key, those of the attribute at its path."""
    hint, text, null = cast("Any", kind), None, key.empty_is_null
    for name in key.path:
        options = (
            [one for one in get_args(hint) if one is not type(None)] if type(None) in get_args(hint) else []
        )
        null |= bool(options)
        owner = (options or get_args(hint) or [hint])[0]
        member = inspect.getattr_static(owner, name, None)
        getter = member.fget if isinstance(member, property) else member if callable(member) else None
        hint = _hints(getter)["return"] if getter else _hints(owner)[name]
        text = attribute_docstrings(owner).get(name)
    if not text and datetime in (hint, *get_args(hint)):
        text = "ISO 8601."
    hint = eval(key.type) if key.type else hint  # noqa: S307 (from our own table)
    return (hint | None if null else hint), text


def _hints(kind: Any) -> dict[str, Any]:
    """Type hints, also of names that are imported for type checkers only."""
    module = sys.modules[kind.__module__]
    names: dict[str, Any] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            exec(ast.unparse(ast.Module(node.body, [])), names)  # noqa: S102 (our own imports)
    return get_type_hints(kind, localns=names)


def attribute_docstrings(kind: type) -> dict[str, str]:
    """The text below each attribute, and of each property; of the classes that it is derived from, too."""
    texts: dict[str, str] = {}
    for one in (*getattr(kind, "__orig_bases__", ()), kind):
        if not isinstance(one, type):
            continue
        if one is not kind:
            texts |= attribute_docstrings(one)
            continue
        (made,) = ast.parse(inspect.getsource(one)).body
        assert isinstance(made, ast.ClassDef)
        for field, text in pairwise([*made.body, ast.Pass()]):
            if isinstance(field, ast.FunctionDef):
                texts[field.name] = _line(ast.get_docstring(field) or "")
            elif (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                texts[field.target.id] = _line(str(text.value.value))
    return {name: text for name, text in texts.items() if text}


def key_paths(schema: Mapping[str, Any]) -> list[str]:
    """Every key that a schema names, as `groups[].name: string`; `?` behind a key that may be absent."""
    return sorted(set(_keys(schema, schema, "", ())))


def pins() -> dict[str, list[str]]:
    """The pinned keys, with those that are new; what is gone stays while the number is the same."""
    old: dict[str, list[str]] = json.loads(PINS.read_text()) if PINS.exists() else {}
    ids = {schema_id(name): key_paths(schema_of(name)) for name in sorted(DOCUMENTS)}
    return {one: sorted({*old.get(one, []), *keys}) for one, keys in ids.items()}


def page() -> str:
    """docs/json.md."""
    rows = [
        f"| `{schema_id(name)}` | {', '.join(f'`{one}`' for one in row.commands) or 'any'} | {row.what} |"
        for name, row in sorted(DOCUMENTS.items())
    ]
    return "\n".join([HEAD, *rows, ""])


HEAD = """# What `--json` prints

<!-- Written by `make generate` from ultracluster/cli/documents; edit tools/json_schemas.py instead. -->

Every command with `--json` prints one object on standard output, whose first key is the id of its schema:

```json
{"schema": "ultracluster.plan/1", "name": "dev"}
```

`ultracluster schema plan` prints that schema (JSON Schema, draft 2020-12); the package holds all of them, in
`ultracluster/cli/schemas/`. `ultracluster schema` alone is the schema of an environment file.

- **The number** changes when a key is removed, renamed, given another type or becomes optional. New keys
  and new values of an enumeration do not change it: ignore what you do not know. A test holds every key.
- **A refused command** prints `ultracluster.error/1` instead, with the message of standard error, the exit
  code and, where an environment file is what is wrong, its findings. The exit code is the same as without
  `--json` ([exit codes](exit-codes.md)). `validate` is never refused for what is in a file: its findings are
  its answer.
- **null** is unknown or not there, never 0. Times are ISO 8601, figures have the unit that their description
  says.
- What AWS answers in its own words (`node` of `nodes list`) is handed on as it is.

```bash
ultracluster plan prod --json | jq .cost.per_month
ultracluster validate environments/*.yaml --json | jq -r '.environments[].findings[].code'
```

| schema | printed by | what it is |
|---|---|---|"""


def _plain(hint: Any) -> Any:
    """The type with models instead of TypedDicts and data classes."""
    origin, inner = get_origin(hint), get_args(hint)
    if is_typeddict(hint) or (isinstance(hint, type) and is_dataclass(hint)):
        return model_of(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_plain(one) for one in inner)]  # noqa: UP007 (made at run time)
    if origin is tuple and inner[1:] == (...,):
        return list[_plain(inner[0])]
    if origin in (list, Sequence):
        return list[_plain(inner[0])]
    if origin in (dict, Mapping):
        return dict[str, _plain(inner[1])]
    return str if hint in (datetime, date, Path) else hint


def _tidy(schema: Any) -> Any:
    """Without titles and defaults, which say nothing, and open to new keys."""
    if isinstance(schema, list):
        return [_tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            made[key] = {name: _tidy(one) for name, one in value.items()}
        elif key == "description":
            made[key] = _line(value)
        elif key not in ("title", "default") and (key, value) != ("additionalProperties", False):
            made[key] = _tidy(value)
    return made


def _keys(
    schema: Mapping[str, Any], root: Mapping[str, Any], path: str, seen: tuple[str, ...]
) -> Iterator[str]:
    place = schema.get("$ref", "")
    if place:
        if place in seen:
            return
        name = place.removeprefix("#/$defs/")
        yield from _keys(root["$defs"][name], root, path, (*seen, place))
        return
    for one in schema.get("anyOf", ()):
        yield from _keys(one, root, path, seen)
    if "items" in schema:
        yield from _keys(schema["items"], root, f"{path}[]", seen)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _keys(schema["additionalProperties"], root, f"{path}.*" if path else "*", seen)
    for name, value in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        here += "" if name in schema.get("required", ()) else "?"
        yield f"{here}: {_kind(value, root)}"
        yield from _keys(value, root, here, seen)


def _kind(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return _kind(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema:
        return " | ".join(sorted({_kind(one, root) for one in schema["anyOf"]}))
    found = schema.get("type", "string" if "enum" in schema or "const" in schema else "any")
    return " | ".join(found) if isinstance(found, list) else str(found)


def _line(text: str) -> str:
    return " ".join(text.split())


def written() -> dict[Path, str]:
    """Every file, as it should be."""
    files = {schema_file(name): json.dumps(schema_of(name), indent=2) + "\n" for name in DOCUMENTS}
    return {**files, PINS: json.dumps(pins(), indent=1) + "\n", PAGE: page()}


def main() -> None:
    files = written()
    for old in SCHEMAS.glob("*.json"):
        if old not in files:
            old.unlink()
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(DOCUMENTS)} schemas in {SCHEMAS}\n")


if __name__ == "__main__":
    main()
