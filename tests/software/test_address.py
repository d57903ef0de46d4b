"""Addresses: a lock file and a download judge them alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from ultracluster.software.address import refused
from ultracluster.software.artifact import Url
from ultracluster.supply.downloads import DownloadError, download

ELSEWHERE = (
    "http://127.0.0.1:@evil.example/x",
    "https://user:word@makers.example/x",
    "https://127.0.0.1@evil.example/x",
    "https://makers.example\\@evil.example/x",
    "https://m\u0430kers.example/x",
    "https://makers.example/a b",
    "https://makers.example/\x1b]52;c;eA==\x07",
    "https://makers.example:99999/x",
    "https://[::1",
    "https:///x",
    "http://127.0.0.1.evil.example/x",
    "ftp://makers.example/x",
    "file:///etc/passwd",
)


@pytest.mark.parametrize("url", ELSEWHERE)
def test_a_lock_file_and_a_download_refuse_the_same_addresses(url: str, tmp_path: Path) -> None:
    """Their word for the host may differ from that of the library that connects."""
    with pytest.raises(DownloadError) as caught:
        download(url, tmp_path / "x")
    with pytest.raises(ValidationError):
        TypeAdapter(Url).validate_python(url)

    assert refused(url)
    assert "\x1b" not in str(caught.value)


def test_both_take_an_address() -> None:
    for url in (
        "https://makers.example/a/b-1.0+x~y_z.deb?v=1#f",
        "http://127.0.0.1:8080/x",
        "https://a.example",
    ):
        assert refused(url) == ""
        assert TypeAdapter(Url).validate_python(url) == url
