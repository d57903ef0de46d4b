"""Writes the pictures of docs/pictures. Run by `make generate`.

python tools/pictures.py FOLDER
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import architecture_pictures
from ultracluster.config.loader import load
from ultracluster.model import resolve
from ultracluster.plan.environment_plan import plan
from ultracluster.plan.picture import draw
from ultracluster.plan.picture_symbols import symbol

ROOT = Path(__file__).resolve().parents[1]
DAY = dt.date(2026, 11, 21)
"""Of the prices; pages do not change by the day."""


def pictures() -> Iterator[tuple[str, str]]:
    """Name and SVG of each, with our own symbols only."""
    for name in ("prod",):
        environment = load(ROOT / "environments" / f"{name}.yaml").environment
        yield name, draw(plan(resolve(environment), today=DAY), icons=symbol)[0]
    yield from architecture_pictures.pictures()


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, svg in pictures():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
