"""Panels, typed by Grafana's Foundation SDK: a figure, lines, bars, a table, bands, and a metric of CloudWatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    cloudwatch,
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.models import cloudwatch as cloudwatch_models
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

TAG = "ultracluster"
PROMETHEUS = common_models.DataSourceRef(type_val="prometheus", uid="${prometheus}")
CLOUDWATCH = common_models.DataSourceRef(type_val="cloudwatch", uid="${cloudwatch}")
REFS = "ABCDEFGHIJKLMNOP"
"""What the queries of a panel are called."""
MOST = 40
"""Nodes that one picture shows."""
GOOD, WARN, BAD, PLAIN = "green", "orange", "red", "blue"
Builder = Any
"""The SDK's builders share no base class that is more than `build()`."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """From which values on something is to be looked at, and from which it is bad. `low`: below them."""

    warn: float | None = None
    bad: float | None = None
    low: bool = False

    def steps(self) -> list[models.Threshold]:
        pairs = [(self.warn, WARN), (self.bad, BAD)]
        marks = sorted((value, color) for value, color in pairs if value is not None)
        if not marks:
            return [models.Threshold(value=None, color=PLAIN)]
        if not self.low:
            return [models.Threshold(value=None, color=GOOD), *(models.Threshold(v, c) for v, c in marks)]
        above = [*(color for _, color in marks[1:]), GOOD]
        return [
            models.Threshold(value=None, color=marks[0][1]),
            *(models.Threshold(value, color) for (value, _), color in zip(marks, above, strict=True)),
        ]


def target(expression: str, legend: str, ref: str, *, instant: bool = False, as_table: bool = False) -> Any:
    query = prometheus.Dataquery().datasource(PROMETHEUS).expr(expression).legend_format(legend).ref_id(ref)
    query = query.instant() if instant else query.range()
    kind = (
        prometheus_models.PromQueryFormat.TABLE if as_table else prometheus_models.PromQueryFormat.TIME_SERIES
    )
    return query.format(kind)


def number(
    title: str,
    expression: str,
    why: str,
    *,
    unit: str = "short",
    limits: Limits = Limits(),  # frozen
    width: int = 4,
    decimals: int | None = None,
) -> Builder:
    """One figure, coloured by its limits."""
    made = (
        stat.Panel()
        .title(title)
        .description(why)
        .datasource(PROMETHEUS)
        .unit(unit)
        .thresholds(_thresholds(limits))
        .color_mode(common_models.BigValueColorMode.BACKGROUND)
        .graph_mode(common_models.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("no data")
        .span(width)
        .height(4)
        # what looks back over hours is asked once, not at each moment of the picture
        .with_target(
            target(expression, "", "A", instant=any(one in expression for one in ("$__range", "[6h]")))
        )
    )
    return made.decimals(decimals) if decimals is not None else made


def _few(expression: str, legend: str, *, lowest: bool) -> str:
    """A cluster of a thousand nodes is no picture: those that stand out are."""
    if "{{node}}" not in legend:
        return expression
    return f"{'bottomk' if lowest else 'topk'}({MOST}, {expression})"


def graph(
    title: str,
    series: Sequence[tuple[str, str]],
    why: str,
    *,
    unit: str = "short",
    limits: Limits = Limits(),  # frozen
    width: int = 12,
    floor: float | None = 0,
    ceiling: float | None = None,
    stacked: bool = False,
    lowest: bool | None = None,
) -> Builder:
    """Lines over time: pairs of expression and legend. Of nodes those with the highest values, or the lowest."""
    low = limits.low if lowest is None else lowest
    if any("{{node}}" in legend for _, legend in series):
        why = f"{why} The {MOST} {'lowest' if low else 'highest'} at each moment."
    made = (
        timeseries.Panel()
        .title(title)
        .description(why)
        .datasource(PROMETHEUS)
        .unit(unit)
        .span(width)
        .height(8)
        .line_width(1)
        .fill_opacity(20 if stacked else 5)
        .show_points(common_models.VisibilityMode.NEVER)
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
        .legend(
            common.VizLegendOptions()
            .display_mode(common_models.LegendDisplayMode.TABLE)
            .placement(common_models.LegendPlacement.RIGHT)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .thresholds(_thresholds(limits))
    )
    if limits.warn is not None or limits.bad is not None:
        style = common.GraphThresholdsStyleConfig().mode(common_models.GraphThresholdsStyleMode.DASHED)
        made = made.thresholds_style(style)
    if floor is not None:
        made = made.min(floor)
    if ceiling is not None:
        made = made.max(ceiling)
    if stacked:
        made = made.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL).group("A"))
    for ref, (expression, legend) in zip(REFS, series, strict=False):
        made = made.with_target(target(_few(expression, legend, lowest=low), legend, ref))
    return made


def bars(
    title: str,
    expression: str,
    legend: str,
    why: str,
    *,
    unit: str = "short",
    limits: Limits = Limits(),  # frozen
    width: int = 12,
    ceiling: float | None = None,
) -> Builder:
    """The last value of each series as a bar, for a few that are to be compared."""
    made = (
        bargauge.Panel()
        .title(title)
        .description(why)
        .datasource(PROMETHEUS)
        .unit(unit)
        .min(0)
        .thresholds(_thresholds(limits))
        .orientation(common_models.VizOrientation.HORIZONTAL)
        .display_mode(common_models.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .span(width)
        .height(8)
        .with_target(target(_few(expression, legend, lowest=limits.low), legend, "A", instant=True))
    )
    return made.max(ceiling) if ceiling is not None else made


def states(
    title: str,
    expression: str,
    legend: str,
    why: str,
    *,
    words: dict[str, tuple[str, str]],
    width: int = 24,
    height: int = 8,
) -> Builder:
    """A band for each series that changes its colour with its state."""
    mapping = models.ValueMap(
        options={
            key: models.ValueMappingResult(text=said, color=color) for key, (said, color) in words.items()
        }
    )
    return (
        statetimeline.Panel()
        .title(title)
        .description(why)
        .datasource(PROMETHEUS)
        .mappings([mapping])
        .show_value(common_models.VisibilityMode.NEVER)
        .row_height(0.8)
        .span(width)
        .height(height)
        .with_target(target(_few(expression, legend, lowest=False), legend, "A"))
    )


def fsx(
    title: str,
    metric: str,
    why: str,
    *,
    statistic: str,
    unit: str,
    dimensions: dict[str, list[str]] | None = None,
    limits: Limits = Limits(),  # frozen
    width: int = 12,
) -> Builder:
    """A metric that FSx gives to CloudWatch, of the chosen file systems."""
    query = (
        cloudwatch.MetricsQuery()
        .datasource(CLOUDWATCH)
        .query_mode(cloudwatch_models.QueryMode("Metrics"))
        .metric_query_type(cloudwatch_models.MetricQueryType.SEARCH)
        .metric_editor_mode(cloudwatch_models.MetricEditorMode.BUILDER)
        .region("default")
        .namespace("AWS/FSx")
        .metric_name(metric)
        .dimensions({"FileSystemId": ["$file_system"], **(dimensions or {})})
        .match_exact(False)
        .statistic(statistic)
        .period("60")
        .id("")
        .expression("")
        .label("${PROP('Dim.FileSystemId')}")
        .ref_id("A")
    )
    return (
        timeseries.Panel()
        .title(title)
        .description(why)
        .datasource(CLOUDWATCH)
        .unit(unit)
        .span(width)
        .height(8)
        .min(0)
        .thresholds(_thresholds(limits))
        .with_target(query)
    )


def _thresholds(limits: Limits) -> Any:
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(limits.steps())
