"""A local HTTP server of artifacts that can break in the ways real ones do."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Shop:
    """What the server has, and how it behaves."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    address: str = ""
    cut_after: dict[str, int] = field(default_factory=dict[str, int])
    """Bytes after which the next answer for a file ends early, once."""
    status: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Answers given before the file itself."""
    redirects: dict[str, str] = field(default_factory=dict[str, str])
    ranges: bool = True
    names_length: bool = True
    """Whether answers say how long they are; else they end where the connection does."""
    sent: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    """Path, Range header and bytes of each answer."""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"

    def bytes_of(self, name: str) -> int:
        return sum(count for path, _, count in self.sent if path == name)


@contextmanager
def serving(shop: Shop) -> Iterator[Shop]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            asked = self.headers.get("Range", "")
            if name in shop.redirects:
                self.send_response(302)
                self.send_header("Location", shop.redirects[name])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            codes = shop.status.get(name, [])
            if codes or name not in shop.files:
                self.send_error(codes.pop(0) if codes else 404)
                return
            content = shop.files[name]
            tag = f'"{hash(content)}"'
            start = 0
            if asked and shop.ranges and self.headers.get("If-Range", tag) == tag:
                start = int(re.findall(r"bytes=(\d+)-", asked)[0])
            if start >= len(content) > 0 and start:
                self.send_error(416)
                return
            body = content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("ETag", tag)
            if shop.names_length:
                self.send_header("Content-Length", str(len(body)))
            else:
                self.close_connection = True
            self.end_headers()
            cut = shop.cut_after.pop(name, None)
            part = body if cut is None else body[:cut]
            shop.sent.append((name, asked, len(part)))
            with suppress(BrokenPipeError, ConnectionResetError):  # who asked has seen enough
                self.wfile.write(part)
            if cut is not None:
                self.wfile.flush()
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            """Tests look at `sent`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    shop.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield shop
    finally:
        server.shutdown()
        server.server_close()
