"""What an environment has in Grafana: its folder, its data sources, its boards."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, cast

from ultracluster.account.grafana.workspace import Metrics, Workspace
from ultracluster.metrics.boards import TAG, Board, boards, deployed, uid
from ultracluster.model.cluster import Cluster
from ultracluster.model.observability import observability_of

CONTENT = "content-"
"""Begins the tag that says which board of ours was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All of one environment."""

    environment: str
    folder_uid: str
    folder_title: str
    sources: tuple[dict[str, Any], ...]
    """Bodies of data sources, as Grafana takes them."""
    boards: tuple[Board, ...] = field(default=())


def wanted(cluster: Cluster, workspace: Workspace, metrics: Metrics | None, *, runbooks: str = "") -> Wanted:
    """Return what is to be in a workspace.

    Args:
        cluster: what the environment comes to.
        workspace: its version decides how Grafana asks for metrics.
        metrics: where they are kept; None where there are none, and no boards either.
        runbooks: URL of the runbooks, for links to them.
    """
    name = cluster.name
    settings = observability_of(cluster)
    cloudwatch: dict[str, Any] = {
        "uid": uid(name, "aws"),
        "name": f"Ultracluster {name}: CloudWatch",
        "type": "cloudwatch",
        "access": "proxy",
        "jsonData": {"authType": "default", "defaultRegion": cluster.region},
    }
    sources: list[dict[str, Any]] = [cloudwatch]
    made: list[Board] = []
    if metrics:
        seconds = settings.scrape_seconds if settings else 30
        sources.insert(0, _prometheus(name, workspace.metrics_plugin, metrics, seconds))
        made = [
            _marked(
                deployed(
                    board,
                    title,
                    name,
                    prometheus=(workspace.metrics_plugin, sources[0]["uid"]),
                    cloudwatch=cloudwatch["uid"],
                )
            )
            for title, board in boards(cluster, runbooks=runbooks).items()
        ]
    return Wanted(
        environment=name,
        folder_uid=uid(name, "boards"),
        folder_title=f"Ultracluster {name}",
        sources=tuple(sources),
        boards=tuple(made),
    )


def content_of(board: Board) -> str:
    """The mark of the board of ours that was written; empty where it has none."""
    tags: Any = board.get("tags")
    listed = cast("list[Any]", tags) if isinstance(tags, list) else []
    return next((str(one) for one in listed if str(one).startswith(CONTENT)), "")


def _prometheus(environment: str, plugin: str, metrics: Metrics, seconds: int) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "httpMethod": "POST",
        "sigV4Auth": True,
        "sigV4AuthType": "default",  # the workspace's own role
        "sigV4Region": metrics.region,
        "timeInterval": f"{seconds}s",
    }
    if metrics.role_arn:
        settings["sigV4AssumeRoleArn"] = metrics.role_arn
    return {
        "uid": uid(environment, "metrics"),
        "name": f"Ultracluster {environment}: metrics",
        "type": plugin,
        "access": "proxy",
        "url": metrics.url,
        "jsonData": settings,
    }


def _marked(board: Board) -> Board:
    text = json.dumps(board, sort_keys=True)
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    return board | {"tags": [*board["tags"], f"{CONTENT}{mark}"]}


__all__ = ["CONTENT", "TAG", "Wanted", "content_of", "wanted"]
