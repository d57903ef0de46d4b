"""A workspace of Amazon Managed Service for Prometheus on this machine: looks at signatures, and answers."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEYS = {"AKIDEXAMPLE": "own secret", "ASIAEXAMPLE": "the role's secret"}
GOOD = {"status": "success", "data": {"resultType": "vector", "result": []}}


def vector(*rows: tuple[dict[str, str], str], **more: Any) -> dict[str, Any]:
    result = [{"metric": labels, "value": [1, value]} for labels, value in rows]
    return {"status": "success", "data": {"resultType": "vector", "result": result}, **more}


class Workspace:
    """Answers as AMP does: what it is given, in this order, the last one for ever, or what a Prometheus says.

    Whose signature is wrong is refused.
    """

    def __init__(self, *answers: tuple[int, Any], prometheus: str = "", region: str = "eu-west-1") -> None:
        self.answers = list(answers) or [(200, GOOD)]
        self.prometheus, self.region = prometheus, region
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.wait = 0.0

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.headers.append(dict(handler.headers))
        refused = self.refused(handler, body)
        self.asked.append(parse_qs(body.decode())["query"][0])
        time.sleep(self.wait)
        if self.prometheus:
            status, answer = self.forwarded(body)
        else:
            status, answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if refused:
            status, answer = 403, {"message": refused}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def forwarded(self, body: bytes) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"{self.prometheus}/api/v1/query", data=body, timeout=20) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def refused(self, handler: BaseHTTPRequestHandler, body: bytes) -> str:
        """As AWS does: the same request, signed again with the key that it names, has the same signature."""
        given = handler.headers["Authorization"]
        scope = given.partition("Credential=")[2].partition(",")[0]
        key, _, region, service, _ = scope.split("/")
        request = AWSRequest(
            "POST", f"http://{handler.headers['Host']}{handler.path}", data=body,
            headers={"Content-Type": handler.headers["Content-Type"]},
        )  # fmt: skip
        request.context["timestamp"] = handler.headers["X-Amz-Date"]
        signer = SigV4Auth(
            Credentials(key, KEYS.get(key, ""), handler.headers["X-Amz-Security-Token"]), service, region
        )
        if token := handler.headers["X-Amz-Security-Token"]:
            request.headers["X-Amz-Security-Token"] = token
        request.headers["X-Amz-Date"] = handler.headers["X-Amz-Date"]
        text = signer.canonical_request(request)
        right = signer.signature(signer.string_to_sign(request, text), request)
        return (
            ""
            if given.endswith(f"Signature={right}") and (region, service) == (self.region, "aps")
            else "bad"
        )


@contextmanager
def serving(workspace: Workspace) -> Iterator[Workspace]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            workspace.take(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    workspace.url = f"http://127.0.0.1:{server.server_port}/workspaces/ws-1"
    try:
        yield workspace
    finally:
        server.shutdown()
        server.server_close()
