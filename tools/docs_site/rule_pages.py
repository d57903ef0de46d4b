"""docs/rules.md as pages: one for each subject, and one that lists all, where old links still lead."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.docs_site.links import slug

PAGE = "rules"
_RULE = re.compile(r"^### (([A-Z]+)\d+): (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RulePages:
    """What becomes of the long page."""

    pages: dict[str, str]
    """Text by page: `rules`, `rules/fsx` and so on."""
    homes: dict[str, str]
    """Page by anchor, of the rules that have moved."""


def split(text: str) -> RulePages:
    """The pages of the long page's text."""
    head, *parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    pages: dict[str, str] = {}
    homes: dict[str, str] = {}
    overview = [head]
    for part in parts:
        subject, _, body = part.removeprefix("## ").partition("\n")
        rules = [(found[1], found[2], found[3]) for found in _RULE.finditer(part)]
        if not rules:
            overview.append(part)
            continue
        name = f"{PAGE}/{rules[0][1].lower()}"
        assert name not in pages, f"{subject}: two subjects have rules {rules[0][1]}"
        pages[name] = f"# {rules[0][1]}: {subject}\n{re.sub(r'^###', '##', body, flags=re.MULTILINE)}"
        overview.append(f"## {subject}\n\n| [all in full]({name}.md) | {rules[0][1]} |\n|---|---|\n")
        for code, _, title in rules:
            anchor = slug(f"{code}: {title}")
            homes[anchor] = name
            overview.append(f'| <a id="{anchor}"></a>[{code}]({name}.md#{anchor}) | {title} |\n')
        overview.append("\n")
    return RulePages({PAGE: "".join(overview), **pages}, homes)
