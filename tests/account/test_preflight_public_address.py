"""A HEAD request: its status, and an error where nothing answers."""

from __future__ import annotations

import urllib.error
import urllib.request
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from ultracluster.account.preflight.public_address import TIMEOUT, http_status


class Answer(SimpleNamespace):
    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *what: object) -> None:
        pass


def test_status_of_a_head_request(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []

    def there(call: Any, timeout: float) -> Answer:
        seen.append((call.get_method(), timeout))
        return Answer(status=200)

    def gone(call: Any, timeout: float) -> Answer:
        raise urllib.error.HTTPError(call.full_url, 404, "Not Found", Message(), None)

    monkeypatch.setattr(urllib.request, "urlopen", there)
    assert http_status("https://example.com/x") == 200 and seen == [("HEAD", TIMEOUT)]
    monkeypatch.setattr(urllib.request, "urlopen", gone)
    assert http_status("https://example.com/x") == 404
