"""A small evaluator of CloudWatch Logs' filter patterns, written from the syntax page of its user guide.

Nothing that can be had evaluates all of the three forms (moto knows words only), so this is an implementation
of its own: it knows no pattern of ours. What it does not know raises, so that no pattern passes unread.

Forms: `{ $.a.b = "x" && ( ... ) || ... }` with `=` and `!=` on texts and numbers, `*` at the ends of a text;
`[first = "A*", second, ...]` on words; and words, `"phrases"` and `?optional` ones.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any


def matches(pattern: str, line: str) -> bool:
    """Whether a line of a log is counted by a filter."""
    pattern = pattern.strip()
    if pattern.startswith("{"):
        try:
            record = json.loads(line)
        except ValueError:
            return False
        return isinstance(record, dict) and _Json(pattern[1:-1].strip(), record).value()
    if pattern.startswith("["):
        return _words(pattern[1:-1], line)
    return _terms(pattern, line)


class _Json:
    """A recursive descent over `&&`, `||` and parentheses."""

    TOKEN = re.compile(r'\s*(\(|\)|&&|\|\||!=|=|"[^"]*"|\$(?:\.[A-Za-z0-9_-]+)+|[A-Za-z0-9_.*-]+)')

    def __init__(self, text: str, record: dict[str, Any]) -> None:
        self.record, self.tokens, at = record, [], 0
        while at < len(text):
            found = self.TOKEN.match(text, at)
            if not found:
                raise ValueError(f"not understood: {text[at:]!r}")
            self.tokens.append(found[1])
            at = found.end()

    def value(self) -> bool:
        result = self._any()
        if self.tokens:
            raise ValueError(f"left over: {self.tokens}")
        return result

    def _any(self) -> bool:
        result = self._all()
        while self.tokens and self.tokens[0] == "||":
            self.tokens.pop(0)
            result = self._all() or result
        return result

    def _all(self) -> bool:
        result = self._one()
        while self.tokens and self.tokens[0] == "&&":
            self.tokens.pop(0)
            result = self._one() and result
        return result

    def _one(self) -> bool:
        first = self.tokens.pop(0)
        if first == "(":
            result = self._any()
            assert self.tokens.pop(0) == ")"
            return result
        operator, wanted = self.tokens.pop(0), self.tokens.pop(0)
        value: Any = self.record
        for part in first.split(".")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        if operator == "=":
            return _fits(wanted, value)
        if operator == "!=":
            return value is not None and not _fits(wanted, value)
        raise ValueError(f"no such operator here: {operator}")


def _fits(wanted: str, value: Any) -> bool:
    if value is None or isinstance(value, dict | list):
        return False
    if wanted.startswith('"'):
        return isinstance(value, str) and _wild(wanted.strip('"'), value)
    return str(value) == wanted


def _wild(wanted: str, value: str) -> bool:
    parts = [re.escape(part) for part in wanted.split("*")]
    return re.fullmatch(".*".join(parts), value, re.DOTALL) is not None


def _words(fields: str, line: str) -> bool:
    # brackets and double quotes hold a word together
    words = [quoted or bracketed or word for quoted, bracketed, word in re.findall(
        r'"([^"]*)"|\[([^\]]*)\]|(\S+)', line
    )]  # fmt: skip
    wanted = [field.strip() for field in fields.split(",")]
    if "..." in wanted:
        assert wanted[-1] == "..."
        wanted = wanted[:-1]
        if len(words) < len(wanted):
            return False
    elif len(words) != len(wanted):
        return False
    for field, word in zip(wanted, words, strict=False):
        name, equals, value = field.partition("=")
        if not re.fullmatch(r"\w+", name.strip()) or "!" in name or "%" in value:
            raise ValueError(f"not understood: {field}")
        if equals and not _wild(value.strip().strip('"'), word):
            return False
    return True


def _terms(pattern: str, line: str) -> bool:
    terms = shlex.split(re.sub(r'\?"', '"?', pattern))
    if any(term.startswith(("-", "%", "{", "[")) for term in terms):
        raise ValueError(f"not understood: {pattern}")
    optional = [term[1:] for term in terms if term.startswith("?")]
    needed = [term for term in terms if not term.startswith("?")]
    if optional and needed:
        raise ValueError("optional terms beside needed ones do nothing")
    return any(term in line for term in optional) if optional else all(term in line for term in needed)
