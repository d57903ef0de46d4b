"""A rule in words: what must hold, a bad and a good piece of YAML, and what is said of the bad one."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from ultracluster.rules import Rule
from ultracluster.rules.examples import ABSENT, Example, bases, examples, mapping, numbered

_PLAIN = re.compile(r"[A-Za-z/][\w./-]*(?::[^\s#,\[\]{}]+)*|\$\{\w+\}")
_WORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}
_NUMBERED = re.compile(r"\{(\d+)\.\.(\d+)\}")
_WIDE = 100
"""Characters within which a mapping stays on one line."""


def bad_and_good(example: Example) -> str:
    """Both pieces, as two documents of YAML."""
    made = bases().get(example.base)
    base = made["named"] if made else f"environments/{example.base}.yaml"
    where = f", where {example.where}" if example.where else ""
    bad, good = yaml_lines(example.bad), yaml_lines(example.good)
    return "\n".join([f"# bad, in {base}{where}", *bad, "---", "# good", *good])


def yaml_lines(changes: dict[str, Any]) -> list[str]:
    """Changes by dotted path as lines of YAML; what is taken away is a comment."""
    return _block(_nested(changes), "")


def as_markdown(rule: Rule) -> str:
    """The rule's entry of docs/rules.md, below its heading."""
    example = examples()[rule.id]
    parts = [
        f"{_severity(rule)} · {rule.source} ({rule.date})",
        f"> `{example.at}`: {example.says}\n> Instead: {example.instead}.",
        f"```yaml\n{bad_and_good(example)}\n```",
    ]
    if rule.by_hand:
        parts.append(f"By hand: `{rule.by_hand}`")
    return "\n\n".join(parts)


def _severity(rule: Rule) -> str:
    return f"{rule.severity} until acknowledged" if rule.until_acknowledged else rule.severity


def as_text(rule: Rule) -> str:
    """The rule for a terminal."""
    example = examples()[rule.id]
    kinds = ", ".join(sorted(rule.kinds)) if rule.kinds else "every orchestrator"
    lines = [
        f"{rule.id}  {_severity(rule)}  {rule.title}",
        f"for      {kinds}",
        f"source   {rule.source} ({rule.date})",
        *([f"by hand  {rule.by_hand}"] if rule.by_hand else []),
        "",
        *(f"  {line}" for line in bad_and_good(example).splitlines()),
        "",
        f"  {example.at}: {example.says}",
        f"  instead: {example.instead}",
    ]
    return "\n".join(lines)


def as_row(rule: Rule) -> dict[str, Any]:
    """The rule for machines."""
    example = examples()[rule.id]
    return {
        "id": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "orchestrators": sorted(rule.kinds) if rule.kinds else None,
        "source": rule.source,
        "date": rule.date,
        "by_hand": rule.by_hand or None,
        "bad": "\n".join(yaml_lines(example.bad)),
        "good": "\n".join(yaml_lines(example.good)),
        "says": example.says,
        "instead": example.instead,
    }


def _nested(changes: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for path, value in changes.items():
        many = _NUMBERED.search(path)
        parts = (path.replace(many[0], "\0") if many else path).split(".")
        *parents, last = [part.replace("\0", many[0]) if many else part for part in parts]
        target = result
        for part in parents:
            target = target.setdefault(part, {})
        target[last] = value
    return result


def _block(data: dict[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, value in data.items():
        many = _NUMBERED.search(key)
        name, note = key, ""
        if many:
            name = key.replace(many[0], many[1])
            note = f"  # and so on, to {key.replace(many[0], many[2])}"
            value = numbered(value, many[1])
        if value == ABSENT:
            lines.append(f"{indent}# no {name}")
            continue
        inner = mapping(value)
        line = f"{indent}{_scalar(name)}: {_flow(value)}"
        if inner and (not indent or _remarks(inner) or len(line) > _WIDE):
            lines += [f"{indent}{_scalar(name)}:{note}", *_block(inner, indent + "  ")]
        else:
            lines.append(line + note)
    return lines


def _remarks(data: dict[str, Any]) -> bool:
    """Is something in it written as a comment, so that it cannot stand on one line?"""
    return any(
        one == ABSENT or _NUMBERED.search(key) or _remarks(mapping(one) or {}) for key, one in data.items()
    )


def _flow(value: Any) -> str:
    inner = mapping(value)
    if inner is not None:
        return f"{{{', '.join(f'{_scalar(key)}: {_flow(one)}' for key, one in inner.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_flow(one) for one in cast(list[Any], value))}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
