"""Which addresses are fetched from: one judgement for what a lock file says and for what is downloaded."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
"""Plain HTTP only from this machine, where a rehearsal or a test serves it."""
PATTERN = r"^(https://[A-Za-z0-9.-]+|http://127\.0\.0\.1)(:[0-9]{1,5})?(/[!-~]*)?$"
_FORM = re.compile(PATTERN.strip("^$"))


def refused(url: str) -> str:
    """Why nothing is fetched from an address; empty where it may be.

    The host is what stands between `//` and the first of `/`, `?`, `#`: a name and a port. Credentials before
    an `@` are refused, as what looks like the host there is none: `http://127.0.0.1:@evil.example/x`.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        return f"is no address: {error}"
    if "@" in parts.netloc:
        return "holds credentials before an @"
    if parts.scheme != "https" and not (parts.scheme == "http" and host == LOOPBACK):
        return "is not HTTPS"
    if not _FORM.fullmatch(url) or not host or port == 0:
        return "is not the address of a file: ASCII characters without spaces, host and path"
    return ""
