"""main.py VERB: the health loop, from where Slurm and systemd call it.

prolog   before a job: status 75 where the node is drained, with its reason, and the job has to go elsewhere
epilog   after a job that failed: the same look
program  Slurm's HealthCheckProgram: the look of every few minutes
watch    the service: the kernel's log, the look after a boot, what follows a drain, notices of EC2
boot     the look of the step that provisions a node: prints what it finds, changes nothing
status   what is known of this node
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import checks
import place
from loop import Loop
from place import say
from slurm import Slurm, SlurmError

SEND_AWAY = 75
"""A status that Python has for nothing else: a mistake in here ends with 1, and must drain no node."""
PROLOG_SECONDS, PROGRAM_SECONDS = 6, 40
_TICK_SECONDS = float(os.environ.get("ULTRACLUSTER_HEALTH_TICK", "15"))
_OLD_SECONDS = 600
"""Slurm looks more often than that, where it has a HealthCheckProgram."""
_LEAST_SECONDS, _MOST_SECONDS = 5, 300
"""Before the watcher of the kernel's log is started again."""


def prolog():
    loop = Loop(seconds=1.5)
    if loop.settings.mode == "off":
        return 0
    began = time.monotonic()
    found = loop.look(PROLOG_SECONDS, fresh=loop.settings.fresh_seconds) or []
    away = loop.act(found, until=began + 7, all_open=True) or loop.is_held()
    away = away and loop.settings.mode == "enforce"
    return SEND_AWAY if away else 0


def epilog():
    """SLURM_JOB_EXIT_CODE is a wait status, 1792 for `exit 7`; what is no number may be a failure."""
    if os.environ.get("SLURM_JOB_EXIT_CODE", "").strip() == "0":
        return 0
    loop = Loop(seconds=1.5)
    if loop.settings.mode != "off":
        began = time.monotonic()
        loop.act(loop.look(PROLOG_SECONDS) or [], until=began + 7)
    return 0


def program():
    loop = Loop()
    if loop.settings.mode != "off":
        began = time.monotonic()
        loop.act(loop.look(15) or [], until=began + PROGRAM_SECONDS, all_open=True)
    return 0


def boot():
    """Exit 1 where a fault was found that keeps jobs away once Slurm runs."""
    loop = Loop()
    if loop.settings.mode == "off" or not loop.settings.boot_gate:
        return 0
    bad = [finding for finding in loop.look(60) or [] if finding.result == "critical"]
    for finding in bad:
        print(f"{finding.by}: {finding.detail}")
    return 1 if bad else 0


def status():
    for file in sorted(place.STATE.glob("*.json")):
        print(f"{file.stem}: {json.dumps(place.read(file))}")
    return 0


def watch():
    """For ever. What goes wrong in one round is said, and the next one goes on."""
    watcher = Watcher()
    import interruption  # only here: its client of HTTP is a third of what a prolog would take to start

    told = Loop().settings.policy.orchestrator
    slurm = Slurm(root=os.environ.get("ULTRACLUSTER_ROOT"))
    # also in a dry run: it is EC2 that has decided
    threading.Thread(
        target=interruption.follow, args=(slurm, place.node_name, told), name="interruption", daemon=True
    ).start()
    gate, until = Loop().settings.boot_gate, time.monotonic() + 900
    while True:
        found = watcher.lines(_TICK_SECONDS)
        loop = Loop()
        if loop.settings.mode == "off":
            continue
        try:
            # Slurm may know this node only minutes after its boot.
            known = (loop.name is not None and not gate) or loop.knows_itself()
            if gate or loop.is_old(_OLD_SECONDS):
                found += loop.look(30) or []
            gate = gate and not known and time.monotonic() < until
            loop.act(found, until=time.monotonic() + PROGRAM_SECONDS)
            loop.follow()
        except (SlurmError, OSError, ValueError) as error:
            say(f"{type(error).__name__}: {error}")


class Watcher:
    """health/watch.py, which follows the kernel's log, and its findings."""

    def __init__(self):
        self.process, self.text, self.again, self.pause = None, b"", 0.0, _LEAST_SECONDS

    def start(self):
        place.STATE.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable or "/usr/bin/python3", "-IS", str(place.HOME / "health/watch.py")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = b""

    def lines(self, seconds):
        """Findings, at once when there are some; else after so many seconds."""
        if self.process is None:
            if time.monotonic() < self.again or not (place.HOME / "health/watch.py").exists():
                time.sleep(seconds)
                return []
            self.start()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            if not waiting.select(seconds):
                self.pause = _LEAST_SECONDS
                return []
        block = os.read(self.process.stdout.fileno(), 65536)
        if not block:
            self._ended()
            return []
        *whole, self.text = (self.text + block).split(b"\n")
        read = [
            line for text in whole if (line := checks.checked(text.decode(errors="replace"), verb="watch"))
        ]
        for line in read:
            say(f"kernel: {line['result']} {line.get('code', '')}: {line.get('detail', '')}")
        return checks.findings(read)

    def _ended(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        say(f"the watcher of the kernel's log ended with {self.process.returncode}; again in {self.pause} s")
        self.process.stdout.close()
        self.process, self.again = None, time.monotonic() + self.pause
        self.pause = min(self.pause * 2, _MOST_SECONDS)
        time.sleep(min(self.pause, _TICK_SECONDS))


VERBS = {
    "prolog": prolog,
    "epilog": epilog,
    "program": program,
    "boot": boot,
    "status": status,
    "watch": watch,
}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in VERBS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return VERBS[sys.argv[1]]()
    except Exception as error:  # a mistake in here must not end a job or drain a node
        say(f"{sys.argv[1]}: {type(error).__name__}: {error}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
