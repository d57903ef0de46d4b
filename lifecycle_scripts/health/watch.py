#!/usr/bin/python3 -ISB
"""Watches the kernel's log for faults of the table (faults.json) and prints one line of JSON for each.

    watch.py               follows the journal; its cursor outlives it: no line is reported twice
    watch.py --once FILE [NEW]
                           what is new since FILE was written, as health checks print it; NEW becomes the next
                           FILE when that has been reported, and is FILE where it is left out

Only what the kernel itself has logged counts (`_TRANSPORT=kernel`): whatever a user hands to `logger` has
another transport; what a line says is faults.py's to read. Of an earlier boot nothing is read: a fault that a
reboot has ended does not come back with it.

Runs with the Python of Ubuntu 22.04, 24.04 and Amazon Linux 2023: 3.9 and newer.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults

ROOT = os.environ.get("ULTRACLUSTER_ROOT", "")
STATE = ROOT + "/var/lib/ultracluster/health/watch.state"
NODE = ROOT + "/var/lib/ultracluster/health/node"
BOOT = ROOT + "/proc/sys/kernel/random/boot_id"
JOURNAL = ("journalctl", "--dmesg", "--boot", "--output=json", "--no-pager", "--quiet",
           "--output-fields=MESSAGE,_TRANSPORT,_BOOT_ID")  # fmt: skip
QUIET_SECONDS = 60
"""So long the same fault of the same device is counted and not printed again."""
SAVE_SECONDS = 5
ONCE_SECONDS = 1.2
LONGEST = 4000
"""Characters of a line that are read."""
KEPT = 500
"""Faults whose times are kept, to know repeats."""


def findings(lines, table, generation, disks=None):
    """What the table says of lines of the kernel's log, in their order; nothing of a line that is no fault.

    Args:
        lines: messages, or entries of the journal as `journalctl -o json` has them.
        table: as `faults.load` returns it.
        generation: of the node's accelerators, a key of the table's `generations`; empty if unknown.
        disks: kind of each NVMe controller, as `faults.kinds_of_disks` returns them.

    Returns:
        One dict per fault, as health checks print it (README.md), with the line as its detail.
    """
    found = []
    for line in lines:
        message = message_of(line)
        row, device = faults.judge(message, table, generation, disks)
        if row:
            found.append(finding(row, device, message))
    return found


def message_of(entry):
    """The message of an entry of the journal that the kernel wrote; empty for any other."""
    if isinstance(entry, str):
        return entry[:LONGEST]
    if not isinstance(entry, dict) or entry.get("_TRANSPORT") != "kernel":
        return ""
    message = entry.get("MESSAGE")
    if isinstance(message, list):  # what is no UTF-8 comes as numbers
        numbers = message[:LONGEST]
        if not all(isinstance(one, int) and 0 <= one < 256 for one in numbers):
            return ""
        message = bytes(numbers).decode("utf-8", "replace")
    return message[:LONGEST] if isinstance(message, str) else ""


def finding(row, device, message):
    """As a health check prints it."""
    found = {
        "check": row["check"],
        "verb": "watch",
        "result": faults.RESULTS[row["severity"]],
        "code": faults.code_of(row, message),
        "detail": " ".join(message.split())[:400],
        "fault": row["id"],
        "action": row["action"],
        "event": True,
    }
    if faults.fatal(row):
        found["fatal"] = True
    if "when_idle" in row:
        found["when_idle"] = row["when_idle"]
    if device:
        found["gpu"] = device
    return found


class Watcher:
    """Findings of a stream of entries: each fault once a minute, and graver where it comes again."""

    def __init__(self, table, generation, state=None, disks=None):
        self.table = table
        self.generation = generation
        self.rows = {row["id"]: row for row in table["faults"]}
        state = state if isinstance(state, dict) else {}
        self.cursor = state.get("cursor") if isinstance(state.get("cursor"), str) else ""
        self.boot = state.get("boot") if isinstance(state.get("boot"), str) else ""
        self.at = number(state.get("at"))  # microseconds of the boot, of the last entry
        self.times = times_of(state.get("times"))
        # a disk that was given up has no entry in /sys any more
        self.disks = {**kinds_of(state.get("disks")), **(disks or {})}
        self.quiet = {}

    def state(self):
        """What the next run begins with."""
        return {
            "cursor": self.cursor,
            "boot": self.boot,
            "at": self.at,
            "times": self.times,
            "disks": self.disks,
        }

    def look(self, entry):
        """The finding of one entry to be told now; None where there is none."""
        if not isinstance(entry, dict):
            return None
        boot = entry.get("_BOOT_ID") if isinstance(entry.get("_BOOT_ID"), str) else ""
        at = number(entry.get("__MONOTONIC_TIMESTAMP"))
        if boot == self.boot and at < self.at:
            return None  # read again from the start, for want of a cursor
        if boot == self.boot and at == self.at and entry.get("__CURSOR") == self.cursor:
            return None
        self.boot, self.at = boot, at
        if isinstance(entry.get("__CURSOR"), str):
            self.cursor = entry["__CURSOR"]
        found = findings([entry], self.table, self.generation, self.disks)
        if not found:
            return None
        now = number(entry.get("__REALTIME_TIMESTAMP"))
        found[0]["at"] = now / 10**6
        return self.counted(found[0], boot, at, now)

    def counted(self, found, boot, at, now):
        """The finding with its repeats; None where it was told within the last minute."""
        key = f"{found['fault']} {found['code']} {found.get('gpu', '')}"
        last = self.quiet.get(key)
        if last and last["boot"] == boot and at - last["at"] < QUIET_SECONDS * 10**6:
            last["more"] += 1
            return None
        if last and last["more"]:
            found["count"] = last["more"] + 1
        if len(self.quiet) > KEPT:
            self.quiet.clear()
        self.quiet[key] = {"boot": boot, "at": at, "more": 0}
        repeats = self.rows[found["fault"]].get("repeats")
        if repeats:
            self.again(found, key, repeats, boot, at, now)
        return found

    def again(self, found, key, repeats, boot, at, now):
        """Counts the times that lie apart: with a boot between, or by the minutes of the table. The wall's
        clock may have been set in between: what seems to lie ahead counts as of now."""
        span = repeats["within_hours"] * 3600 * 10**6
        times = [one for one in self.times.get(key, []) if now - one[2] < span]
        last = times[-1] if times else None
        if last is None or last[0] != boot or at - last[1] >= repeats["apart_minutes"] * 60 * 10**6:
            times.append([boot, at, now])
        self.times.pop(key, None)  # the newest are at the end
        self.times[key] = times[-20:]
        while len(self.times) > KEPT:
            self.times.pop(next(iter(self.times)))
        if len(times) >= repeats["times"]:
            found["result"] = faults.RESULTS[repeats["severity"]]
            found["action"] = repeats["action"]
            found["repeated"] = len(times)


def number(value):
    """Of a field of the journal, which are text; 0 for anything else."""
    try:
        return max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return 0


def times_of(value):
    """As `Watcher.state` has them; without what has another form."""
    times = {}
    for key, entries in value.items() if isinstance(value, dict) else ():
        good = [
            [str(one[0]), number(one[1]), number(one[2])]
            for one in (entries if isinstance(entries, list) else [])
            if isinstance(one, list) and len(one) == 3
        ]
        if good:
            times[str(key)] = good
    return times


def kinds_of(value):
    """As `Watcher.state` has them; without what has another form."""
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(name): kind for name, kind in pairs if kind in [kind for _, kind in faults.DISKS]}


def read_state(path):
    """Empty where it is damaged: then this boot's log is read from its beginning."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_state(path, state):
    """False where it cannot be written, as for a user who looks by hand."""
    new = Path(f"{path}.{os.getpid()}")
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(state), encoding="utf-8")
        new.replace(path)
    except OSError:
        return False
    return True


