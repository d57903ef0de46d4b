"""Downloads that go on where they stopped, over HTTPS and with nothing but the standard library."""

from __future__ import annotations

import http.client
import math
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from ultracluster.config.plain_text import clipped, visible
from ultracluster.software.address import refused

CHUNK = 1 << 20
ATTEMPTS = 5
OFFLINE_ATTEMPTS = 2
"""Where the name of the host is not known: most likely there is no network, and every file would wait."""
_PASSING = {408, 425, 429, 500, 502, 503, 504}  # worth another attempt
MOST_BYTES = 32 << 30
"""Of a file whose size is not known; the greatest installer has 5 GB."""

SMALL = 64 << 20
"""Of a key, a signature, the head of an index, or an answer of an API."""

Advance = Callable[[int], None]
Answer = TypeVar("Answer")


class DownloadError(Exception):
    """A file that could not be fetched; the message names the address and the last reason."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The answer of the server where it is the reason and will not pass: 404."""


class _PassingError(Exception):
    """What may pass: try again."""

    attempts = ATTEMPTS


@dataclass(frozen=True, slots=True)
class Limits:
    """State how long the downloads of one thread may take."""

    until: float = math.inf
    """When the last of them ends, by `clock`."""
    timeout: float = math.inf
    """Seconds without an answer after which an attempt ends."""
    attempts: int = ATTEMPTS
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.until - self.clock()


_LIMITS: ContextVar[Limits] = ContextVar("limits", default=Limits())  # noqa: B039 - frozen


@contextmanager
def limited(limits: Limits) -> Generator[None]:
    """Keep every download of this thread within `limits`."""
    token = _LIMITS.set(limits)
    try:
        yield
    finally:
        _LIMITS.reset(token)


@dataclass(frozen=True, slots=True)
class Head:
    """Describe what a server answers before the content."""

    size: int | None
    """Bytes of the whole file; None where the server does not say."""
    first: bytes
    """The first bytes, at most 512."""

    @property
    def is_page(self) -> bool:
        """Return whether a web page came in place of a file."""
        start = self.first.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return start.startswith((b"<!doctype html", b"<html"))


class _TooLongError(Exception):
    """More arrives than the file has."""


class _NoRangeError(_PassingError):
    """Describe what is here already is longer than what the server has."""


