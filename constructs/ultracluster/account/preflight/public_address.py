"""A public address: whether something is there, asked without credentials."""

from __future__ import annotations

import urllib.error
import urllib.request

TIMEOUT = 10
"""Seconds for the answer of one HEAD request, from the machine that preflight runs on."""


def http_status(url: str) -> int:
    """The status that a HEAD request gets.

    Raises:
        OSError: no answer within `TIMEOUT` seconds.
    """
    call = urllib.request.Request(url, method="HEAD")  # noqa: S310 - https, from the catalogue
    try:
        with urllib.request.urlopen(call, timeout=TIMEOUT) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
