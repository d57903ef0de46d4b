"""A headless Chromium, driven over a pipe by its DevTools protocol: no driver and no library besides."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from needs import path_of

SECONDS = 300.0
"""The most that one answer may take."""


def chromium() -> str:
    """Its program; the test is skipped where it is not installed."""
    return path_of("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One page of one browser."""

    def __init__(self, program: str) -> None:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        asked, self._out = os.pipe()
        self._in, answered = os.pipe()
        line = ["bash", "-c", f'exec "$@" 3<&{asked} 4>&{answered}', "chromium", program]
        line += ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        line += ["--no-first-run", "--remote-debugging-pipe", "--disable-background-networking"]
        line += [f"--user-data-dir={self._home.name}", "--force-color-profile=srgb", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(line, pass_fds=(asked, answered), stdout=quiet, stderr=quiet)
        os.close(asked)
        os.close(answered)
        self._bytes = b""
        self._last = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        """What the browser told besides its answers, since the page was opened."""
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._out)
        os.close(self._in)
        self._home.cleanup()

    def __call__(self, method: str, **arguments: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        self._last += 1
        told = {"id": self._last, "method": method, "params": arguments}
        told |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(told).encode() + b"\0")
        while True:
            found = self._message()
            if found.get("id") == self._last:
                assert "error" not in found, found["error"]
                return found["result"]
            self.events.append(found)

    def open(self, file: Path, width: int, *, dark: bool = False, query: str = "") -> None:
        """Open a file on a screen so many pixels wide, as tall as the page.

        Args:
            query: what stands behind the `?` of its address.
        """
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media="screen", features=[scheme])
        self._size(width, 800)
        self.events.clear()
        self("Page.navigate", url=f"{file.as_uri()}?{query}" if query else file.as_uri())
        end = time.monotonic() + SECONDS
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            assert time.monotonic() < end, f"{file} did not load"
            self.events.append(self._message())
        self.fit(width)

    def fit(self, width: int) -> None:
        """Make the screen as tall as the page is now."""
        self._size(width, self.ask("document.documentElement.scrollHeight"))

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """What the page looks like, as PNG."""
        file.write_bytes(base64.b64decode(self("Page.captureScreenshot", format="png")["data"]))

    @property
    def complaints(self) -> list[Any]:
        """What the console, the log and the page itself reported."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event.get("method") in kinds]

    @property
    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        sent = (one for one in self.events if one.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def _size(self, width: int, height: int) -> None:
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._bytes:
            assert select.select([self._in], [], [], SECONDS)[0], "the browser does not answer"
            more = os.read(self._in, 1 << 20)
            assert more, "the browser ended"
            self._bytes += more
        message, _, self._bytes = self._bytes.partition(b"\0")
        return json.loads(message)
