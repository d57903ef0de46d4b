"""Tables: a line for each set of labels, a column for each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import dashboard as models

from tools.dashboards.panels import PROMETHEUS, REFS, TAG, Builder, Limits, target


@dataclass(frozen=True, kw_only=True)
class Column:
    """A value of a table: what is asked, and how it reads."""

    name: str
    expression: str
    unit: str = "short"
    limits: Limits = field(default_factory=Limits)
    words: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Text and colour by value, where a figure stands for a word."""
    decimals: int | None = None


def table(
    title: str,
    labels: Sequence[str],
    columns: Sequence[Column],
    why: str,
    *,
    width: int = 24,
    height: int = 8,
) -> Builder:
    """One line for each set of labels, one column for each expression; a node leads to its own boards."""
    made = (
        tables.Panel()
        .title(title)
        .description(why)
        .datasource(PROMETHEUS)
        .span(width)
        .height(height)
        .no_value("none")
        .filterable(True)
        .show_header(True)
    )
    for ref, column in zip(REFS, columns, strict=False):
        made = made.with_target(target(column.expression, "", ref, instant=True, as_table=True))
    keep = [
        *labels,
        *(f"Value #{ref}" if len(columns) > 1 else "Value" for ref, _ in zip(REFS, columns, strict=False)),
    ]
    made = made.with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
    made = made.with_transformation(
        models.DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": keep}})
    )
    names = dict(zip(keep[len(labels) :], (column.name for column in columns), strict=True))
    made = made.with_transformation(
        models.DataTransformerConfig(
            id_val="organize",
            options={
                "indexByName": {name: place for place, name in enumerate(keep)},
                "renameByName": names,
                "excludeByName": {},
            },
        )
    )
    for column in columns:
        made = made.override_by_name(column.name, _column_style(column))
    if "node" in labels:
        made = made.override_by_name("node", [models.DynamicConfigValue(id_val="links", value=_node_links())])
    return made


def _column_style(column: Column) -> list[models.DynamicConfigValue]:
    style = [
        models.DynamicConfigValue(id_val="unit", value=column.unit),
        models.DynamicConfigValue(
            id_val="thresholds",
            value={"mode": "absolute", "steps": [step.to_json() for step in column.limits.steps()]},
        ),
    ]
    if column.limits != Limits() or column.words:
        style.append(models.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}))
    if column.words:
        words = {key: {"text": said, "color": color} for key, (said, color) in column.words.items()}
        style.append(
            models.DynamicConfigValue(id_val="mappings", value=[{"type": "value", "options": words}])
        )
    if column.decimals is not None:
        style.append(models.DynamicConfigValue(id_val="decimals", value=column.decimals))
    return style


def _node_links() -> list[dict[str, Any]]:
    query = "var-cluster=${cluster}&var-node=${__value.raw}&${__url_time_range}"
    return [
        {"title": "Health of this node", "url": f"/d/{TAG}-health?{query}"},
        {"title": "Fabric of this node", "url": f"/d/{TAG}-fabric?{query}"},
    ]
