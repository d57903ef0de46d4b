"""Runs collectors, each in a process of its own and within its own time. Python 3.9 and newer."""

import os
import selectors
import signal
import time

from exposition import render
from host import started

METRICS = {
    "ultracluster_collector_up": ("gauge", "0 where a collector failed or was late"),
    "ultracluster_collector_seconds": ("gauge", "How long it took"),
    "ultracluster_collector_samples_refused": ("gauge", "Samples that were wrong, twice there, or too many"),
}
_BYTES = 16 << 20
MOST_LINES = {"slurm": 30_000}
"""Of a file; 5,000 for the others, which is more than any node has."""
_USERS = "training"
"""Whose lines are as many as people write: half of what a node may send, beyond which all is refused."""


def round_of(host, collectors, to):
    """Writes one file for each collector that says something, and one about them all.

    What fails or is late costs its own file, never another one: a collector that hangs is ended, and where
    the kernel does not end it, it is left behind, and is not started again before it is gone.

    Args:
        host: the node.
        collectors: modules with NAME, SECONDS, METRICS and `collect(host)`.
        to: folder that node_exporter reads.
    """
    _reap()
    stuck, running, told = host.kept("stuck"), {}, []
    for module in collectors:
        left = stuck.get(module.NAME)
        if isinstance(left, list) and len(left) == 2 and started(left[0]) == left[1] is not None:
            told.append((module.NAME, None, 0.0))
            continue
        stuck.pop(module.NAME, None)
        running[module.NAME] = _begin(host, module)
    for name, pid, text, seconds in _wait(running):
        if text is None and started(pid) is not None:
            stuck[name] = [pid, started(pid)]
        told.append((name, text, seconds))
    samples = []
    for name, text, seconds in sorted(told, key=lambda one: one[0]):
        refused, body = _split(text)
        write(to, f"{name}.prom", body)
        samples += [
            ("ultracluster_collector_up", {"collector": name}, text is not None),
            ("ultracluster_collector_seconds", {"collector": name}, round(seconds, 4)),
        ]
        if refused is not None:
            samples.append(("ultracluster_collector_samples_refused", {"collector": name}, refused))
    host.keep("stuck", stuck)
    write(to, "collectors.prom", render(METRICS, samples)[0])


def most_lines(host, name):
    """How many lines a collector's file may have."""
    most, budget = MOST_LINES.get(name, 5000), host.count("max_series_per_node")
    return min(most, budget // 2) if name == _USERS and budget else most


def write(to, name, text):
    """At once, for everybody to read; without a text the file goes, so that nothing old looks new."""
    path, new = to / name, to / f".{name}.{os.getpid()}"
    if not text:
        path.unlink(missing_ok=True)
        return
    to.mkdir(parents=True, exist_ok=True)
    new.write_bytes(text.encode("utf-8", "replace"))
    new.chmod(0o644)
    new.replace(path)


def _begin(host, module):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        os.set_blocking(reader, False)
        return pid, reader, time.monotonic(), module.SECONDS
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(reader)
        text, refused = render(module.METRICS, module.collect(host), most_lines(host, module.NAME))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(f"{refused}\n{text}".encode("utf-8", "replace"))
        status = 0
    except Exception as error:
        print(f"{module.NAME}: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(status)


def _wait(running):
    """(name, pid, text, seconds) as they end; no text of what failed or was late."""
    waiting, texts = selectors.DefaultSelector(), {}
    for name, (_, reader, _, _) in running.items():
        waiting.register(reader, selectors.EVENT_READ, name)
        texts[name] = b""
    open_ones = dict(running)
    while open_ones:
        until = min(began + seconds for _, _, began, seconds in open_ones.values())
        for key, _ in waiting.select(max(0, until - time.monotonic())):
            block = os.read(key.fd, 1 << 16)
            texts[key.data] += block
            if not block or len(texts[key.data]) > _BYTES:
                yield _ended(waiting, key.data, open_ones, texts, done=not block)
        for name in [*open_ones]:
            _, _, began, seconds = open_ones[name]
            if time.monotonic() >= began + seconds:
                yield _ended(waiting, name, open_ones, texts, done=False)


def _ended(waiting, name, open_ones, texts, done):
    pid, reader, began, _ = open_ones.pop(name)
    waiting.unregister(reader)
    os.close(reader)
    if not done:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            done = False
    good = False
    until = time.monotonic() + 1
    while True:
        try:
            gone, status = os.waitpid(pid, os.WNOHANG)
        except OSError:
            break
        if gone:
            good = done and status == 0
            break
        if time.monotonic() > until:
            break
        time.sleep(0.005)
    return name, pid, texts[name] if good else None, time.monotonic() - began


def _split(text):
    """How many samples were refused, and the lines; (None, "") without a text."""
    if text is None:
        return None, ""
    first, _, body = text.partition(b"\n")
    return int(first), body.decode("utf-8", "replace")


def _reap():
    """What was left behind, and has ended since."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:
        pass
