"""A stand-in of the instance metadata service (version 2): answers what files of a folder hold.

instance_metadata.py FOLDER [PORT]      prints its port
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "AQAEAH-token"  # noqa: S105
CATEGORIES = "/latest/meta-data/"


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """On loopback; a category is the file of its path, with `/` written as `.`."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

        def answer(self, status: int, text: str = "") -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def do_PUT(self) -> None:
            asked = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            self.answer(200 if asked else 400, TOKEN if asked else "")

        def do_GET(self) -> None:
            if self.headers["X-aws-ec2-metadata-token"] != TOKEN:
                return self.answer(401)
            file = folder / self.path.removeprefix(CATEGORIES).replace("/", ".")
            if (folder / "broken").exists():
                return self.answer(503)
            return self.answer(200, file.read_text()) if file.is_file() else self.answer(404)

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    made = server(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    sys.stdout.write(f"{made.server_port}\n")
    sys.stdout.flush()
    made.serve_forever()
