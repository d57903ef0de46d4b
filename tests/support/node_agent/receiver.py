"""A workspace for agents: an HTTP server that takes Prometheus' remote write, and may go away and come back.

It reads version 1 of the protocol (prometheus/prometheus, prompb/remote.proto and types.proto): snappy's
block format around a WriteRequest. Metadata is left out.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Labels = frozenset[tuple[str, str]]
STALE = (0x7FF0000000000002).to_bytes(8, "little")
"""The NaN by which Prometheus says that a series ended (model/value/value.go, StaleNaN)."""


class Receiver:
    """Takes samples while `status` is 200; else answers with it. Use as a context manager."""

    def __init__(self) -> None:
        self.status = 200
        self.answers: defaultdict[int, int] = defaultdict(int)
        """How many requests were answered with each status."""
        self.authorizations: set[str] = set()
        """Scheme and scope of the signatures: what precedes the signed headers."""
        self.samples: defaultdict[Labels, dict[int, float]] = defaultdict(dict)
        """Value by time in milliseconds, by series."""
        self.ended: dict[Labels, int] = {}
        """When a series was last said to have ended: its exporter was gone, or too slow for one scrape."""
        self.late = 0
        """Samples that came after a younger one of their series."""
        self._youngest: dict[Labels, int] = {}
        self._labels: dict[bytes, Labels] = {}
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.take(body, dict(self.headers.items()))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/workspaces/ws-0123/api/v1/remote_write"

    def __enter__(self) -> Receiver:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, body: bytes, headers: Mapping[str, str]) -> int:
        with self._lock:
            status = self.status
            self.answers[status] += 1
            self.authorizations.add(str(headers.get("Authorization", "")).partition(", SignedHeaders")[0])
            if status == 200:
                for labels, at, value in self._written(uncompressed(body)):
                    self.late += at < self._youngest.get(labels, at)
                    self._youngest[labels] = at
                    if value is None:
                        self.ended[labels] = at
                    else:
                        self.samples[labels][at] = value
        return status

    def _written(self, message: bytes) -> Iterator[tuple[Labels, int, float | None]]:
        """Series, milliseconds and value; no value where the series ended."""
        for number, series in fields(message):
            if number != 1 or not isinstance(series, bytes):
                continue
            parts = list(fields(series))
            texts = b"".join(part for number, part in parts if number == 1 and isinstance(part, bytes))
            labels = self._labels.get(texts)
            if labels is None:
                labels = self._labels[texts] = frozenset(
                    _label(part) for number, part in parts if number == 1 and isinstance(part, bytes)
                )
            for number, part in parts:
                if number == 2 and isinstance(part, bytes):
                    sample = dict(fields(part))
                    raw = sample.get(1, 0)
                    value = struct.unpack("<d", raw)[0] if isinstance(raw, bytes) else 0.0
                    at = sample.get(2, 0)
                    assert isinstance(at, int)
                    yield labels, at, None if raw == STALE else value

    # --- what tests ask ---

    def named(self, name: str, **labels: str) -> dict[Labels, dict[int, float]]:
        """Series with this name and at least these labels."""
        wanted = {("__name__", name), *labels.items()}
        with self._lock:
            return {one: dict(samples) for one, samples in self.samples.items() if wanted <= one}

    def names(self) -> set[str]:
        with self._lock:
            return {dict(labels)["__name__"] for labels in self.samples}


def until(condition: Any, seconds: float = 300) -> None:
    """Wait for a condition; it says nothing of why it does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)


def _label(message: bytes) -> tuple[str, str]:
    parts = {number: part.decode() for number, part in fields(message) if isinstance(part, bytes)}
    return parts[1], parts.get(2, "")


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protobuf message; fixed-size numbers are left as bytes."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}[kind]
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def uncompressed(data: bytes) -> bytes:
    """A block of snappy (google/snappy, format_description.txt)."""
    size, at = _varint(data, 0)
    out = bytearray()
    end = len(data)
    while at < end:
        tag = data[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length = int.from_bytes(data[at : at + more], "little")
                at += more
            length += 1
            out += data[at : at + length]
            at += length
            continue
        if kind == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            more = {2: 2, 3: 4}[kind]
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + more], "little")
            at += more
        start = len(out) - offset
        if offset >= length:
            out += out[start : start + length]
        else:
            for number in range(length):
                out.append(out[start + number])
    assert len(out) == size
    return bytes(out)
