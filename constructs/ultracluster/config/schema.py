"""The JSON Schema of an environment file, for editors and reviewers."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel

from ultracluster.config.base import DISCRIMINATORS
from ultracluster.config.environment import Environment
from ultracluster.config.schema_values import offer_values

PUBLISHED = Path(__file__).with_name("environment.schema.json")
"""The committed schema; `make generate` renews it."""


def environment_schema(releases: Iterable[str] = ()) -> dict[str, Any]:
    """The schema of one file.

    A file that `extends:` another may leave out what its base says, so nothing is required at the top; the
    loader checks the merged whole. `releases`: names of software releases, which editors then complete.
    """
    schema = deepcopy(Environment.model_json_schema())
    for model in _models(Environment):
        definition = schema if model is Environment else schema["$defs"].get(model.__name__)
        for name, text in field_docstrings(model).items():
            if definition and name in definition["properties"]:
                definition["properties"][name]["description"] = text
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Ultracluster environment"
    schema["properties"]["extends"] = {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
        "description": "Another environment file, relative to this one, whose values this one changes; of "
        "several a later one changes those before it.",
    }
    schema["patternProperties"] = {r"^\.": {"description": "A place for YAML anchors; ignored."}}
    schema["required"] = []
    _name_kinds(schema)
    offer_values(schema, releases)
    return schema


def _name_kinds(schema: dict[str, Any]) -> None:
    """A file says which of several models it means; only in Python the class says it already."""
    definitions: dict[str, dict[str, Any]] = schema["$defs"]
    for name in set(_told_apart(schema)):
        definition = definitions[name]
        for tag in DISCRIMINATORS:
            if definition.get("properties", {}).get(tag, {}).pop("default", None):
                required = {"required": [tag, *definition.get("required", [])]}
                definitions[name] = dict(sorted((definition | required).items()))


def _told_apart(part: object) -> Iterator[str]:
    """Names of the models that are told apart by a key, anywhere in a part of the schema."""
    if isinstance(part, list):
        for one in cast("list[object]", part):
            yield from _told_apart(one)
    elif isinstance(part, dict):
        known = cast("dict[str, Any]", part)
        if "propertyName" in known.get("discriminator", {}):
            yield from (str(one).rpartition("/")[2] for one in known["discriminator"]["mapping"].values())
        for one in known.values():
            yield from _told_apart(one)


def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field of a model and of the models it is derived from, on one line."""
    texts: dict[str, str] = {}
    for ancestor in reversed(model.__mro__):
        if ancestor in (object, BaseModel) or not issubclass(ancestor, BaseModel):
            continue
        body = _class_body(ancestor)
        for field, text in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                texts[field.target.id] = " ".join(text.value.value.split())
    return texts


def _class_body(model: type[BaseModel]) -> list[ast.stmt]:
    tree = ast.parse(inspect.getsource(model))
    return next(node.body for node in tree.body if isinstance(node, ast.ClassDef))


def _models(model: type[BaseModel]) -> set[type[BaseModel]]:
    """A model and every model that its fields may hold."""
    found: set[type[BaseModel]] = set()
    pending: list[Any] = [model]
    while pending:
        annotation = pending.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation not in found:
                found.add(annotation)
                pending += [field.annotation for field in annotation.model_fields.values()]
        else:
            pending += get_args(annotation)
    return found
