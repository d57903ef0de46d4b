"""What `--json` prints is held to its published schema, in every test that lets a command print it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ultracluster.cli import json_output
from ultracluster.cli.documents import DOCUMENTS, schema_file, schema_id


def check_document(text: str) -> dict[str, Any]:
    """The document, whose keys are those of its schema: a key that the schema lacks fails, too."""
    document = json.loads(text)
    name = next(name for name in DOCUMENTS if schema_id(name) == document["schema"])
    _validator(name).validate(document)
    return document


@pytest.fixture(autouse=True)
def json_keeps_its_schema(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Checks every document that a command prints in this process; the names of those that it printed."""
    printed: list[str] = []
    real = json_output.document_text

    def checked(name: str, document: Any) -> str:
        text = real(name, document)
        check_document(text)
        printed.append(name)
        return text

    monkeypatch.setattr(json_output, "document_text", checked)
    return printed


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = json.loads(schema_file(name).read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    """The schema without room for keys that it does not name."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _closed(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and "type" in made:
        made.setdefault("additionalProperties", False)
    return made
