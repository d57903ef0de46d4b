"""The prices that a team asked for itself: a file next to its environments, which wins over our tables."""

from __future__ import annotations

import csv
import datetime as dt
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ultracluster.catalog.prices import UNITS, Figure, price_kinds
from ultracluster.config import Environment
from ultracluster.config.file_text import text_of
from ultracluster.config.file_write import write

NAME = "prices.csv"
"""Its name, in the folder of the environment file, unless that names another."""

COLUMNS = ("key", "region", "usd", "unit", "date", "source")

MOST_USD = 1_000_000
"""No thing here costs more per unit: above it stands a slip."""


@dataclass(slots=True)
class PriceFile:
    """What a file of prices says."""

    path: Path
    figures: dict[tuple[str, str], Figure] = field(default_factory=dict[tuple[str, str], Figure])
    """By key and place."""
    faults: list[str] = field(default_factory=list[str])
    """What cannot be used, one line each: the shipped price counts there."""


def prices_of(environment: Environment) -> Path:
    """Where the prices of an environment lie, whether or not there are any: the file that it names, or the
    one next to its own."""
    return environment.file.parent / (environment.prices or NAME)


def read_prices(path: Path, *, today: dt.date | None = None) -> PriceFile:
    """The prices of a file; none without one. Nothing is raised: `faults` says what cannot be used."""
    found = PriceFile(path)
    on = today or dt.date.today()
    try:
        text = text_of(path)
    except FileNotFoundError:
        return found
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        found.faults.append(f"{path} cannot be read ({why}): the shipped prices are used")
        return found
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        if tuple(next(reader, ())) != COLUMNS:
            found.faults.append(
                f"{path}:1: the first line must be {','.join(COLUMNS)}; the shipped prices are used"
            )
            return found
        for row in reader:
            if row:
                _add(found, row, reader.line_num, on)
    except csv.Error as error:
        found.faults.append(f"{path}:{reader.line_num}: {error}; what follows is not used")
    return found


def write_prices(path: Path, figures: Iterable[Figure]) -> None:
    """Replace a file of prices, whole or not at all, sorted so that versions can be compared.

    Raises:
        OSError: it cannot be written.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for figure in sorted(figures, key=lambda figure: (figure.key, figure.region)):
        writer.writerow(
            (figure.key, figure.region, f"{figure.usd:.12g}", figure.unit, figure.date or "", figure.source)
        )
    write(path, out.getvalue())


def _add(found: PriceFile, row: list[str], line: int, today: dt.date) -> None:
    try:
        figure = _figure([cell.strip() for cell in row], today)
        if (figure.key, figure.region) in found.figures:
            raise ValueError(f"{figure.key} in {figure.region} stands there twice")
    except ValueError as error:
        found.faults.append(f"{found.path}:{line}: {error}; the line is not used")
        return
    found.figures[figure.key, figure.region] = figure


def _figure(row: list[str], today: dt.date) -> Figure:
    """One line.

    Raises:
        ValueError: what is wrong with it.
    """
    if len(row) != len(COLUMNS):
        raise ValueError(f"it has {len(row)} values, not {len(COLUMNS)} ({','.join(COLUMNS)})")
    key, region, usd, unit, day, source = row
    kind = key.partition(".")[0]
    if kind not in price_kinds():
        raise ValueError(
            f"nothing is priced by the key {key!r}: one begins with {', '.join(sorted(price_kinds()))}"
        )
    if not region or not source:
        raise ValueError(f"the {'source' if region else 'region'} is missing")
    if unit not in UNITS:
        raise ValueError(f"the unit {unit!r} is none of {', '.join(UNITS)}")
    try:
        price = float(usd)
    except ValueError:
        raise ValueError(f"{usd!r} is not a price in USD") from None
    if not math.isfinite(price) or not 0 < price <= MOST_USD:
        raise ValueError(f"{usd} is not a price: write one above 0 and at most {MOST_USD:,} USD")
    try:
        date = dt.date.fromisoformat(day)
    except ValueError:
        raise ValueError(f"the date {day!r} must be written as 2026-11-21") from None
    if date > today:
        raise ValueError(f"the date {day} is in the future")
    return Figure(
        key=key,
        region=region,
        usd=price,
        unit=unit,
        source=source,
        date=date,
        verified=True,
    )
