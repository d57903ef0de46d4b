"""What the stand's Prometheus scrapes, and whom its alert manager tells."""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, kw_only=True)
class Notification:
    """A message as SNS was asked to publish it."""

    topic: str
    subject: str
    message: str
    attributes: dict[str, str]


@dataclass
class Shelf:
    """Expositions by path, and what was published."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    published: list[Notification] = field(default_factory=list[Notification])
    port: int = 0


@contextmanager
def serving(shelf: Shelf) -> Iterator[Shelf]:
    """Serves expositions by GET, and takes what a client of SNS publishes by POST."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            text = shelf.texts.get(self.path.lstrip("/"))
            self._answer(404 if text is None else 200, text or "", "text/plain; version=0.0.4")

        def do_POST(self) -> None:
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            shelf.published.append(_notification({name: values[0] for name, values in form.items()}))
            self._answer(200, _PUBLISHED, "text/xml")

        def _answer(self, status: int, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        shelf.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield shelf
        server.shutdown()


def _notification(form: dict[str, str]) -> Notification:
    """Out of the form of SNS's action `Publish` (query protocol)."""
    assert form["Action"] == "Publish", form
    attributes: dict[str, str] = {}
    for name, value in form.items():
        if name.startswith("MessageAttributes.entry.") and name.endswith(".Name"):
            attributes[value] = form[f"{name.removesuffix('Name')}Value.StringValue"]
    return Notification(
        topic=form["TopicArn"],
        subject=form.get("Subject", ""),
        message=form["Message"],
        attributes=attributes,
    )


_PUBLISHED = (
    '<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>'
    "567910cd-659e-55d4-8ccb-5aaf14679dc0</MessageId></PublishResult><ResponseMetadata><RequestId>"
    "d74b8436-ae13-5ab4-a9ff-ce54dfea72a0</RequestId></ResponseMetadata></PublishResponse>"
)
