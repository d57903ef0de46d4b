"""What a user probably meant: used only to word findings."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ultracluster.config.base import DISCRIMINATORS
from ultracluster.config.environment import Environment
from ultracluster.config.findings import YamlPath

_RESTRICTED = (
    "a list of its own is not needed. A group is restricted (Amazon Nova customisation) by a key: "
    "`node_groups.<name>.restricted: {}`."
)
_NO_SSH = "there is no SSH ingress; people log in through SSM Session Manager."

# Keys that other tools have and that would do harm, or nothing, here.
REFUSED_KEYS = {
    "availability_zone": "zone names differ between accounts. Write `zone_id`, e.g. use1-az6.",
    "availability_zones": "a training cluster lives in one zone. Write `zone_id`, e.g. use1-az6.",
    "capacity_reservation_id": "write `capacity: {kind: reservation, id: cr-...}`; HyperPod takes none.",
    "key_name": _NO_SSH,
    "key_pair": _NO_SSH,
    "multi_head": "HyperPod has several controllers only with the legacy provisioning file, which cannot be "
    "combined with the API's Slurm configuration. Use one controller and `storage.accounting_database`.",
    "permissions_boundary": "write `governance: {permissions_boundary: ...}`, which bounds every role.",
    "placement_group": "nodes with EFA get one of their own where EC2 is ours to place, and none where it "
    "would lose a reservation; HyperPod places instances itself. For a reservation made in a group write "
    "`capacity: {kind: reservation, id: cr-..., placement_group: <name>}`.",
    "restricted_instance_groups": _RESTRICTED,
    "restricted_node_groups": _RESTRICTED,
    "ssh_key": _NO_SSH,
    "user_data": "nodes run the lifecycle scripts of a software release instead.",
}

_TO_GIB = {
    "GIB": 1.0, "GI": 1.0, "TIB": 1024.0, "TI": 1024.0, "PIB": 1024.0**2, "MIB": 1 / 1024,
    "GB": 1e9 / 2**30, "G": 1.0, "TB": 1e12 / 2**30, "T": 1024.0, "PB": 1e15 / 2**30,
}  # fmt: skip
_UNITS = {
    "gib": (_TO_GIB, "GiB"),
    "mbps": ({"MBPS": 1.0, "MB/S": 1.0, "GBPS": 1000.0, "GB/S": 1000.0}, "MB/s"),
    "mib": ({"MIB": 1.0, "GIB": 1024.0, "MB": 1e6 / 2**20, "GB": 1e9 / 2**20}, "MiB"),
    "days": ({"D": 1.0, "DAY": 1.0, "DAYS": 1.0, "W": 7.0, "WEEK": 7.0, "WEEKS": 7.0}, "days"),
    "minutes": ({"M": 1.0, "MIN": 1.0, "MINUTES": 1.0, "H": 60.0, "HOURS": 60.0, "HOUR": 60.0}, "minutes"),
    "seconds": ({"S": 1.0, "SEC": 1.0, "SECONDS": 1.0, "M": 60.0, "MIN": 60.0, "MINUTES": 60.0}, "seconds"),
}


def in_unit_of(name: str, text: str) -> tuple[int | float | None, str]:
    """`("capacity_gib", "2 TiB")` gives 2048 and a note on the unit; None when there is nothing sensible."""
    match = re.fullmatch(r"\s*([0-9_]+(?:\.[0-9]+)?)\s*([A-Za-z/]*)\s*", text[:100])
    digits = match[1].strip("_").replace("_", "") if match else ""
    if not match or not digits:
        return None, ""
    number, unit = float(digits), match[2].upper()
    if number >= 1e15:
        return None, ""
    if not unit:
        return (int(number) if number.is_integer() else number), "without quotes"
    for suffix, (factors, shown) in _UNITS.items():
        if name.endswith(f"_{suffix}") or f"_{suffix}_" in name:
            factor = factors.get(unit)
            return (round(number * factor) if factor else None), f"the unit is {shown}"
    return (int(number) if number.is_integer() else number), ""


def may_be_left_out(path: YamlPath) -> bool:
    """Whether the key at `path` has a default that a file may rely on."""
    info = _field(path)
    return info is not None and not info.is_required() and path[-1] not in DISCRIMINATORS


def required(path: YamlPath) -> list[str]:
    """The keys that must stand below `path`; none where it holds no keys or several kinds of them."""
    info = _field(path)
    models = _models(info.annotation) if info else []
    if len(models) != 1:
        return []
    return [name for name, field in models[0].model_fields.items() if field.is_required()]


def _field(path: YamlPath) -> FieldInfo | None:
    annotation: Any = Environment
    info: FieldInfo | None = None
    for part in path:
        models = _models(annotation)
        if not models:
            annotation, info = _element(annotation), None
            continue
        fields = [model.model_fields[str(part)] for model in models if str(part) in model.model_fields]
        if not fields:
            return None
        info = fields[0] if all(one.is_required() == fields[0].is_required() for one in fields) else None
        annotation = fields[0].annotation
    return info


@cache
def place_of(model: type[BaseModel]) -> YamlPath:
    """A place in a file where such a part stands; empty where no file has one."""
    pending: deque[tuple[YamlPath, Any]] = deque([((), Environment)])
    seen: set[Any] = set()
    while pending:
        path, annotation = pending.popleft()
        models = _models(annotation)
        if model in models:
            return path
        if not models and (element := _element(annotation)) is not None:
            pending.append(((*path, "<name>"), element))
        for one in models:
            if one not in seen:
                seen.add(one)
                pending += [((*path, name), info.annotation) for name, info in one.model_fields.items()]
    return ()


@dataclass(slots=True)
class Keys:
    """Which keys are known at a place of the file."""

    here: list[str] = field(default_factory=list[str])
    tag: str = ""
    chosen: str = ""
    tags: list[str] = field(default_factory=list[str])
    elsewhere: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Key -> values of `tag` whose variant has it."""
    examples: dict[str, str] = field(default_factory=dict[str, str])


