"""Grafana's HTTP API on 127.0.0.1, as AWS documents it, and AWS's own API, which hands out its tokens.

It takes no token that the other has not made, or has deleted, keeps versions, and fails when told to.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from hyperpod_service import account, answer, refusal

REGION = "us-east-2"
WORKSPACE = "g-0123456789"
METRICS = "arn:aws:aps:us-east-2:111122223333:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
Failure = Callable[[str, str], tuple[int, Any] | None]
"""By method and path: a status with an answer, or None for what would be answered anyway."""


@dataclass
class Grafana:
    """What is in the workspace, and what was asked of it."""

    url: str = ""
    tokens: set[str] = field(default_factory=set[str])
    sources: dict[str, dict[str, Any]] = field(default_factory=dict[str, Any])
    folders: dict[str, dict[str, Any]] = field(default_factory=dict[str, Any])
    boards: dict[str, dict[str, Any]] = field(default_factory=dict[str, Any])
    """`dashboard`, `folder`, and `versions` with their messages, by uid."""
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    fail: Failure = lambda method, path: None
    newer: bool = True
    """Whether versions of boards come in an object, as from Grafana 11 on."""

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [one for one in self.asked if one[0] != "GET"]

    def save(self, uid: str, *, by: str, message: str = "", **changed: Any) -> None:
        """A person saves a board in the browser."""
        there = self.boards[uid]
        there["dashboard"] = {**there["dashboard"], **changed, "version": there["dashboard"]["version"] + 1}
        self._versioned(there, message, by)

    def respond(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        self.asked.append((method, path))
        if failed := self.fail(method, path):
            return failed
        if token not in self.tokens:
            return 401, {"message": "Unauthorized"}
        parts = path.strip("/").split("/")
        match [method, *parts]:
            case ["GET", "api", "datasources", "uid", uid]:
                return self._found(self.sources, uid)
            case ["POST", "api", "datasources"]:
                if any(one["name"] == body["name"] for one in self.sources.values()):
                    return 409, {"message": "data source with the same name already exists"}
                self.sources[body["uid"]] = {"isDefault": False, **body}
                return 200, {"message": "Datasource added"}
            case ["PUT", "api", "datasources", "uid", uid]:
                self.sources[uid] = body
                return 200, {"message": "Datasource updated"}
            case ["GET", "api", "folders", uid]:
                return self._found(self.folders, uid)
            case ["POST", "api", "folders"]:
                self.folders[body["uid"]] = body
                return 200, body
            case ["GET", "api", "dashboards", "uid", uid]:
                if uid not in self.boards:
                    return 404, {"message": "Dashboard not found"}
                there = self.boards[uid]
                return 200, {"dashboard": there["dashboard"], "meta": {"folderUid": there["folder"]}}
            case ["GET", "api", "dashboards", "uid", uid, "versions"]:
                versions = self.boards[uid]["versions"][::-1][:1]
                return 200, {"versions": versions} if self.newer else versions
            case ["POST", "api", "dashboards", "db"]:
                return self._saved(body)
        return 404, {"message": "Not found"}

    def _found(self, there: dict[str, Any], uid: str) -> tuple[int, Any]:
        return (200, there[uid]) if uid in there else (404, {"message": "not found"})

    def _saved(self, body: dict[str, Any]) -> tuple[int, Any]:
        board = body["dashboard"]
        there = self.boards.get(board["uid"])
        if body["folderUid"] and body["folderUid"] not in self.folders:
            return 400, {"message": "folder not found"}
        if there and there["dashboard"]["version"] != board["version"] and not body["overwrite"]:
            return 412, {
                "message": "The dashboard has been changed by someone else",
                "status": "version-mismatch",
            }
        kept = there or {"versions": []}
        kept |= {"dashboard": board | {"id": 7, "version": board["version"] + 1}, "folder": body["folderUid"]}
        self._versioned(kept, body["message"], "sa-ultracluster")
        self.boards[board["uid"]] = kept
        return 200, {"status": "success", "uid": board["uid"]}

    @staticmethod
    def _versioned(board: dict[str, Any], message: str, by: str) -> None:
        board["versions"].append(
            {
                "version": board["dashboard"]["version"],
                "message": message,
                "createdBy": by,
                "created": "2026-11-22T10:00:00Z",
            }
        )


@contextmanager
def grafana() -> Iterator[Grafana]:
    """One that listens on a free port of this machine."""
    there = Grafana()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, said = there.respond(self.command, urlsplit(self.path).path, token, body)
            if said == "hang":
                time.sleep(3)
                return
            text = said if isinstance(said, bytes) else json.dumps(said).encode()
            missing = 7 if said == b"{" else 0
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", f"{there.url}/elsewhere")
            self.send_header("Content-Length", str(len(text) + missing))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 # names of the base class

        def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 # a name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    there.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()


class Aws:
    """AWS's side of the workspace: botocore's own models judge every request and answer."""

    def __init__(self, there: Grafana, *, environment: str, version: str = "12.4") -> None:
        self.grafana = there
        self.account = account(REGION)
        self.tokens: dict[str, dict[str, Any]] = {}
        self.made = 0
        self.accounts: list[dict[str, str]] = []
        self.admins: list[tuple[str, str]] = []
        self.refuse: dict[str, Exception] = {}
        """Errors by operation."""
        self.errors: list[dict[str, Any]] = []
        """Of UpdatePermissions."""
        self.workspace: dict[str, Any] = {
            "id": WORKSPACE, "status": "ACTIVE", "grafanaVersion": version, "dataSources": [],
            "created": datetime.now(UTC), "modified": datetime.now(UTC),
            "endpoint": there.url.removeprefix("http://"),
            "authentication": {"providers": ["AWS_SSO"]},
        }  # fmt: skip
        self.outputs = {"GrafanaId": WORKSPACE, "WorkspaceArn": METRICS}
        self.stack = f"{environment}-observability"
        client = self.account.client("grafana")
        for operation in (
            "DescribeWorkspace", "ListWorkspaceServiceAccounts", "CreateWorkspaceServiceAccount",
            "ListWorkspaceServiceAccountTokens", "CreateWorkspaceServiceAccountToken",
            "DeleteWorkspaceServiceAccountToken", "ListPermissions", "UpdatePermissions",
        ):  # fmt: skip
            answer(client, operation, self._reply(operation))
        answer(self.account.client("cloudformation"), "DescribeStacks", self._stacks)

    def _reply(self, operation: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            if error := self.refuse.get(operation):
                raise error
            if asked["workspaceId"] != WORKSPACE:
                raise refusal("ResourceNotFoundException", "no such workspace", operation)
            return getattr(self, f"_{operation}")(asked)

        return reply

    def _DescribeWorkspace(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"workspace": self.workspace}

    def _ListWorkspaceServiceAccounts(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"serviceAccounts": self.accounts, "workspaceId": WORKSPACE}

    def _CreateWorkspaceServiceAccount(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        one = {"id": "3", "name": asked["name"], "isDisabled": "false", "grafanaRole": asked["grafanaRole"]}
        self.accounts.append(one)
        return {
            "id": "3",
            "name": asked["name"],
            "grafanaRole": asked["grafanaRole"],
            "workspaceId": WORKSPACE,
        }

    def _ListWorkspaceServiceAccountTokens(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {
            "serviceAccountTokens": list(self.tokens.values()),
            "serviceAccountId": "3",
            "workspaceId": WORKSPACE,
        }

    def _CreateWorkspaceServiceAccountToken(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.made += 1
        identity = str(self.made)
        self.add_token(identity, asked["name"], seconds=asked["secondsToLive"])
        self.grafana.tokens.add(f"glsa_{identity}")
        made = {"id": identity, "name": asked["name"], "key": f"glsa_{identity}"}
        return {"serviceAccountToken": made, "serviceAccountId": "3", "workspaceId": WORKSPACE}

    def add_token(self, identity: str, name: str, *, seconds: float) -> None:
        now = datetime.now(UTC)
        row = {"id": identity, "name": name, "createdAt": now, "expiresAt": now + timedelta(seconds=seconds)}
        self.tokens[identity] = row

    def _DeleteWorkspaceServiceAccountToken(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        del self.tokens[asked["tokenId"]]
        self.grafana.tokens.discard(f"glsa_{asked['tokenId']}")
        return {"tokenId": asked["tokenId"], "serviceAccountId": "3", "workspaceId": WORKSPACE}

    def _ListPermissions(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        users = [{"user": {"id": one, "type": kind}, "role": "ADMIN"} for kind, one in self.admins]
        return {"permissions": users}

    def _UpdatePermissions(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if self.errors:
            return {"errors": self.errors}
        for one in asked["updateInstructionBatch"]:
            assert (one["action"], one["role"]) == ("ADD", "ADMIN")
            self.admins += [(user["type"], user["id"]) for user in one["users"]]
        return {"errors": []}

    def _stacks(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["StackName"] != self.stack:
            raise refusal("ValidationError", f"Stack with id {asked['StackName']} does not exist")
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs.items()]
        made = {
            "StackName": self.stack,
            "StackStatus": "CREATE_COMPLETE",
            "CreationTime": 0,
            "Outputs": outputs,
        }
        return {"Stacks": [made]}
