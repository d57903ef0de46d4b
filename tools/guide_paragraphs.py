"""Paragraphs of AWS's guides from which facts were made: by page, heading and a digest of their words.

`guide_paragraphs.json` lists the paragraphs of considerations and update pages, with the facts made of each,
or the reason why there is none. No words are kept. `make facts DOCS=folder` compares it with today's text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("guide_paragraphs.json")
_HEADING = re.compile(r"#{1,6} +(.+?) *#*$")
_ITEM = re.compile(r"\s*(?:(?:[+*-]|\d+\.) +\S|\|)")
"""A line that begins an item of a list, or is a row of a table."""
_NO_WORDS = re.compile(r"\A---\n.*?\n---\n|<a name=.*?</a>|\]\([^)]*\)", re.DOTALL)


def digest(paragraph: str) -> str:
    """Digest of the words alone: marks, links and line breaks do not count."""
    words = " ".join(re.findall(r"[^\W_]+", paragraph.lower()))
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def sections(text: str) -> dict[str, list[str]]:
    """Digests of the paragraphs by heading; those of the same name are one after the other.

    A paragraph ends at an empty line or where an item of a list begins; code is left out.
    """
    found: dict[str, list[str]] = {}
    heading, lines, code = "", list[str](), False

    def end() -> None:
        if re.search(r"\w", "".join(lines)):
            found.setdefault(heading, []).append(digest(" ".join(lines)))
        lines.clear()

    for line in _NO_WORDS.sub("", text).splitlines():
        if line.strip().startswith("```"):
            code = not code
        elif not code and (title := _HEADING.match(line)):
            end()
            heading = title[1]
        elif not code:
            if not line.strip() or _ITEM.match(line):
                end()
            lines.append(line)
    end()
    return found


def differences(docs: Path, rows: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(kind, what and what to do) of each paragraph that is new, gone or of other words.

    Args:
        docs: a folder with the pages, each under the path that the rows name; guides that it does not have
            are left out.
        rows: as guide_paragraphs.json has them.
    """
    for page in rows["pages"]:
        file = docs / page["page"]
        if not file.parent.is_dir():
            continue  # DOCS has not that guide
        if not file.is_file():
            yield "gone", f"{page['page']}: find where its text is now, and read it again"
            continue
        today = sections(file.read_text(encoding="utf-8"))
        for heading, paragraphs in page["sections"].items():
            where = f"{page['page']}, {heading}"
            if heading not in today:
                yield "gone", f"{where}: no such heading: find its text, and write the new one"
                continue
            yield from _compared(where, paragraphs, today[heading])


def _compared(where: str, rows: list[dict[str, Any]], today: list[str]) -> Iterator[tuple[str, str]]:
    known = [row["words"] for row in rows]
    for kind, a, b, c, d in SequenceMatcher(a=known, b=today, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        both = min(b - a, d - c)
        for number in range(both):
            row = rows[a + number]
            text = f"paragraph {c + number + 1} has other words: read it, correct {facts_of(row)}"
            yield "changed", f"{where}: {text}, then write words {today[c + number]}"
        for row in rows[a + both : b]:
            yield (
                "gone",
                f"{where}: paragraph {row['words']} has gone: see whether this holds: {facts_of(row)}",
            )
        for number in range(c + both, d):
            text = f"paragraph {number + 1} is new: make facts of it, or write why there is none"
            yield "new", f"{where}: {text} (words {today[number]})"


def compared(docs: Path, rows: dict[str, Any]) -> tuple[int, int]:
    """Count the pages of the rows that lie in a guide of the folder, and all of them."""
    return sum((docs / page["page"]).parent.is_dir() for page in rows["pages"]), len(rows["pages"])


def facts_of(row: dict[str, Any]) -> str:
    """Facts and rules that were made of a paragraph, or the reason why there is none."""
    return ", ".join(row.get("facts", [])) or f"`{row['none']}`"


def recorded() -> dict[str, Any]:
    """The file."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def render(document: dict[str, Any]) -> str:
    """JSON with one line per paragraph."""
    pages: list[str] = []
    for page in document["pages"]:
        parts = [
            f"        {json.dumps(heading, ensure_ascii=False)}: [\n"
            + ",\n".join(f"          {json.dumps(row, ensure_ascii=False)}" for row in rows)
            + "\n        ]"
            for heading, rows in page["sections"].items()
        ]
        head = ", ".join(f"{json.dumps(key)}: {json.dumps(page[key])}" for key in page if key != "sections")
        inside = ",\n".join(parts)
        pages.append(f'    {{\n      {head},\n      "sections": {{\n{inside}\n      }}\n    }}')
    about = json.dumps(document["about"], indent=4)[:-1].rstrip() + "\n  }"
    return f'{{\n  "about": {about},\n  "pages": [\n' + ",\n".join(pages) + "\n  ]\n}\n"
