"""A port of a job's node on this machine, through the person's own session: no port is opened for it.

On the node a small program runs as a step of the person's own job, and connects to the node's own 127.0.0.1.
Its lines and ours travel through the terminal of a session: `KEY NUMBER open`, `KEY NUMBER data LENGTH
BASE64` and `KEY NUMBER close`, for each connection.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import selectors
import shlex
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from time import monotonic

from ultracluster.jobs.queue.person_session import PersonSession

ALIVE = 60.0
"""Seconds after which a line that says nothing keeps this session from ending before the shell's."""
UP = 600
"""Bytes of a line to the node, whose terminal takes lines of 4096 characters."""
PROGRAM = """
import base64, os, selectors, socket, sys
port, key = int(sys.argv[1]), sys.argv[2].encode()
chosen, open_ones, rest = selectors.DefaultSelector(), {}, b""
def say(*words):
    line = b" ".join((key,) + words) + b"\\n"
    while line:
        line = line[os.write(1, line):]
def end(number, tell=True):
    one = open_ones.pop(number, None)
    if one is not None:
        chosen.unregister(one)
        one.close()
    if tell:
        say(b"%d" % number, b"close")
chosen.register(0, selectors.EVENT_READ, None)
say(b"0", b"ready")
while True:
    for ready, _ in chosen.select():
        if ready.data is not None:
            try:
                data = ready.fileobj.recv(12000)
            except OSError:
                data = b""
            if data:
                say(b"%d" % ready.data, b"data", b"%d" % len(data), base64.b64encode(data))
            elif ready.data in open_ones:
                end(ready.data)
            continue
        typed = os.read(0, 65536)
        if not typed:
            sys.exit(0)
        *lines, rest = (rest + typed).split(b"\\n")
        for line in lines:
            words = line.split()
            if len(words) < 3 or words[0] != key:
                continue
            number = int(words[1])
            try:
                if words[2] == b"open":
                    one = socket.create_connection(("127.0.0.1", port), 10)
                    one.settimeout(30)
                    open_ones[number] = one
                    chosen.register(one, selectors.EVENT_READ, number)
                elif words[2] == b"data" and number in open_ones:
                    data = base64.b64decode(words[4])
                    if len(data) != int(words[3]):
                        raise ValueError
                    open_ones[number].sendall(data)
                elif words[2] == b"close":
                    end(number, False)
            except (OSError, ValueError, IndexError):
                end(number)
"""
"""What runs on the node: Python 3.6 or newer."""


def node_command(job_id: str, port: int, key: str) -> str:
    """Return what runs the program as a step of the job, on its first node."""
    words = [
        "srun", f"--jobid={job_id}", "--overlap", "--nodes=1", "--ntasks=1", "--relative=0", "--quiet",
        "python3", "-c", PROGRAM, str(port), key,
    ]  # fmt: skip
    return f"exec {shlex.join(words)}"


@dataclass
class Forward:
    """A listener on this machine's 127.0.0.1.

    Attributes:
        session: where the node's program took the loop's place.
        key: with which its lines begin.
    """

    session: PersonSession
    key: str
    local: int
    _open: dict[int, socket.socket] = field(default_factory=dict[int, socket.socket])
    _number: int = 0

    def listen(self) -> socket.socket:
        """The listener.

        Raises:
            OSError: the port is taken, or may not be used.
        """
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", self.local))
            listener.listen(16)
        except OSError:
            listener.close()
            raise
        return listener

    def run(self, listener: socket.socket, stop: Event, ready: Callable[[], None]) -> None:
        """Carry what comes, until `stop` is set.

        Args:
            ready: called once the node's program is there.

        Raises:
            SessionEndedError: the session, or the job, has ended.
        """
        chosen = selectors.DefaultSelector()
        chosen.register(listener, selectors.EVENT_READ, 0)
        chosen.register(self.session.terminal, selectors.EVENT_READ, -1)
        said = monotonic()
        try:
            while not stop.is_set():
                if monotonic() - said > ALIVE:
                    said = monotonic()
                    self.session.type(f"{self.key} 0 alive\n")
                for one, _ in chosen.select(0.3):
                    if one.data == -1:
                        self._from_node(self.session.hear(0), chosen, ready)
                    elif one.data == 0:
                        self._accept(listener, chosen)
                    else:
                        self._to_node(one.data, chosen)
                self._from_node(self.session.hear(0), chosen, ready)  # what came while we typed
        finally:
            for number in list(self._open):
                self._close(number, chosen)
            chosen.close()

    def _accept(self, listener: socket.socket, chosen: selectors.BaseSelector) -> None:
        connection, _ = listener.accept()
        connection.settimeout(30)
        self._number += 1
        self._open[self._number] = connection
        chosen.register(connection, selectors.EVENT_READ, self._number)
        self.session.type(f"{self.key} {self._number} open\n")

    def _to_node(self, number: int, chosen: selectors.BaseSelector) -> None:
        connection = self._open.get(number)
        if connection is None:
            return
        try:
            data = connection.recv(UP)
        except OSError:
            data = b""
        if data:
            packed = base64.b64encode(data).decode()
            self.session.type(f"{self.key} {number} data {len(data)} {packed}\n")
        else:
            self._close(number, chosen)
            self.session.type(f"{self.key} {number} close\n")

    def _from_node(self, lines: list[str], chosen: selectors.BaseSelector, ready: Callable[[], None]) -> None:
        for line in lines:
            words = line.split()
            if len(words) < 3 or words[0] != self.key or not words[1].isdigit():
                continue
            number = int(words[1])
            if words[2] == "ready":
                ready()
            elif words[2] == "data" and len(words) == 5 and number in self._open:
                try:
                    data = base64.b64decode(words[4], validate=True)
                    if str(len(data)) != words[3]:
                        raise ValueError
                    self._open[number].sendall(data)
                except (OSError, ValueError, binascii.Error):  # half a stream is no stream
                    self._close(number, chosen)
                    self.session.type(f"{self.key} {number} close\n")
            elif words[2] == "close":
                self._close(number, chosen)

    def _close(self, number: int, chosen: selectors.BaseSelector) -> None:
        connection = self._open.pop(number, None)
        if connection is not None:
            with contextlib.suppress(KeyError, ValueError):
                chosen.unregister(connection)
            connection.close()


__all__ = ["Forward", "node_command"]