class _NoHostError(_PassingError):
    """The name of the host could not be looked up."""

    attempts = OFFLINE_ATTEMPTS


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to addresses that would be fetched from, but never from HTTPS to plain HTTP."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: object,
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        secure = urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https"
        if why := "is not HTTPS" if secure else refused(newurl):
            raise DownloadError(f"{req.full_url} redirects to {visible(clipped(newurl))}, which {why}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # pyright: ignore[reportArgumentType]


_opener = urllib.request.build_opener(_SafeRedirects)


def download(
    url: str,
    target: Path,
    *,
    size: int | None = None,
    most: int = MOST_BYTES,
    advance: Advance | None = None,
    timeout: float = 60,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Fetch `url` into `target`, which appears when it is complete and not before.

    What an earlier run left in `<target>.part` is continued when the server can and still has the same
    file (its ETag). Completeness is judged by the length that the server names, and by `size` if known.

    Args:
        size: bytes that the file must have; no more than that is ever written.
        most: bytes that are written at most where no size is known.
        advance: called with the bytes of each part that arrives, and a negative number when what was
            there is thrown away.
        timeout: seconds without an answer after which an attempt ends.
        pause: waits between attempts (5 s, then twice as long each time, at most 60 s).

    Raises:
        DownloadError: it cannot be fetched, or has another size.
        OSError: the disk is full or not writable.
    """
    _check(url)
    target.parent.mkdir(parents=True, exist_ok=True)
    _repeated(
        url,
        lambda seconds: _fetch(
            url, target, size, most if size is None else size, advance or _nothing, seconds
        ),
        timeout,
        pause,
    )


def head(url: str, *, timeout: float = 60, pause: Callable[[float], None] = time.sleep) -> Head:
    """Size and first bytes of the file at `url`: a request for a range, and no more is read than that.

    Raises:
        DownloadError: it is not there, or nothing answers.
    """
    _check(url)
    return _repeated(url, lambda seconds: _head(url, seconds), timeout, pause)


def _repeated(
    url: str, attempt: Callable[[float], Answer], timeout: float, pause: Callable[[float], None]
) -> Answer:
    """The answer of an attempt, repeated while what fails may pass and time is left."""
    limits, count = _LIMITS.get(), 0
    while True:
        if count:
            pause(max(0, min(5 * 2 ** (count - 1), 60, limits.left)))
        if limits.left <= 0:
            raise DownloadError(f"{url}: no answer in the time that was given")
        count += 1
        try:
            return attempt(min(timeout, limits.timeout, limits.left))
        except _PassingError as error:
            if count >= min(error.attempts, limits.attempts):
                raise DownloadError(f"{url}: {error} ({count} attempts)") from None


def _head(url: str, timeout: float) -> Head:
    headers = {"Accept-Encoding": "identity", "Range": "bytes=0-511"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked
    with _answers(url, request, timeout) as answer:
        first = answer.read(512)
        length = answer.headers.get("Content-Length", "")
        if answer.status == 206:
            length = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return Head(int(length) if length.isdigit() else None, first)


@contextmanager
def _answers(
    url: str, request: urllib.request.Request, timeout: float
) -> Generator[http.client.HTTPResponse]:
    """A server's answer; what goes wrong until it is read is a `DownloadError`, or what may pass."""
    try:
        with _opener.open(request, timeout=timeout) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:
                raise _NoRangeError("the server cannot continue what is here") from None
            if error.code in _PASSING:
                raise _PassingError(f"HTTP {error.code} {error.reason}") from None
            raise DownloadError(f"{url}: HTTP {error.code} {error.reason}", error.code) from None
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        reason = getattr(error, "reason", "") or error or type(error).__name__
        if isinstance(reason, socket.gaierror):
            host = urlsplit(url).hostname
            raise _NoHostError(f"{host} could not be looked up ({reason.strerror}): no network?") from None
        raise _PassingError(str(reason)) from None


def _fetch(url: str, target: Path, size: int | None, most: int, advance: Advance, timeout: float) -> None:
    part, tag = _beside(target, ".part"), _beside(target, ".etag")
    if part.exists() and part.stat().st_size > most:
        _forget(part, tag)
    part_size = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})  # noqa: S310 - checked
    if part_size:
        request.add_header("Range", f"bytes={part_size}-")
        if tag.exists():
            request.add_header("If-Range", tag.read_text())
    limits = _LIMITS.get()
    try:
        with _answers(url, request, timeout) as answer:
            start = part_size if _continues(answer, part_size) else 0
            if part_size and not start:
                advance(-part_size)
            _remember(tag, answer.headers.get("ETag"))
            length = answer.headers.get("Content-Length")
            whole = start + int(length) if length and length.isdigit() else None
            if size is not None and whole is not None and whole != size:
                _forget(part, tag)
                raise DownloadError(f"{url} has {whole:,} bytes, not {size:,}")
            with part.open("ab" if start else "wb") as file:
                room = most - start
                while chunk := answer.read1(min(CHUNK, room + 1)):
                    if limits.left <= 0:
                        raise DownloadError(f"{url}: too slow for the time that was given")
                    if len(chunk) > room:
                        raise _TooLongError
                    file.write(chunk)
                    room -= len(chunk)
                    advance(len(chunk))
    except _TooLongError:
        _forget(part, tag)
        raise DownloadError(f"{url} sends more than {most:,} bytes") from None
    except _NoRangeError:  # what is here is no beginning of what the server has now
        advance(-part_size)
        _forget(part, tag)
        raise
    arrived = part.stat().st_size
    expected = whole if whole is not None else size
    if expected is not None and arrived < expected:
        raise _PassingError(f"cut after {arrived:,} of {expected:,} bytes")
    if size is not None and arrived != size:
        _forget(part, tag)
        raise DownloadError(f"{url} has {arrived:,} bytes, not {size:,}")
    part.replace(target)
    tag.unlink(missing_ok=True)


def _check(url: str) -> None:
    if why := refused(url):
        raise DownloadError(f"{visible(clipped(url))} {why}")


def _continues(answer: http.client.HTTPResponse, size: int) -> bool:
    return answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {size}-")


def _remember(tag: Path, value: str | None) -> None:
    if value and not value.startswith("W/"):
        tag.write_text(value)
    else:
        tag.unlink(missing_ok=True)


def _forget(part: Path, tag: Path) -> None:
    part.unlink(missing_ok=True)
    tag.unlink(missing_ok=True)


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(target.name + suffix)


def _nothing(_: int) -> None:
    """No progress is shown."""
