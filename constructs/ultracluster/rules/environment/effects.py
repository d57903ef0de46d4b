"""Rules on: settings that are written and do nothing in this environment, by the catalogue's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ultracluster.catalog.effects import Effect, effects
from ultracluster.config.base import Model
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import drop
from ultracluster.model import Cluster
from ultracluster.rules.conditions import holds
from ultracluster.rules.engine import Breach, Breaches
from ultracluster.rules.sets import ENV


@ENV.warning(36, "catalog/effects.json, with a source for each setting", "2026-11-28")
def setting_has_effect(cluster: Cluster) -> Breaches:
    """A setting that is written has an effect in this environment."""
    for row in effects():
        if row.on and cluster.traits.kind not in row.on:
            continue
        for path, holder in _written(cluster.environment, row.setting.split(".")):
            if getattr(holder, str(path[-1])) not in row.but and _has_none(row, path, holder, cluster):
                group = cluster.groups.get(str(path[1])) if path[0] == "node_groups" else None
                why = row.why.format(type=group.settings.instance_type if group else "")
                yield Breach(path, f"`{path[-1]}` does nothing here: {why}.", drop())


def _has_none(row: Effect, path: YamlPath, holder: Model, cluster: Cluster) -> bool:
    match row.of:
        case "beside":
            return holds(row.where, holder) is False
        case "environment":
            return holds(row.where, cluster) is False
        case "group":
            return holds(row.where, cluster.groups[str(path[1])]) is False
        case "some group":
            return all(holds(row.where, group) is False for group in cluster.groups.values())


def _written(model: object, keys: list[str], path: YamlPath = ()) -> Iterator[tuple[YamlPath, Model]]:
    """Places where the file gives the setting another value than it has by default, and what holds it."""
    key, *rest = keys
    if isinstance(model, Mapping):
        for name, value in cast("Mapping[str, Any]", model).items():
            if key in ("*", name):
                yield from _written(value, rest, (*path, name))
    elif isinstance(model, Model) and key in type(model).model_fields:
        value, field = getattr(model, key), type(model).model_fields[key]
        if rest:
            yield from _written(value, rest, (*path, key))
        elif key in model.model_fields_set and value != field.get_default(call_default_factory=True):
            yield (*path, key), model
