"""Runs the checks of this node: all at once, each by `lib/run_check.sh` within its own time, and all of them
within one. Nothing is waited for beyond that: what the kernel does not end holds neither a prolog nor a pipe.
"""

import contextlib
import json
import os
import selectors
import subprocess
import time
from pathlib import Path

from known import Finding

RESULTS = ("ok", "warn", "critical", "unknown")
QUICK_SECONDS, IDLE_SECONDS = 2, 600
_LONGEST_LINE = 20_000


def names(home):
    """The checks that lie on this node."""
    return sorted(file.stem for file in Path(home, "health").glob("*.sh"))


def run(home, verb, chosen, seconds, *, environment=None):
    """What the checks say, one dictionary each, in the order in which they were chosen; nothing of a check
    that is not for this node.

    Args:
        home: folder of `lib/` and `health/`.
        verb: `quick` or `idle`.
        chosen: names of checks.
        seconds: for all of them.
    """
    limit = QUICK_SECONDS if verb == "quick" else IDLE_SECONDS
    waiting = selectors.DefaultSelector()
    texts, until = {}, time.monotonic() + seconds
    for name in chosen:
        process = subprocess.Popen(
            ["/usr/bin/env", "bash", f"{home}/lib/run_check.sh", name, verb, str(limit)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {}), "ULTRACLUSTER_HOME": str(home)},
            start_new_session=True,
        )
        os.set_blocking(process.stdout.fileno(), False)
        waiting.register(process.stdout, selectors.EVENT_READ, (name, process))
        texts[name] = b""
    late = set(texts)
    while late and (left := until - time.monotonic()) > 0:
        for key, _ in waiting.select(left):
            name, process = key.data
            block = os.read(key.fd, 65536)
            texts[name] = (texts[name] + block)[:_LONGEST_LINE]
            if not block:
                waiting.unregister(key.fileobj)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
                late.discard(name)
    # run_check.sh ends what it started, and itself, a little later.
    waiting.close()
    said = [_line(name, verb, texts[name], name in late, seconds) for name in texts]
    return [line for line in said if line]


def _line(name, verb, text, late, seconds):
    if late:
        return _unknown(name, verb, "late", f"no answer within {seconds:g} s of all checks")
    lines = text.decode(errors="replace").strip().splitlines()
    if not lines:
        return None
    return checked(lines[-1], name, verb) or _unknown(name, verb, "broken", f"it says: {lines[-1][:200]}")


def _unknown(name, verb, code, detail):
    return {"check": name, "verb": verb, "result": "unknown", "code": code, "detail": detail}


def checked(text, name=None, verb=None):
    """A check's line as a dictionary; None where it is not one."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if (
        not isinstance(line, dict)
        or line.get("result") not in RESULTS
        or (name and line.get("check") != name)
    ):
        return None
    if not all(
        isinstance(line.get(key, ""), str)
        for key in ("check", "verb", "code", "detail", "action", "when_idle", "fault", "gpu")
    ):
        return None
    if not _word(line.get("check", "")) or not _word(line.get("code", "") or "none"):
        return None
    return {**line, "verb": line.get("verb", verb or "")}


def _word(text):
    """What may stand in a reason: it is one word for Slurm, and cannot be taken for HyperPod's."""
    return 0 < len(text) <= 40 and all(
        letter.isascii() and (letter.isalnum() or letter in "_-") for letter in text
    )


def findings(lines, ignored=()):
    """Findings that are not to be ignored, by their check or by their row of the fault table: each thing that
    a check has found is one."""
    found = [_finding(said) for line in lines for said in (line, *_others(line))]
    return [one for one in found if one.check not in ignored and one.fault not in ignored]


def _others(line):
    """Further things that a check found beside the gravest, each as a line of its own."""
    others = line.get("others")
    said = others if isinstance(others, list) else []
    return [other for one in said[:50] if (other := checked(json.dumps(one), line["check"], line["verb"]))]


def _finding(line):
    at = line.get("at")
    return Finding(
        check=line["check"],
        result=line["result"],
        code=line.get("code", ""),
        action=line.get("action", "none"),
        when_idle=line.get("when_idle", ""),
        detail=line.get("detail", ""),
        event=line.get("event") is True,
        verb=line["verb"],
        fault=line.get("fault", ""),
        device=line.get("gpu", ""),
        fatal=line.get("fatal") is True,
        at=at if isinstance(at, (int, float)) and at > 0 else time.time(),
    )
