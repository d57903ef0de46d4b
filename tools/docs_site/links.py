"""Links and headings of Markdown, with their places: what a test follows, and what the site rewrites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FENCE = re.compile(
    r"^( {0,3}|> ?| +)(`{3,}|~{3,})[^\n]*\n.*?(?:^[ >]*\2[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_INLINE = re.compile(r"\]\(\s*<?([^()\s<>]+(?:\([^()\s]*\)[^()\s]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]^][^\]]*\]:\s+<?(\S+?)>?\s*$", re.MULTILINE)
_HTML = re.compile(r"<(?:a|img|source)\s[^>]*?\b(?:href|src|srcset)=\"([^\"]+)\"")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_ANCHOR = re.compile(r"<[a-z]+\s[^>]*?\b(?:id|name)=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Link:
    """What a page points at, and where it does."""

    target: str
    """As it is written."""
    start: int
    """Of the target in the text."""

    @property
    def elsewhere(self) -> bool:
        """Whether it leaves the repository."""
        return bool(re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:|//", self.target))

    @property
    def path(self) -> str:
        return self.target.partition("#")[0]

    @property
    def anchor(self) -> str:
        return self.target.partition("#")[2]


def links(text: str) -> list[Link]:
    """The links and pictures of a page, in their order; what stands in code is none."""
    plain = without_code(text)
    found = (
        Link(one[1], one.start(1)) for form in (_INLINE, _REFERENCE, _HTML) for one in form.finditer(plain)
    )
    return sorted(found, key=lambda link: link.start)


def rewritten(text: str, target: Callable[[Link], str]) -> str:
    """The text with other targets."""
    for link in reversed(links(text)):
        end = link.start + len(link.target)
        text = f"{text[: link.start]}{target(link)}{text[end:]}"
    return text


def without_code(text: str) -> str:
    """The text with code and comments blanked out, each character and line at its place."""
    for form in (_FENCE, _COMMENT, _CODE):
        text = form.sub(_blank, text)
    return text


def headings(text: str) -> Iterator[tuple[int, str, int]]:
    """Level, words and place of each heading."""
    plain = _COMMENT.sub(_blank, _FENCE.sub(_blank, text))
    for one in _HEADING.finditer(plain):
        yield len(one[1]), one[2], one.start()


def anchors(text: str) -> set[str]:
    """Where a link can lead on the page: its headings as git hosts name them, and anchors of its own."""
    names: dict[str, int] = {}
    for _, words, _ in headings(text):
        name = slug(words)
        names[name] = names.get(name, -1) + 1
        if names[name]:
            names[f"{name}-{names[name]}"] = 0
    return names.keys() | set(_ANCHOR.findall(without_code(text)))


@cache
def anchors_of(file: Path) -> set[str]:
    return anchors(file.read_text(encoding="utf-8"))


def slug(words: str) -> str:
    """The anchor of a heading, as git hosts and MyST make it."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", words)
    words = re.sub(r"<[^>]+>", "", words) if "`" not in words else words
    words = re.sub(r"(?<![\w*])(\*{1,2})(?=\S)(.+?)(?<=\S)\1(?![\w*])", r"\2", words)
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])
