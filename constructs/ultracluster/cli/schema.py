"""`ultracluster schema`: JSON Schemas of files, and of what --json prints."""

from __future__ import annotations

import difflib
import json
from typing import Annotated

import typer

from ultracluster.cli.documents import DOCUMENTS, schema_file, schema_id
from ultracluster.cli.report import refuse
from ultracluster.config.plain_text import one_line
from ultracluster.config.schema import environment_schema
from ultracluster.software import release_names
from ultracluster.software.lock_text import lock_schema


def _documents(incomplete: str) -> list[str]:
    return [name for name in ("environment", "release-lock", *DOCUMENTS) if name.startswith(incomplete)]


def schema(
    document: Annotated[
        str,
        typer.Argument(
            help="`release-lock`, or a document that --json prints, by the name in its schema id; "
            "docs/json.md lists them.",
            autocompletion=_documents,
        ),
    ] = "environment",
) -> None:
    """Print the JSON Schema of an environment file, of a release's lock file, or of what --json prints."""
    if document == "environment":
        typer.echo(json.dumps(environment_schema(release_names()), indent=2))
        return
    if document == "release-lock":
        typer.echo(json.dumps(lock_schema(), indent=2))
        return
    name = document.removeprefix("ultracluster.").partition("/")[0]
    if name not in DOCUMENTS:
        near = difflib.get_close_matches(name, DOCUMENTS, n=1)
        refuse(f"there is no document {one_line(document)}: {near[0] if near else ', '.join(DOCUMENTS)}")
    if "/" in document and document.removeprefix("ultracluster.") != schema_id(name).partition(".")[2]:
        refuse(f"this version prints {schema_id(name)}, and not {document}")
    typer.echo(schema_file(name).read_text(encoding="utf-8"), nl=False)
