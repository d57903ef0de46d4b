"""The answer of a custom resource to CloudFormation; the CDK copies it beside each function that needs it."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

ATTEMPTS, PAUSE_S = 4, 3


def answer(event: Mapping[str, Any], status: str, why: str, *, physical_id: str) -> None:
    """Answer CloudFormation, which waits for it (its User Guide, "Custom resource response objects").

    Args:
        event: the request.
        status: `SUCCESS` or `FAILED`.
        why: the reason of a failure.
        physical_id: of the resource, where the request has none yet.

    Raises:
        OSError: no attempt reached it.
        ValueError: the address is not S3's.
    """
    body = {
        "Status": status,
        "Reason": why[:1000] or "done",
        "PhysicalResourceId": event.get("PhysicalResourceId") or physical_id,
        **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")},
    }
    url = str(event["ResponseURL"])
    at = urlsplit(url)
    if at.scheme != "https" or not (at.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn")):
        raise ValueError("the address of the answer is not S3's")
    data = json.dumps(body).encode()
    put = urllib.request.Request(url, data, {"Content-Type": ""}, method="PUT")  # noqa: S310 (https)
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(put, timeout=20):  # noqa: S310
                return
        except OSError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(PAUSE_S * (attempt + 1))
