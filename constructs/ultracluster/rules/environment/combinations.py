"""Rules on: features that a guide does not let be used together, made of the catalogue's pairs.

Both features are of one group, both of the orchestrator, or the finding is at the orchestrator's and names a
group that has the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from ultracluster.catalog.combinations import Feature, Pair, pair_rules
from ultracluster.config.findings import YamlPath
from ultracluster.config.orchestrator import OrchestratorKind, OrchestratorSettings
from ultracluster.config.remedy import DROP, Remedy, ask, beside, drop, either, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.conditions import holds
from ultracluster.rules.engine import Breach, Breaches, Check
from ultracluster.rules.sets import RULE_SETS


def _in_group(rows: Sequence[Pair]) -> Check:
    def check(group: Group) -> Breaches:
        for row in rows:
            if group.traits.kind in row.on and _has(row.at, group) and _has(row.other, group):
                yield _breach(row, group)

    return check


def _in_orchestrator(rows: Sequence[Pair]) -> Check:
    def check(settings: OrchestratorSettings) -> Breaches:
        for row in rows:
            if settings.kind in row.on and _has(row.at, settings) and _has(row.other, settings):
                yield _breach(row, settings)

    return check


def _beside_group(rows: Sequence[Pair]) -> Check:
    def check(settings: OrchestratorSettings, cluster: Cluster) -> Breaches:
        for row in rows:
            group = next((one for one in cluster.groups.values() if _has(row.other, one)), None)
            if settings.kind in row.on and group and _has(row.at, settings):
                yield _breach(row, settings, group)

    return check


_CHECKS = {
    ("group", "group"): _in_group,
    ("orchestrator", "orchestrator"): _in_orchestrator,
    ("orchestrator", "group"): _beside_group,
}


def _has(feature: Feature, part: Group | OrchestratorSettings) -> bool:
    return holds(feature.where, part) is True


def _breach(row: Pair, part: Group | OrchestratorSettings, group: Group | None = None) -> Breach:
    settings = part.settings if isinstance(part, Group) else part
    values = {
        "group": group.name if group else "",
        "key": row.at.key,
        "type": getattr(settings, "instance_type", ""),
        "scheduler": getattr(settings, "scheduler", ""),
        "release": getattr(settings, "image_release", ""),
    }
    remedy = either(*(_undone(one, row.at) for one in row.undo))
    return Breach(_path(row.at), row.why.format(**values), remedy.noting(row.note) if row.note else remedy)


def _path(feature: Feature) -> YamlPath:
    return (feature.key,)


def _undone(feature: Feature, at: Feature) -> Remedy:
    if feature.ask:
        return ask("decision", feature.ask)
    if feature is not at:
        return beside(**{feature.key: DROP if feature.instead is None else feature.instead})
    return drop() if feature.instead is None else write(feature.instead)


def _register() -> None:
    sets = {rule_set.prefix: rule_set for rule_set in RULE_SETS}
    for rule_id, (severity, title, rows) in pair_rules().items():
        prefix, number = cast("re.Match[str]", re.fullmatch(r"([A-Z]+)(\d+)", rule_id)).groups()
        sets[prefix].add(
            int(number),
            severity,
            title,
            "; ".join(dict.fromkeys(row.source for row in rows)),
            max(row.date for row in rows),
            _CHECKS[rows[0].at.of, rows[0].other.of](rows),
            kinds=cast("frozenset[OrchestratorKind]", frozenset(one for row in rows for one in row.on)),
        )


_register()
