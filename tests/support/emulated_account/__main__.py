"""`python -m emulated_account`: the account on a free port of loopback, until it is ended."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from emulated_account import adapters, engine
from emulated_account.adapter import ACCOUNT


class Handler(MotoRequestHandler):
    """Requests are not logged; an operation that moto does not have is one line, not a traceback."""

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002
        last = (message % args).strip().splitlines()[-1]
        print(f"not judged: {last}" if "NotImplementedError" in last else message % args, flush=True)


def lines() -> int:
    return sum(
        len(one.read_text(encoding="utf-8").splitlines()) for one in Path(__file__).parent.rglob("*.py")
    )


def main() -> int:
    arguments = argparse.ArgumentParser(prog="emulated_account")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument(
        "--ready", type=int, help="descriptor that gets the account's address when it answers"
    )
    arguments.add_argument("--address", type=Path, help="file that gets it, too")
    options = arguments.parse_args()
    engine.install()
    application = DomainDispatcherApplication(create_backend_app)
    try:
        server = make_server("127.0.0.1", options.port, application, threaded=True, request_handler=Handler)
    except (OSError, SystemExit):
        print(
            f"port {options.port} of 127.0.0.1 is in use: name another, or 0 for a free one", file=sys.stderr
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    address = f"http://localhost:{server.server_port}"
    os.environ["AWS_ENDPOINT_URL"] = address
    print(
        f"account {ACCOUNT} at {address}: moto, and ours are {lines()} lines for "
        f"{len(adapters.ADAPTERS)} types ({', '.join(sorted(adapters.ADAPTERS))}) and custom resources",
        flush=True,
    )
    if options.address:
        options.address.write_text(address, encoding="utf-8")
    if options.ready:
        with os.fdopen(options.ready, "w", encoding="utf-8") as pipe:
            pipe.write(f"{address}\n")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    if engine.without_adapter:
        print(f"failed, no adapter: {', '.join(sorted(engine.without_adapter))}", file=sys.stderr)
    sys.stdout.flush()
    # Threads of requests that nobody waits for must not hold the end up.
    os._exit(1 if engine.without_adapter else 0)


if __name__ == "__main__":
    sys.exit(main())
