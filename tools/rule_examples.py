"""Renews the words of the findings in `constructs/ultracluster/rules/examples.json`.

Run by `make generate`. Each bad piece of YAML is applied to its base, and what its rule says of it is written
beside it. Examples with `where` are left as they are: their world exists in tests only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ultracluster.config import Finding, parse
from ultracluster.config.source import Source, read
from ultracluster.rules import all_rules
from ultracluster.rules.eks import releases as eks_releases
from ultracluster.rules.engine import run
from ultracluster.rules.examples import FILE, Example, applied, bases, examples
from ultracluster.rules.pcs import cluster as pcs

ENVIRONMENTS = Path(__file__).parents[1] / "environments"
_ORDER = ("base", "where", "bad", "good", "at", "says", "instead")


@contextmanager
def on_the_day() -> Iterator[None]:
    """The day on which the examples are read: some findings count days."""
    day = _day()
    with patch.object(eks_releases, "today", lambda: day), patch.object(pcs, "today", lambda: day):
        yield


@cache
def _day() -> date:
    return date.fromisoformat(json.loads(FILE.read_text(encoding="utf-8"))["about"]["day"])


def base_of(example: Example) -> dict[str, Any]:
    """The data of the environment that the example changes."""
    made = bases().get(example.base)
    data = _shipped(made["from"] if made else example.base)
    return applied(data, made["with"]) if made else applied(data, {})


@cache
def _shipped(name: str) -> dict[str, Any]:
    """To be copied before it is changed, as `applied` does."""
    return read(ENVIRONMENTS / f"{name}.yaml").data


def found(example: Example, *, good: bool) -> list[Finding]:
    """What all rules find in the base with the bad lines, or with the good ones on top."""
    data = applied(base_of(example), example.bad)
    if good:
        data = applied(data, example.good)
    return run(all_rules(), parse(Source("example.yaml", data=data)))


def the_finding(example: Example, findings: Sequence[Finding]) -> Finding | None:
    """What the rule says of its bad lines, of all `findings` there: at `at` where it says several things."""
    hits = [one for one in findings if one.code == example.rule]
    return next((one for one in hits if one.dotted == example.at), hits[0] if hits else None)


def main() -> None:
    content = json.loads(FILE.read_text(encoding="utf-8"))
    with on_the_day():
        for rule, example in examples().items():
            finding = None if example.where else the_finding(example, found(example, good=False))
            if finding is not None:
                content["rules"][rule] |= {
                    "at": finding.dotted,
                    "says": finding.message,
                    "instead": finding.instead,
                }
    FILE.write_text(written(content), encoding="utf-8")


def written(content: dict[str, Any]) -> str:
    """The file, one field on a line, in the order of the rules."""
    rows: list[str] = []
    for rule in sorted(content["rules"], key=[one.id for one in all_rules()].index):
        row = content["rules"][rule]
        fields = [f'   "{key}": {json.dumps(row[key], ensure_ascii=False)}' for key in _ORDER if key in row]
        rows.append(f'  "{rule}": {{\n' + ",\n".join(fields) + "\n  }")
    head = [f' "{key}": {json.dumps(content[key], ensure_ascii=False)}' for key in ("about", "bases")]
    return "{\n" + ",\n".join(head) + ',\n "rules": {\n' + ",\n".join(rows) + "\n }\n}\n"


if __name__ == "__main__":
    main()
