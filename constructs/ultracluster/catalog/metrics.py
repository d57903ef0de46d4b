"""Metrics that rules, dashboards and figures may name, and who exports them (`metrics.json` next to it).

Nothing that is not in here leaves a node: agents keep these names and drop the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Literal

from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.files import catalog_file, record

Kind = Literal["counter", "gauge", "histogram", "untyped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A program that exposes metrics, in the version whose names were recorded."""

    name: str
    job: str
    """Label `job` of its series: the scrape job. `*` for series that the agent makes for each target."""
    version: str
    since: str | None = None
    """The first release that has it."""
    recorded: str | None = None
    """Exposition in `tests/metrics/recorded/`, of `version`."""
    also_recorded: Mapping[str, str] = field(default_factory=dict[str, str])
    """Expositions of further versions: of a newer one, before nodes get it."""
    pinned: Mapping[str, str] | None = None
    """`component` and `version` that releases lock for nodes: names of a newer one are recorded first."""
    constructed: bool
    """The exposition was written from published sources, and not recorded from the program."""
    sources: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. A histogram's series end in `_bucket`, `_sum` and `_count`."""

    name: str
    exporter: str
    type: Kind
    labels: tuple[str, ...]
    """Its own, beside those that every series gets: cluster, node, node_group, instance_type and more."""
    newer_labels: tuple[str, ...] = ()
    """What newer versions of its exporter have beside these: nothing of ours may need them."""
    per: tuple[str, ...]
    """What a node has one series for each of: `gpu`, `efa-port`, ... Several are multiplied; none is one."""
    unit: str = ""
    help: str
    since: str | None = None
    until: str | None = None
    """First and last version of its exporter that has it under this name."""

    @property
    def series_names(self) -> tuple[str, ...]:
        """What its series are called: one name, or three of a histogram."""
        if self.type != "histogram":
            return (self.name,)
        return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")


def exporters() -> Mapping[str, Exporter]:
    """Exporters by name; read-only."""
    return _tables()[0]


def metrics() -> Mapping[str, Metric]:
    """Every metric by name; read-only."""
    return _tables()[1]


def metric(name: str) -> Metric:
    """The metric that is called so, or that a series of this name belongs to.

    Raises:
        LookupError: no metric has such a series, with the nearest that there are.
    """
    found = _by_series().get(name) or metrics().get(name)
    if found is None:
        close = nearest(name, _by_series(), name, 3)
        raise LookupError(f"no metric is called {name}" + (f"; nearest: {', '.join(close)}" if close else ""))
    return found


def series_names(job: str) -> tuple[str, ...]:
    """Names that a scrape job keeps, sorted; without those that the agent makes itself."""
    kept = (metric for metric in metrics().values() if exporters()[metric.exporter].job == job)
    return tuple(sorted(name for one in kept for name in one.series_names))


def jobs() -> tuple[str, ...]:
    """Scrape jobs, in the catalogue's order."""
    return tuple(dict.fromkeys(exporter.job for exporter in exporters().values() if exporter.job != "*"))


@cache
def _by_series() -> Mapping[str, Metric]:
    return {name: metric for metric in metrics().values() for name in metric.series_names}


@cache
def _tables() -> tuple[Mapping[str, Exporter], Mapping[str, Metric]]:
    document = catalog_file("metrics")
    exporters_ = {name: record(Exporter, row, name=name) for name, row in document["exporters"].items()}
    metrics_ = {name: record(Metric, row, name=name) for name, row in document["metrics"].items()}
    return MappingProxyType(exporters_), MappingProxyType(metrics_)
