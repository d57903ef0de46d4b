"""Each wish of the catalogue: the environment that has it, and what it is refused without."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from project import ROOT
from ruamel.yaml import YAML

from ultracluster.catalog.wishes import Wish, wishes
from ultracluster.config import Finding, InvalidEnvironmentError, parse
from ultracluster.config.source import Source, read
from ultracluster.rules import check

FOLDER = ROOT / "tests" / "support" / "wishes"
OVERLAYS = sorted({wish.overlay for wish in wishes().values()})


@dataclass(frozen=True)
class Refusal:
    """A documented prerequisite, how it is taken away, and the rule that says so."""

    wish: str
    lacks: str
    set: Mapping[str, Any]
    remove: tuple[str, ...]
    rule: str

    def __str__(self) -> str:
        return f"{self.wish}: {self.lacks}"


def refusals() -> list[Refusal]:
    """Of all wishes."""
    return [row for name in wishes() for row in refusals_of(name)]


def refusals_of(name: str) -> list[Refusal]:
    file = FOLDER / f"{name}.yaml"
    rows: Any = YAML(typ="safe").load(file) if file.exists() else {}
    return [
        Refusal(name, row["lacks"], row.get("set", {}), tuple(row.get("remove", ())), row["rule"])
        for row in rows.get("refused", ())
    ]


def found_without(wish: Wish, refusal: Refusal) -> list[Finding]:
    """What is said of the wish's environment without a prerequisite. Paths have dots."""
    data = copy.deepcopy(read(ROOT / wish.overlay).data)
    for path in refusal.remove:
        *parents, last = path.split(".")
        del _at(data, parents)[last]
    for path, value in refusal.set.items():
        *parents, last = path.split(".")
        _at(data, parents)[last] = value
    try:
        loaded = parse(Source(str(ROOT / wish.overlay), data=data))
    except InvalidEnvironmentError as error:
        return list(error.findings)
    return list(check(loaded))


def _at(data: Any, parents: list[str]) -> Any:
    for part in parents:
        data = data[int(part)] if isinstance(data, list) else data.setdefault(part, {})
    return data


__all__ = ["FOLDER", "OVERLAYS", "Refusal", "found_without", "refusals", "refusals_of"]
