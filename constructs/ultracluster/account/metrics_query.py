"""Questions in PromQL to a workspace of Amazon Managed Service for Prometheus, or to any other Prometheus.

boto3 has no operation for them: the workspace has Prometheus' own HTTP API, for requests that are signed
(SigV4, service `aps`). Permission: aps:QueryMetrics; with a role, sts:AssumeRole on it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast
from urllib.parse import urlencode

from botocore.auth import SigV4Auth  # pyright: ignore[reportMissingTypeStubs]
from botocore.awsrequest import AWSRequest  # pyright: ignore[reportMissingTypeStubs]
from botocore.credentials import Credentials  # pyright: ignore[reportMissingTypeStubs]
from botocore.httpsession import URLLib3Session  # pyright: ignore[reportMissingTypeStubs]
from botocore.utils import (  # pyright: ignore[reportMissingTypeStubs]
    get_environ_proxies,  # pyright: ignore[reportUnknownVariableType]
)

from ultracluster.account.aws import Account, AccountError, plain_errors
from ultracluster.config.observability import remote_write_url, workspace_place
from ultracluster.config.plain_text import visible

ATTEMPTS = 3
PAUSE_SECONDS = 0.5
CONNECT_SECONDS, READ_SECONDS = 5, 20
MOST_BYTES = 4 * 2**20
"""Of an answer: the questions that are asked here have a few rows."""
_AGAIN = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an answer with its value now."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question found."""

    samples: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()
    """What Prometheus says of an answer that may lack something."""


class MetricsQuery:
    """One workspace that is asked. May be shared by threads."""

    def __init__(
        self, account: Account, workspace_arn: str, *, role_arn: str | None = None, url: str | None = None
    ) -> None:
        """Nothing is asked yet.

        Args:
            account: whose credentials sign.
            workspace_arn: in any Region and account.
            role_arn: to be assumed first, for a workspace of another account.
            url: where to ask, without `/api/v1/query`; that of the workspace by default.
        """
        self._account, self._role = account, role_arn
        self._region = workspace_place(workspace_arn)[0]
        base = url or remote_write_url(workspace_arn).removesuffix("/api/v1/remote_write")
        self._url = f"{base}/api/v1/query"
        self._http: Any = URLLib3Session(
            timeout=(CONNECT_SECONDS, READ_SECONDS), proxies=get_environ_proxies(self._url)
        )
        self._lock = Lock()
        self._signer: Any = None

    def ask(self, expression: str) -> Answer:
        """The value of an expression now.

        Raises:
            AccountError: nobody answered in time, or the answer is a refusal or no answer; one line says why.
        """
        body = urlencode({"query": expression, "timeout": f"{READ_SECONDS}s"})
        for attempt in range(1, ATTEMPTS + 1):
            response = self._send(body)
            if response.status_code not in _AGAIN or attempt == ATTEMPTS:
                return _read(int(response.status_code), bytes(response.content or b""))
            time.sleep(PAUSE_SECONDS * attempt)
        raise AssertionError("unreachable")

    def _send(self, body: str) -> Any:
        with plain_errors("the Prometheus workspace: "):
            request = AWSRequest(
                method="POST",
                url=self._url,
                data=body.encode(),
                headers={"Content-Type": "application/x-www-form-urlencoded"},
            )
            signer: Any = SigV4Auth(self._credentials(), "aps", self._region)
            signer.add_auth(request)
            return self._http.send(request.prepare())

    def _credentials(self) -> Any:
        if not self._role:
            return self._account.credentials()
        with self._lock:
            if self._signer is None:
                sts = self._account.client("sts")
                with plain_errors(f"role {self._role} of the workspace: "):
                    given = sts.assume_role(RoleArn=self._role, RoleSessionName="ultracluster-doctor")
                keys = given["Credentials"]
                self._signer = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
            return self._signer


def _read(status: int, content: bytes) -> Answer:
    """The samples of an answer of Prometheus' query API (`/api/v1/query`, a vector or a number).

    Raises:
        AccountError: it is a refusal, or no such answer.
    """
    if len(content) > MOST_BYTES:
        raise AccountError(f"the Prometheus workspace answered with {len(content):,} bytes: too many to read")
    document = _document(content)
    if status != 200 or document.get("status") != "success":
        raise AccountError(f"the Prometheus workspace refuses (HTTP {status}): {_why(document, status)}")
    try:
        data = document["data"]
        scalar = data["resultType"] == "scalar"
        rows: list[Any] = [{"metric": {}, "value": data["result"]}] if scalar else data["result"]
        samples = tuple(_sample(row) for row in rows)
        said = tuple(visible(str(one)) for key in ("warnings", "infos") for one in document.get(key) or ())
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise AccountError("the Prometheus workspace: its answer is not one of Prometheus") from None
    return Answer(tuple(sample for sample in samples if not math.isnan(sample.value)), said)


def _document(content: bytes) -> dict[str, Any]:
    """JSON's object; an empty one of anything else, as a proxy's page."""
    try:
        document: Any = json.loads(content)
    except ValueError:
        return {}
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def _sample(row: Any) -> Sample:
    labels = {str(key): visible(" ".join(str(value).split())) for key, value in row["metric"].items()}
    return Sample(labels, float(row["value"][1]))


def _why(document: Mapping[str, Any], status: int) -> str:
    named = document.get("error") or document.get("message") or document.get("Message") or ""
    words = visible(" ".join(str(named).split()))[:300]
    hints = {
        403: "allow aps:QueryMetrics on the workspace (ultracluster permissions ENVIRONMENT --policy)",
        404: "there is no such workspace in that Region and account",
        429: "it is throttled: ask again in a minute",
    }
    return "; ".join(part for part in (words, hints.get(status, "")) if part) or "it gives no reason"
