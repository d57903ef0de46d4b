"""Real downloads from a local server that breaks off, moves, changes and dies."""

from __future__ import annotations

import http.client
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ultracluster.supply import downloads
from ultracluster.supply.downloads import DownloadError, download

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * 8000  # 2 MB


@pytest.fixture
def target(tmp_path: Path, shop: Any) -> Path:
    shop.files["tool.bin"] = CONTENT
    return tmp_path / "cache" / "tool.bin"


def test_a_file_arrives_whole_and_alone(shop: Any, target: Path) -> None:
    seen: list[int] = []
    download(shop.url("tool.bin"), target, size=len(CONTENT), advance=seen.append)
    assert target.read_bytes() == CONTENT
    assert sum(seen) == len(CONTENT)
    assert [file.name for file in target.parent.iterdir()] == ["tool.bin"]


def test_a_cut_download_goes_on_where_it_stopped(shop: Any, target: Path) -> None:
    shop.cut_after["tool.bin"] = 700_000
    waits: list[float] = []
    download(shop.url("tool.bin"), target, pause=waits.append)
    assert target.read_bytes() == CONTENT
    assert [asked for _, asked, _ in shop.sent] == ["", "bytes=700000-"]
    assert shop.bytes_of("tool.bin") == len(CONTENT)
    assert waits == [5]


def test_an_earlier_run_is_continued(shop: Any, target: Path) -> None:
    target.parent.mkdir()
    target.with_name("tool.bin.part").write_bytes(CONTENT[:1_000_000])
    download(shop.url("tool.bin"), target)
    assert target.read_bytes() == CONTENT
    assert shop.bytes_of("tool.bin") == len(CONTENT) - 1_000_000


def test_a_file_that_changed_meanwhile_is_fetched_anew(shop: Any, target: Path) -> None:
    shop.cut_after["tool.bin"] = 700_000
    with pytest.raises(RuntimeError):
        download(shop.url("tool.bin"), target, pause=_stop)
    shop.files["tool.bin"] = b"new" * 500_000
    seen: list[int] = []
    download(shop.url("tool.bin"), target, advance=seen.append)
    assert target.read_bytes() == b"new" * 500_000
    assert seen[0] == -700_000


def _stop(_: float) -> None:
    raise RuntimeError("killed")


def test_a_server_that_cannot_continue_sends_all(shop: Any, target: Path) -> None:
    shop.ranges = False
    shop.cut_after["tool.bin"] = 700_000
    download(shop.url("tool.bin"), target, pause=lambda _: None)
    assert target.read_bytes() == CONTENT


def test_leftovers_longer_than_the_file_are_thrown_away(shop: Any, target: Path) -> None:
    target.parent.mkdir()
    target.with_name("tool.bin.part").write_bytes(CONTENT + b"more")
    download(shop.url("tool.bin"), target, pause=lambda _: None)
    assert target.read_bytes() == CONTENT


def test_what_passes_is_waited_for(shop: Any, target: Path) -> None:
    shop.status["tool.bin"] = [503, 429, 500]
    waits: list[float] = []
    download(shop.url("tool.bin"), target, pause=waits.append)
    assert waits == [5, 10, 20]
    assert target.read_bytes() == CONTENT


def test_what_does_not_pass_is_said_at_once(shop: Any, target: Path) -> None:
    with pytest.raises(DownloadError, match=r"other\.bin: HTTP 404"):
        download(shop.url("other.bin"), target, pause=_stop)
    assert not target.exists()


def test_a_dead_server_is_an_error_after_all_attempts(shop: Any, target: Path) -> None:
    waits: list[float] = []
    with pytest.raises(DownloadError, match=r"refused.*5 attempts"):
        download("http://127.0.0.1:9/tool.bin", target, pause=waits.append)
    assert waits == [5, 10, 20, 40]


def test_another_size_than_recorded_is_refused_before_it_is_fetched(shop: Any, target: Path) -> None:
    with pytest.raises(DownloadError, match="2,048,000 bytes, not 5"):
        download(shop.url("tool.bin"), target, size=5)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("url", ["http://example.com/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_only_https_is_fetched(url: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="is not HTTPS"):
        download(url, tmp_path / "x")


def test_https_never_falls_back_to_http() -> None:
    request = urllib.request.Request("https://example.com/tool")
    with pytest.raises(DownloadError, match="is not HTTPS"):
        downloads._SafeRedirects().redirect_request(  # pyright: ignore[reportPrivateUsage]
            request, None, 302, "", http.client.HTTPMessage(), "http://example.com/tool"
        )


@pytest.mark.parametrize("elsewhere", ["file:///etc/passwd", "ftp://x.example/x", "http://x.example/x"])
def test_a_redirect_leads_to_no_other_kind_of_address(elsewhere: str, shop: Any, target: Path) -> None:
    shop.redirects["tool.bin"] = elsewhere

    with pytest.raises(DownloadError, match=r"redirect|not allowed"):
        download(shop.url("tool.bin"), target, pause=_stop)
    assert not target.exists()


def test_no_more_is_written_than_the_file_has(shop: Any, target: Path) -> None:
    """A server that names no length could fill the disk."""
    shop.names_length = False

    with pytest.raises(DownloadError, match="sends more than 10 bytes"):
        download(shop.url("tool.bin"), target, size=10, pause=_stop)
    assert not target.exists()
    assert list(target.parent.iterdir()) == []


def test_what_an_earlier_run_left_beyond_the_size_is_thrown_away(shop: Any, target: Path) -> None:
    target.parent.mkdir()
    target.with_name("tool.bin.part").write_bytes(CONTENT * 2)

    download(shop.url("tool.bin"), target, size=len(CONTENT))

    assert target.read_bytes() == CONTENT


def test_a_file_of_unknown_size_has_a_bound(shop: Any, target: Path) -> None:
    with pytest.raises(DownloadError, match="sends more than 1,000 bytes"):
        download(shop.url("tool.bin"), target, most=1000, pause=_stop)
    assert not target.exists()


def test_a_full_disk_is_not_retried(shop: Any, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(downloads, "_fetch", full)
    with pytest.raises(OSError, match="No space left"):
        download(shop.url("tool.bin"), target, pause=_stop)


def test_without_a_network_it_is_said_soon(tmp_path: Path) -> None:
    """Nine files that are each tried for 75 seconds are a command that hangs."""
    waits: list[float] = []
    with pytest.raises(DownloadError, match=r"nowhere\.invalid could not be looked up .*: no network\?"):
        download("https://nowhere.invalid/tool.bin", tmp_path / "tool.bin", pause=waits.append)
    assert waits == [5]
