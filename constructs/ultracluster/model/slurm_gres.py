"""Devices of Slurm's nodes: entries of `Gres`, and records of gres.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ultracluster.config.slurm import GresRecord, named
from ultracluster.model.cluster import Group


@dataclass(frozen=True, slots=True)
class Gres:
    """One of `Gres=gpu:b200:8,mps:800`."""

    name: str
    type: str
    count: int


def asked(group: Group) -> tuple[str, list[Gres]]:
    """The parameter as it is written, and what it counts."""
    key, value = named(group.settings.slurm_settings, "gres")
    return key, [_entry(one) for one in value.strip('"').split(",") if one.strip()]


def counted(record: GresRecord) -> int:
    """Devices that a record declares."""
    if record.count is not None:
        return record.count
    return sum(1 for _ in device_files(record.files)) if record.files else 1


def uncounted(record: GresRecord) -> bool:
    """Return whether its devices are found at boot; PCS cannot count them."""
    return record.detects and record.count is None and record.files is None


def device_files(names: str) -> Iterator[str]:
    """`/dev/nvidia[0-3,6]` names five files, `/dev/a,/dev/b` two."""
    for one in re.split(r",(?![^\[]*\])", names):
        yield from _expanded(one)


def largest(numbers: str) -> int:
    """The largest number of `0-3,6`."""
    return max(int(number) for number in re.findall(r"\d+", numbers))


def _expanded(name: str) -> Iterator[str]:
    before, bracket, rest = name.partition("[")
    if not bracket:
        yield name
        return
    ranges, closed, after = rest.partition("]")
    if not closed or not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", ranges):
        yield name  # Slurm reads it in its own way
        return
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        for number in range(int(first), min(int(last or first), int(first) + _MOST) + 1):
            for tail in _expanded(after):
                yield f"{before}{number}{tail}"


_MOST = 1024
"""Files of one range that are looked at; Slurm takes no more devices of a kind (MAX_GRES_BITMAP)."""


def _entry(text: str) -> Gres:
    name, *rest = re.sub(r"\(.*?\)", "", text.strip()).split(":")
    rest = [one for one in rest if one.lower() != "no_consume"]
    number = re.fullmatch(r"([0-9]+)([kmgKMG]?)", rest[-1]) if rest else None
    scale = 1024 ** ("kmg".index(number[2].lower()) + 1) if number and number[2] else 1
    kinds = rest[:-1] if number else rest
    return Gres(name.lower(), ":".join(kinds), int(number[1]) * scale if number else 1)
