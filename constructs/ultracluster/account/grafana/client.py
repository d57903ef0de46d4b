"""Grafana's own HTTP API: one request, its answer, and what went wrong in plain words."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any, NoReturn, cast

from ultracluster.account.aws import AccountError
from ultracluster.account.grafana.token import LIFE
from ultracluster.account.grafana.workspace import Workspace
from ultracluster.config.plain_text import visible

TIMEOUT = 20
"""Seconds for an answer."""
PAUSES = (1.0, 3.0)
"""Seconds to wait before each further attempt, where an answer says that one may succeed."""
LARGEST = 16 * 2**20
"""Bytes of an answer that are read."""
TRANSIENT = (429, 502, 503, 504)


class GrafanaError(AccountError):
    """Grafana refused a request, or could not be reached; the message is one line."""


class ChangedMeanwhileError(GrafanaError):
    """Somebody else saved it after it was read."""


class NewerFormError(GrafanaError):
    """A board that this API does not give out, because it was saved in Grafana 13's own form."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect leads to a page for logging in, or elsewhere: the token goes to neither."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


class Client:
    """Requests to one workspace, in the name of a token."""

    def __init__(self, workspace: Workspace, token: str) -> None:
        """Nothing is asked yet.

        Args:
            workspace: whose API it is.
            token: of a service account.
        """
        self.workspace = workspace
        self._token = token
        self._opener = urllib.request.build_opener(_NoRedirect)

    def get(self, path: str) -> dict[str, Any] | None:
        """The object that is there; None where nothing is.

        Raises:
            NewerFormError: a board that is there in a form which Grafana gives out elsewhere.
            GrafanaError: it refused, or could not be reached.
        """
        found = self._ask("GET", path, None)
        if found is not None and not isinstance(found, dict):
            raise GrafanaError(f"GET {path}: Grafana answered something else than an object")
        return cast("dict[str, Any] | None", found)

    def get_list(self, path: str, key: str) -> list[Any]:
        """A list, or the one that an object has under a key; empty where there is neither.

        Raises:
            GrafanaError: it refused, or could not be reached.
        """
        found = self._ask("GET", path, None)
        listed: Any = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else found
        return cast("list[Any]", listed) if isinstance(listed, list) else []

    def send(self, method: str, path: str, body: dict[str, Any]) -> Any:
        """The answer to a request that changes something.

        Raises:
            ChangedMeanwhileError: somebody saved the same thing after it was read.
            GrafanaError: it refused, or could not be reached.
        """
        return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        for pause in (*PAUSES, None):
            try:
                return self._once(method, path, body)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 404 and method == "GET":
                        return None
                    # what was sent may have been done before the gateway gave up: only reading is asked again
                    again = error.code == 429 or (method == "GET" and error.code in TRANSIENT)
                    if pause is None or not again:
                        self._refused(error, method, path)
            except (OSError, HTTPException) as error:  # an answer that breaks off is no OSError
                if pause is None or method != "GET":
                    raise self._silent(error, method, path) from None
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _once(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        request = urllib.request.Request(  # noqa: S310 # https, of a workspace that AWS named
            f"{self.workspace.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Accept": "application/json",
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self._token}",
                "User-Agent": "ultracluster",
            },
        )
        with self._opener.open(request, timeout=TIMEOUT) as answer:
            text: bytes = answer.read(LARGEST)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise GrafanaError(
                f"{method} {path}: what answered is not Grafana, or broke off: look at proxies{self._hint()}"
            ) from None

    def _refused(self, error: urllib.error.HTTPError, method: str, path: str) -> NoReturn:
        said, status = _said(error)
        where = f"Grafana refused {method} {path} ({error.code})"
        if error.code == 401:
            raise GrafanaError(
                f"{where}: the token is not taken any more: its {LIFE // 60} minutes are over, or somebody "
                "deleted it: run the command again"
            )
        if error.code == 403:
            raise GrafanaError(f"{where}: {said or 'forbidden'}{self._hint()}")
        if error.code == 406 and method == "GET":
            raise NewerFormError(f"{where}: {said}")
        if error.code == 412 and status == "version-mismatch":
            raise ChangedMeanwhileError(
                f"{where}: somebody saved it after it was read: run the command again"
            )
        if error.code in (409, 412):
            raise GrafanaError(
                f"{where}: {said or status}: rename or delete the one that is there, in Grafana"
            )
        if 300 <= error.code < 400:
            raise GrafanaError(
                f"{where}: it leads to another address, where the token is not sent{self._hint()}"
            )
        raise GrafanaError(f"{where}: {said or 'without a reason'}")

    def _silent(self, error: Exception, method: str, path: str) -> GrafanaError:
        reason = getattr(error, "reason", None) or error
        why = (
            "no answer in time"
            if isinstance(reason, TimeoutError)
            else visible(str(reason)) or type(error).__name__
        )
        return GrafanaError(f"{method} {path}: Grafana cannot be reached: {why}{self._hint()}")

    def _hint(self) -> str:
        restricted = self.workspace.restricted
        return f"; {restricted}: run the command from there" if restricted else ""


def _said(error: urllib.error.HTTPError) -> tuple[str, str]:
    """Grafana's message and status word; empty where its answer is a page."""
    try:
        answer = json.loads(error.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return "", ""
    if not isinstance(answer, dict):
        return "", ""
    found = cast("dict[str, Any]", answer)
    return visible(" ".join(str(found.get("message", "")).split())), str(found.get("status", ""))
