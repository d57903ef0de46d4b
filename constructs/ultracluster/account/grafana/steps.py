"""How a Grafana workspace differs from what an environment has there, and one request for each difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from ultracluster.account.grafana.client import Client, NewerFormError
from ultracluster.account.grafana.wanted import Wanted, content_of
from ultracluster.config.plain_text import visible
from ultracluster.metrics.boards import Board
from ultracluster.version import __version__

Action = Literal["create", "update", "same", "keep"]
Kind = Literal["folder", "data source", "board"]
MARK = "ultracluster"
"""Begins the message of each version of a board that we saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing in Grafana."""

    kind: Kind
    name: str
    action: Action
    """`keep`: a person's own work, which is left as it is."""
    details: tuple[str, ...] = ()
    """What differs, in words."""
    method: str = ""
    path: str = ""
    body: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def changes(self) -> bool:
        return self.action in ("create", "update")


def compare(client: Client, wanted: Wanted, *, overwrite: bool = False) -> list[Step]:
    """Return what there is to do, in the order in which it is done; nothing is changed.

    Args:
        client: of the workspace.
        wanted: what is to be there.
        overwrite: replace boards that a person has changed, too.

    Raises:
        GrafanaError: Grafana refused to say, or cannot be reached.
    """
    return [
        *(_source(client, source) for source in wanted.sources),
        *([_folder(client, wanted)] if wanted.boards else []),
        *(_board(client, wanted, board, overwrite=overwrite) for board in wanted.boards),
    ]


def carry_out(client: Client, step: Step) -> None:
    """One step, whole or not at all.

    Raises:
        ChangedMeanwhileError: somebody saved the same thing after `compare`.
        GrafanaError: Grafana refused, or cannot be reached.
    """
    client.send(step.method, step.path, step.body)


def _source(client: Client, body: dict[str, Any]) -> Step:
    name, uid = str(body["name"]), str(body["uid"])
    there = client.get(f"/api/datasources/uid/{uid}")
    if there is None:
        return Step(
            kind="data source", name=name, action="create", method="POST", path="/api/datasources", body=body
        )
    found = there
    if found.get("readOnly"):
        return Step(kind="data source", name=name, action="keep", details=("it is read-only in Grafana",))
    details = tuple(_differences(body, found))
    if not details:
        return Step(kind="data source", name=name, action="same")
    settings: dict[str, Any] = {**_object(found, "jsonData"), **body["jsonData"]}
    # left out, Grafana would reset it: a person's choice of the default data source stays
    sent = body | {"jsonData": settings, "isDefault": bool(found.get("isDefault"))}
    return Step(
        kind="data source",
        name=name,
        action="update",
        details=details,
        method="PUT",
        path=f"/api/datasources/uid/{uid}",
        body=sent,
    )


def _differences(body: dict[str, Any], there: dict[str, Any]) -> Iterator[str]:
    for key, value in body.items():
        if key == "jsonData":
            has = _object(there, "jsonData")
            yield from (
                f"{inner}: {has.get(inner)!r} becomes {one!r}"
                for inner, one in value.items()
                if has.get(inner) != one
            )
        elif there.get(key) != value:
            yield f"{key}: {there.get(key)!r} becomes {value!r}"


def _folder(client: Client, wanted: Wanted) -> Step:
    if client.get(f"/api/folders/{wanted.folder_uid}") is not None:
        return Step(kind="folder", name=wanted.folder_title, action="same")  # a person may have renamed it
    body = {"uid": wanted.folder_uid, "title": wanted.folder_title}
    return Step(
        kind="folder",
        name=wanted.folder_title,
        action="create",
        method="POST",
        path="/api/folders",
        body=body,
    )


def _board(client: Client, wanted: Wanted, board: Board, *, overwrite: bool) -> Step:
    name, mark = str(board["title"]), content_of(board)
    try:
        there = client.get(f"/api/dashboards/uid/{board['uid']}")
    except NewerFormError:
        # ours is always the classic one, which Grafana 13 leaves as it is until somebody saves it there
        person = "saved by somebody in Grafana 13's own form"
        if not overwrite:
            return Step(kind="board", name=name, action="keep", details=(person,))
        details = (f"{person}: replaced",)
        made = _save(name, "update", board, folder=wanted.folder_uid, version=0, details=details)
        return replace(made, body=made.body | {"overwrite": True})
    if there is None:
        return _save(name, "create", board, folder=wanted.folder_uid, version=0)
    found, meta = _object(there, "dashboard"), _object(there, "meta")
    person = _person(client, str(board["uid"]))
    if person and not overwrite:
        return Step(kind="board", name=name, action="keep", details=(person,))
    if content_of(found) == mark and not person:
        return Step(kind="board", name=name, action="same")
    details = (f"{person}: replaced",) if person else ("another board of ours is there",)
    # where it lies is a person's to choose
    folder = str(meta.get("folderUid") or "")
    return _save(name, "update", board, folder=folder, version=_number(found.get("version")), details=details)


def _save(
    name: str, action: Action, board: Board, *, folder: str, version: int, details: tuple[str, ...] = ()
) -> Step:
    body = {
        "dashboard": board | {"id": None, "version": version},
        "folderUid": folder,
        "message": f"{MARK} {__version__} {content_of(board)}",
        "overwrite": False,
    }
    return Step(
        kind="board",
        name=name,
        action=action,
        details=details,
        method="POST",
        path="/api/dashboards/db",
        body=body,
    )


def _person(client: Client, uid: str) -> str:
    """Return who saved a board last, in words; empty where that was this command.

    Not knowing is not a yes: where Grafana does not say, the board counts as a person's.
    """
    # a list before Grafana 11, an object since
    listed = client.get_list(f"/api/dashboards/uid/{uid}/versions?limit=1", "versions")
    if not listed or not isinstance(listed[0], dict):
        return "Grafana does not say who saved it last"
    last = cast("dict[str, Any]", listed[0])
    if str(last.get("message", "")).startswith(f"{MARK} "):
        return ""
    who = visible(str(last.get("createdBy") or "somebody"))
    when = visible(str(last.get("created") or "")[:16].replace("T", " "))
    return f"saved by {who}{f' at {when}' if when else ''}"


def _object(answer: dict[str, Any], key: str) -> dict[str, Any]:
    found = answer.get(key)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