def owners(path: YamlPath, data: Any) -> Keys:
    """The keys that may stand directly below `path`, given what `data` chooses there."""
    annotation: Any = Environment
    field_info: FieldInfo | None = None
    for part in path:
        models = _models(annotation)
        if not models:
            annotation = _element(annotation)
        else:
            fields = [m.model_fields[str(part)] for m in models if str(part) in m.model_fields]
            if not fields:
                return Keys()
            field_info, annotation = fields[0], fields[0].annotation
        data = _child(data, part)
    return _keys(_models(annotation), field_info, data)


def _keys(models: list[type[BaseModel]], field_info: FieldInfo | None, data: Any) -> Keys:
    keys = Keys()
    if len(models) > 1:
        keys.tag = next((t for t in DISCRIMINATORS if t in models[0].model_fields), "")
        keys.chosen = str(_child(data, keys.tag) or "")
        for model in models:
            annotation: Any = model.model_fields[keys.tag].annotation
            values = [str(value) for value in get_args(annotation)]
            keys.tags += values
            for name in model.model_fields:
                keys.elsewhere.setdefault(name, []).extend(values)
            if keys.chosen in values:
                keys.here = list(model.model_fields)
        keys.elsewhere = {n: v for n, v in keys.elsewhere.items() if keys.chosen not in v}
    elif models:
        keys.here = list(models[0].model_fields)
    for model in models:
        for name, info in model.model_fields.items():
            if info.examples:
                keys.examples[name] = f"{name}: {info.examples[0]}"
    return keys


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models an annotation may hold directly (unions, optionals), not inside a collection."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = get_origin(annotation)
    if origin in (dict, Sequence, tuple, list):
        return []
    if origin is Union or type(cast("object", annotation)).__name__ in (
        "UnionType",
        "Union",
        "_AnnotatedAlias",
    ):
        found: list[type[BaseModel]] = []
        for argument in get_args(annotation):
            found += _models(argument)
        return found
    return []


def _element(annotation: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return arguments[1]
    return arguments[0] if arguments else None


def _child(data: Any, part: str | int) -> Any:
    if isinstance(data, dict):
        return cast("dict[Any, Any]", data).get(part)
    if isinstance(data, list) and isinstance(part, int):
        return cast("list[Any]", data)[part]
    return None
