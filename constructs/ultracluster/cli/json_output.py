"""What `--json` prints: one document with the id of its schema, which a refused command keeps to as well.

    write_json("plan", {...})   # {"schema": "ultracluster.plan/1", ...}

`ultracluster schema plan` prints that schema. Light: every command imports it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.documents import schema_id
from ultracluster.cli.json_rows import plain

if TYPE_CHECKING:
    from ultracluster.config.findings import Finding

_ASKED: ContextVar[bool] = ContextVar("json", default=False)


def ask_json(context: typer.Context, wanted: bool) -> bool:
    """Callback of `--json`: from here to the end of the command a refusal is JSON, too."""
    _ASKED.set(wanted)
    context.call_on_close(forget_json)
    return wanted


def forget_json() -> None:
    """A new command begins; one that was refused while its words were read has not been closed."""
    _ASKED.set(False)


JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON (docs/json.md).", callback=ask_json, is_eager=True)
]


def write_json(name: str, document: Mapping[str, Any] | object) -> None:
    """Print a document of this kind on standard output.

    Args:
        name: of a row of `ultracluster.cli.documents.DOCUMENTS`.
        document: a data class, or keys with values; `json_rows` has the keys of data classes.
    """
    typer.echo(document_text(name, document))


def document_text(name: str, document: Mapping[str, Any] | object) -> str:
    """The document as it is printed; dates are ISO 8601."""
    text = json.dumps({"schema": schema_id(name), **plain(document)}, indent=2, default=_iso)
    return text.replace("##[", "#\\u0023[")  # which the log of a workflow would obey


def write_refusal(why: str, findings: Sequence[Finding] = (), code: int = 2) -> None:
    """Where `--json` was asked for: why the command was refused, as JSON on standard output."""
    if _ASKED.get():
        write_error(why, findings, code)


def write_error(why: str, findings: Sequence[Finding] = (), code: int = 2) -> None:
    """An `error` document on standard output."""
    write_json("error", {"message": why, "exit_code": code, "findings": findings})


def _iso(value: Any) -> str:
    return str(value.isoformat() if hasattr(value, "isoformat") else value)
