"""Templates that a program fills in before a tool can read them: whose they are, and what renders them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ultracluster.imports.ledger import Wrong


@dataclass(frozen=True, slots=True)
class _Language:
    name: str
    signs: re.Pattern[str]
    """Text that only it has; of several languages in a file the first in the table counts."""
    render: str
    """The remedy, in words."""


_LANGUAGES = (
    _Language(
        "Terraform (HCL)",
        re.compile(
            r'^\s*(?:(?:resource|data)\s+"[^"\n]+"\s+"[^"\n]+"|(?:module|variable|output|provider)\s+"[^"\n]+"'
            r"|terraform|locals)\s*\{",
            re.MULTILINE,
        ),
        "apply it, then `ultracluster import --cluster NAME` reads the cluster that it made",
    ),
    _Language(
        "a template of Go",
        re.compile(r"\{\{-?\s*(?:(?:if|else|end|range|with|define|include|template)\b|[.$(])"),
        "render it (`helm template CHART`, `gomplate -f FILE`), and import what comes out",
    ),
    _Language(
        "a template of Jinja",
        re.compile(r"\{%-?\s*\w|\{#|\{\{-?\s*(?!resolve:)[A-Za-z_][^{}\n]*\}\}"),
        "render it (`jinja2 FILE values.yaml` of jinja2-cli, or its playbook), and import what comes out",
    ),
    _Language(
        "a template of ERB",
        re.compile(r"<%[=-]?\s"),
        "render it (`erb FILE`), and import what comes out",
    ),
    _Language(
        "a template for the shell",
        re.compile(r"\$\{[A-Za-z_]\w*\}|[:\[,]\s*\$[A-Za-z_]\w*\s*[,\]}\n]"),
        "set its variables, `envsubst < FILE > filled.json`, and import that",
    ),
    _Language(
        "a text with numbered placeholders",
        re.compile(r"\$\{\d+[:}]|[:\[,]\s*\$\d+\b"),
        "write values in their places, and import that",
    ),
)


def unrendered(name: str, text: str) -> Wrong | None:
    """Name the template language of a text that no parser takes; None where nothing shows it.

    Args:
        name: the file, for people.
    """
    for language in _LANGUAGES:
        if found := language.signs.search(text):
            start = found.start() + len(found[0]) - len(found[0].lstrip())
            line = text.count("\n", 0, start) + 1
            return Wrong(
                where=f"{name}:{line}",
                message=f"is {language.name}, which is not rendered yet",
                instead=language.render,
            )
    return None