def text_of(path):
    """Empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def accelerator():
    """EC2's name of it, as the node's boot has left it."""
    facts = dict(line.split("=", 1) for line in text_of(NODE).splitlines() if "=" in line)
    return facts.get("NODE_ACCELERATOR_NAME", "")


def command(watcher, *more):
    """journalctl from behind the last entry on; of this boot all, where that was of an earlier one."""
    boot = text_of(BOOT).strip().replace("-", "")
    after = [f"--after-cursor={watcher.cursor}"] if watcher.cursor and watcher.boot == boot else []
    return [*JOURNAL, *after, *more]


def entries(stream):
    """Of the lines of journalctl, those that are entries."""
    for line in stream:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def once(path, new=None, seconds=ONCE_SECONDS):
    """What is new since the last call, as lines of `health::row`; status 1 where the journal cannot be read.
    A long log is read on by the next call."""
    table = faults.load()
    watcher = Watcher(
        table, faults.generation_of(table, accelerator()), read_state(path), faults.kinds_of_disks(ROOT)
    )
    process = subprocess.Popen(
        command(watcher), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.setitimer(signal.ITIMER_REAL, seconds)
    seen = False
    for entry in entries(process.stdout):
        seen = True
        one = watcher.look(entry)
        if one:
            words = (
                one["fault"],
                one.get("gpu", "-"),
                one["detail"],
                one["action"],
                one["result"],
                one["code"],
                str(one["at"]),
            )
            print("row", *(word.replace("\t", " ") for word in words), sep="\t")
    said = process.stderr.read().decode("utf-8", "replace").strip()
    status = process.wait()
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.flush()
    write_state(new or path, watcher.state())
    if status == 0 or seen:
        return 0
    print(said[:200] or f"journalctl ended with status {status}", file=sys.stderr)
    return 1


def follow():
    """Until it is ended. A journalctl that ends is started again."""
    table = faults.load()
    watcher = Watcher(
        table, faults.generation_of(table, accelerator()), read_state(STATE), faults.kinds_of_disks(ROOT)
    )
    ended = []
    pause = 1.0
    while not ended:
        started = saved = time.monotonic()
        process = subprocess.Popen(
            command(watcher, "--follow", "--no-tail"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        # What it has printed is still read: a line that nobody was told of must not count as read.
        signal.signal(signal.SIGTERM, lambda *_, child=process: (ended.append(True), child.terminate()))
        try:
            for entry in entries(process.stdout):
                found = watcher.look(entry)
                if found:
                    print(json.dumps(found), flush=True)
                if found or time.monotonic() - saved >= SAVE_SECONDS:
                    write_state(STATE, watcher.state())
                    saved = time.monotonic()
            write_state(STATE, watcher.state())
        finally:
            process.terminate()
            process.wait()
        if time.monotonic() - started > 60:
            pause = 1.0
        elif process.returncode not in (0, -signal.SIGTERM):
            watcher.cursor = ""  # which journalctl may not have found; what was read is known by its time
        if not ended:
            time.sleep(pause)
        pause = min(pause * 2, 30)
    return 0


def main(arguments):
    if arguments[:1] == ["--once"] and len(arguments) in (2, 3):
        return once(*arguments[1:])
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    return follow()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(0)
