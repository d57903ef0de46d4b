"""Boards for Grafana, as the cluster of an environment can fill them.

The files in `dashboards/` are generated from typed sources (tools/dashboards) and hold every row there is.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

from ultracluster.metrics.facts import facts_of
from ultracluster.model.cluster import Cluster
from ultracluster.model.observability import collects
from ultracluster.model.team_shares import scheduler_of

Board = dict[str, Any]
"""Grafana's classic JSON model, schemaVersion 39."""

TAG = "ultracluster"
FOLDER = Path(__file__).parent / "dashboards"
MOST_LETTERS = 40
"""Of a uid (Amazon Managed Grafana User Guide, "Dashboard API")."""


def boards(cluster: Cluster, *, runbooks: str = "") -> dict[str, Board]:
    """Boards by name, without the rows that a cluster of this kind leaves empty, for any Grafana.

    Data sources are chosen at the top of each board. None where no metrics of ours are collected.

    Args:
        cluster: what the environment comes to.
        runbooks: URL before `/<alert>.md`, to which alerts then lead; a folder of the repository is none.
    """
    if not collects(cluster):
        return {}
    haves = _haves(cluster)
    found: dict[str, Board] = {}
    for name, row in _index().items():
        board = _without_rows(
            _file(name), {title for title, need in row["rows"].items() if need not in haves}
        )
        if board["panels"]:
            if runbooks.startswith("https://"):
                board = _with_runbooks(board, runbooks.rstrip("/"))
            found[name] = _of_cluster(board, cluster.cluster_name)
    return found


def uid(environment: str, name: str) -> str:
    """A board's uid in a workspace that several environments may share."""
    made = f"{environment}-uc-{name}"
    assert len(made) <= MOST_LETTERS, made  # an environment has 30 letters at most
    return made


def deployed(
    board: Board, name: str, environment: str, *, prometheus: tuple[str, str], cloudwatch: str
) -> Board:
    """A board for one workspace: its own uid and links, and data sources that need not be chosen.

    Args:
        board: of `boards`.
        name: its name there.
        environment: whose it is.
        prometheus: type and uid of the data source of metrics.
        cloudwatch: uid of the CloudWatch data source.
    """
    kind, metrics = prometheus
    text = json.dumps(board)
    text = text.replace(
        json.dumps({"type": "prometheus", "uid": "${prometheus}"}), json.dumps({"type": kind, "uid": metrics})
    )
    text = text.replace('"uid": "${cloudwatch}"', json.dumps({"uid": cloudwatch})[1:-1])
    text = text.replace(f"/d/{TAG}-", f"/d/{uid(environment, '')}")
    made = cast("Board", json.loads(text))
    variables: list[dict[str, Any]] = made["templating"]["list"]
    made["templating"]["list"] = [variable for variable in variables if variable["type"] != "datasource"]
    for link in made["links"]:
        link["tags"] = [f"{TAG}-{environment}" if tag == TAG else tag for tag in link["tags"]]
    made |= {"uid": uid(environment, name), "tags": [TAG, f"{TAG}-{environment}"]}
    made["title"] = f"{made['title']} ({environment})"
    return made


def _haves(cluster: Cluster) -> frozenset[str]:
    kueue = {"kueue"} if scheduler_of(cluster) == "kueue" else set[str]()
    return facts_of(cluster, runbooks="").haves | kueue | {"all"}


def _without_rows(board: Board, titles: set[str]) -> Board:
    """The board without these rows, what was below them moved up."""
    kept: list[dict[str, Any]] = []
    up, bottom, dropping = 0, 0, False
    for panel in board["panels"]:
        place: dict[str, int] = panel["gridPos"]
        if panel["type"] == "row":
            if dropping:
                up += place["y"] - bottom
            dropping, bottom = panel["title"] in titles, place["y"]
        if not dropping:
            kept.append(panel | {"gridPos": place | {"y": place["y"] - up}})
    return board | {"panels": kept}


def _with_runbooks(board: Board, url: str) -> Board:
    """The board with a link from each alert's name in a table to its runbook."""
    link = {"title": "Runbook", "url": f"{url}/${{__value.raw}}.md", "targetBlank": True}
    override = {
        "matcher": {"id": "byName", "options": "alertname"},
        "properties": [{"id": "links", "value": [link]}],
    }
    for panel in board["panels"]:
        if panel["title"] == "Alerts that fire":
            panel["fieldConfig"]["overrides"].append(override)
    return board


def _of_cluster(board: Board, cluster: str) -> Board:
    chosen = {"selected": True, "text": cluster, "value": cluster}
    variables = [
        one | {"current": chosen} if one["name"] == "cluster" else one for one in board["templating"]["list"]
    ]
    return board | {"templating": {"list": variables}}


@cache
def _text(name: str) -> str:
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def _file(name: str) -> Board:
    return json.loads(_text(name))


def _index() -> dict[str, dict[str, Any]]:
    return json.loads(_text("index"))
