"""What a board is: rows, variables, and where its panels lie.

The classic JSON model with schemaVersion 39, Grafana 10.4's, is what every version that Amazon Managed Grafana still offers
for new boards (10.4, 12.4, 13) takes: a newer Grafana migrates it when it loads it. Sources: Amazon Managed Grafana user guide,
"Differences between Grafana versions" and "Provisioned dashboards and the version 2 schema".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grafana_foundation_sdk.builders import (
    dashboard,
)
from grafana_foundation_sdk.models import dashboard as models

from tools.dashboards.panels import CLOUDWATCH, PROMETHEUS, TAG, Builder
from tools.dashboards.queries import CLUSTER

SCHEMA = 39

Needs = Literal[
    "all", "gpu", "neuron", "efa", "lustre", "slurm", "kubernetes", "kueue", "health", "release", "lease"
]  # fmt: skip
"""What a cluster must have for a row to show anything; `ultracluster.metrics.boards` leaves the others out."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A row of a board."""

    title: str
    needs: Needs
    panels: Sequence[Builder]
    closed: bool = False
    """Opened by a click: for what only some clusters of that kind have."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """One board.

    Attributes:
        name: of its file, and part of its uid.
        variables: of `cluster`, `node_group`, `node` and `job`, which it has; `cluster` always.
    """

    name: str
    title: str
    description: str
    sections: Sequence[Section]
    variables: Sequence[Literal["node_group", "node", "job", "file_system"]] = ("node_group", "node")
    since: str = "now-3h"

    def build(self) -> models.Dashboard:
        """The board as the SDK's object."""
        made = (
            dashboard.Dashboard(self.title)
            .uid(f"{TAG}-{self.name}")
            .description(self.description)
            .tags([TAG])
            .time(self.since, "now")
            .refresh("1m")
            .timezone("browser")
            .tooltip(models.DashboardCursorSync.CROSSHAIR)
            .editable()
            .link(
                dashboard.DashboardLink("Other boards")
                .type(models.DashboardLinkType.DASHBOARDS)
                .tags([TAG])
                .as_dropdown(True)
                .include_vars(True)
                .keep_time(True)
            )
        )
        for variable in _variables(self.variables, cloudwatch="file_system" in self.variables):
            made.with_variable(variable)
        for section in self.sections:
            row = dashboard.Row(section.title)
            if section.closed:
                for panel in section.panels:
                    row = row.with_panel(panel)
            made.with_row(row)
            for panel in () if section.closed else section.panels:
                made.with_panel(panel)
        board = made.build()
        board.schema_version = SCHEMA
        panels = [one for top in board.panels or () for one in (top, *getattr(top, "panels", ()))]
        for number, panel in enumerate(panels, 1):
            panel.id_val = number
        _lay_out(panels)
        return board


def _lay_out(panels: Sequence[models.Panel | models.RowPanel]) -> None:
    """Panels from the left to the right, as far as the 24 columns go. The SDK lets the last one stick out."""
    x = y = tallest = 0
    for panel in panels:
        place = panel.grid_pos or models.GridPos()
        if panel.type_val == "row" or x + place.w > 24:
            x, y, tallest = 0, y + tallest, 0
        place.x, place.y = x, y
        x, tallest = x + place.w, max(tallest, place.h)
        panel.grid_pos = place


def _variables(names: Sequence[str], *, cloudwatch: bool) -> list[Builder]:
    chosen: list[Builder] = [dashboard.DatasourceVariable("prometheus").label("Metrics").type("prometheus")]
    if cloudwatch:
        chosen.append(dashboard.DatasourceVariable("cloudwatch").label("CloudWatch").type("cloudwatch"))
    chosen.append(_asked("cluster", "Cluster", "label_values(up, cluster)"))
    if "node_group" in names:
        chosen.append(
            _asked("node_group", "Node group", f"label_values(up{{{CLUSTER}}}, node_group)", many=True)
        )
    if "node" in names:
        query = f'label_values(up{{{CLUSTER},node_group=~"$node_group"}}, node)'
        chosen.append(_asked("node", "Node", query, many=True))
    if "job" in names:
        query = f'label_values({{__name__=~"ultracluster_slurm_job_node|ultracluster_training_step",{CLUSTER}}}, job_id)'
        chosen.append(_asked("job", "Job", query).sort(models.VariableSort.NUMERICAL_DESC))
    if "file_system" in names:
        chosen.append(
            dashboard.QueryVariable("file_system")
            .label("FSx file system")
            .datasource(CLOUDWATCH)
            .query("dimension_values(default, AWS/FSx, FreeDataStorageCapacity, FileSystemId)")
            .refresh(models.VariableRefresh.ON_DASHBOARD_LOAD)
            .multi(True)
            .include_all(True)
        )
    return chosen


def _asked(name: str, label: str, query: str, *, many: bool = False) -> Any:
    made = (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(PROMETHEUS)
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )
    if many:
        made = made.multi(True).include_all(True).all_value(".*")
        made = made.current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
    return made
