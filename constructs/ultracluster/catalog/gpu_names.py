"""Instance types by what people call them: 8xH100, h100, B200, Trainium2."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.instance_facts import InstanceType
from ultracluster.catalog.instances import instance_types

_OTHER_NAMES = {"trn": "trainium", "gh200": "h200"}
"""What people say for (the beginning of) the API's name: `trn2` is Trainium2, the first has no number."""
_FORM = re.compile(r"(?:(\d+)\s*[x*\u00d7]\s*)?(?:nvidia|aws)?[\s-]*([a-z]+\d*[a-z]?)", re.IGNORECASE)


def types_of_gpu_name(text: str) -> tuple[str, ...]:
    """Types with that accelerator, those with that many first; without a number the largest first.

    `8xH100` are those with eight H100. Empty where the text names no accelerator that the catalogue has.
    """
    match = _FORM.fullmatch(text.strip())
    if not match:
        return ()
    count, name = int(match[1] or 0), match[2].lower()
    name = _other_name(name)
    found = [one for one in instance_types().values() if _named(one, name)]
    if count:
        exact = [one for one in found if one.accelerator and one.accelerator.count == count]
        found = exact or found
    found.sort(key=lambda one: (-(one.accelerator.count if one.accelerator else 0), -one.vcpu, one.name))
    most = found[0].accelerator if found else None
    return tuple(
        one.name for one in found if one.accelerator and most and one.accelerator.count == most.count
    )


def nearest_instance_types(
    name: str, *, candidates: Iterable[str] | None = None, count: int = 3
) -> list[str]:
    """Up to `count` EC2 names like `name`, best first, other sizes of the same family preferred.

    `name` may carry HyperPod's prefix "ml.", or be what people call the accelerator (`8xH100`); `candidates`
    limits the answer to these EC2 names.
    """
    text = name.strip().lower().removeprefix("ml.")
    names = list(instance_types() if candidates is None else candidates)
    meant = [one for one in types_of_gpu_name(text) if one in names]
    return meant[:count] or nearest(text, names, text.partition(".")[0], count)


def _other_name(name: str) -> str:
    word = name.rstrip("0123456789")
    if name in _OTHER_NAMES or word not in _OTHER_NAMES:
        return _OTHER_NAMES.get(name, name)
    return _OTHER_NAMES[word] + name.removeprefix(word).removeprefix("1")


def _named(instance_type: InstanceType, name: str) -> bool:
    words = (
        re.findall(r"[a-z0-9]+", instance_type.accelerator.name.lower()) if instance_type.accelerator else []
    )
    return name in words
