"""Accelerators as people name them, "64xH100", and the instance types that have them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.instance_facts import InstanceType
from ultracluster.catalog.instances import instance_types

_FORM = re.compile(r"\s*(?P<count>\d+)\s*[x*×]?\s*(?P<name>[A-Za-z].*?)\s*", re.IGNORECASE)
_MAKERS = ("nvidia", "aws", "amazon")
_MEMORY = re.compile(r"(?P<name>.+?)[-_ ]+(?P<gib>\d+) *gi?b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """So many accelerators of one name."""

    count: int
    name: str


def read_accelerators(text: str) -> Accelerators | None:
    """`64xH100`, `64 x H100` or `64 H100` in parts; None where it has no such form."""
    match = _FORM.fullmatch(text)
    return Accelerators(count=int(match["count"]), name=match["name"]) if match else None


def types_with(name: str) -> tuple[InstanceType, ...]:
    """Types with accelerators of a name, be it EC2's ("H100", "Trainium2") or a family's ("trn2").

    The memory of one may follow, "A100-80GB". Empty where no type has them.
    """
    if memory := _MEMORY.fullmatch(name.strip()):
        alike = _named(_plain(memory["name"]))
        return tuple(one for one in alike if round(_memory_gib(one)) == int(memory["gib"]))
    return _named(_plain(name))


def most_in_one(name: str) -> int:
    """The most accelerators of a name that one instance has; 0 where no type has them."""
    return max((one.accelerator.count for one in types_with(name) if one.accelerator), default=0)


def nearest_accelerators(name: str, *, count: int = 3) -> list[str]:
    """Up to `count` names of accelerators like `name`, best first; those trained on most where none is."""
    names = {one.accelerator.name.lower(): one.accelerator.name for one in _accelerated() if one.accelerator}
    near = nearest(name.strip().lower(), names, "", count)
    return [names[one] for one in near] or ["H100", "B200", "Trainium2"]


def _named(name: str) -> tuple[InstanceType, ...]:
    return tuple(
        one
        for one in _accelerated()
        if one.accelerator and name in (_plain(one.accelerator.name), one.family)
    )


def _accelerated() -> tuple[InstanceType, ...]:
    return tuple(one for one in instance_types().values() if one.accelerator)


def _memory_gib(instance_type: InstanceType) -> float:
    """Of one accelerator."""
    accelerator = instance_type.accelerator
    return accelerator.memory_gib / accelerator.count if accelerator else 0


def _plain(name: str) -> str:
    """Without the maker, blanks and signs, in small letters: "h100" for "NVIDIA H100"."""
    small = re.sub(r"[^a-z0-9]", "", name.lower())
    return next((small.removeprefix(maker) for maker in _MAKERS if small.startswith(maker)), small)
