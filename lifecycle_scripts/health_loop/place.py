"""Where the health loop keeps what it has, and how it is set."""

import contextlib
import fcntl
import json
import os
import re
import time
from pathlib import Path

from known import Policy

ROOT = Path(os.environ.get("ULTRACLUSTER_ROOT") or "/")
HOME = Path(os.environ.get("ULTRACLUSTER_HEALTH_HOME") or ROOT / "opt/ultracluster/health")
STATE = ROOT / "var/lib/ultracluster/health"
"""What outlives a boot: each check's last word, how far a drained node is, the node's name in Slurm."""
RUN = ROOT / "run/ultracluster/health"
"""What does not: the last look, and locks."""
LOG = ROOT / "var/log/ultracluster/health.log"
_LOG_BYTES = 4_000_000


def read(path, otherwise=None):
    """A document; `otherwise` where it is missing or damaged, for nothing here may end a job."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return otherwise
    return document if isinstance(document, type(otherwise)) or otherwise is None else otherwise


def write(path, document):
    """At once, or not at all. Returns whether it could be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(json.dumps(document) + "\n", encoding="utf-8")
        new.replace(path)
    except OSError as error:
        say(f"cannot write {path}: {error}")
        with contextlib.suppress(OSError):
            path.with_name(f"{path.name}.{os.getpid()}").unlink()
        return False
    return True


def say(text):
    """Into the log, and for the journal of a service."""
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {' '.join(str(text).split())}"
    print(line, flush=True)
    try:
        LOG.parent.mkdir(parents=True, exist_ok=True)
        if LOG.exists() and LOG.stat().st_size > _LOG_BYTES:
            LOG.replace(LOG.with_suffix(".log.1"))
        with LOG.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError:
        pass


def elapsed(at):
    """Seconds since then; for ever where a clock that was ahead wrote it, and has been set since."""
    passed = time.time() - at
    return passed if passed > -60 else float("inf")


def boot():
    """Eight digits of this boot's id; empty where it cannot be read, which is never another boot."""
    try:
        return (ROOT / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
    except (OSError, ValueError):
        return ""


class Settings:
    """`health:` of the environment file, as the step wrote it. What is missing or unknown is the milder."""

    def __init__(self):
        told = read(HOME / "settings.json", {})
        mode = told.get("mode")
        self.mode = mode if mode in ("off", "dry-run", "enforce") else "dry-run"
        self.boot_gate = told.get("boot_gate") is not False
        self.ignore = frozenset(name for name in told.get("ignore") or () if isinstance(name, str))
        self.checkpoint_seconds = _number(told, "checkpoint_seconds", 60, 0, 3600)
        self.fresh_seconds = _number(told, "fresh_seconds", 60, 0, 3600)
        self.policy = Policy(
            mode=self.mode,
            orchestrator=str(told.get("orchestrator") or ""),
            recovery=told.get("node_recovery") == "automatic",
            replace=told.get("replace") is True,
            max_drained_percent=_number(told, "max_drained_percent", 10, 1, 50),
            max_closed_percent=_number(told, "max_closed_percent", 25, 1, 100),
            max_drained_per_hour=_number(told, "max_drained_per_hour", 0, 0, 1000),
            max_resumes_per_day=_number(told, "max_resumes_per_day", 2, 0, 20),
        )


def _number(told, key, usual, least, most):
    value = told.get(key)
    return min(max(value, least), most) if type(value) is int else usual


def node_name():
    """The node's name in Slurm: as slurmd told a prolog or a HealthCheckProgram; None before that."""
    return remember_name(os.environ.get("SLURMD_NODENAME")) or read(STATE / "node_name.json", "") or None


def remember_name(name):
    if not name or not re.fullmatch(r"[A-Za-z0-9._-]{1,255}", name):
        return None
    if read(STATE / "node_name.json", "") != name:
        write(STATE / "node_name.json", name)
    return name


@contextlib.contextmanager
def alone(path, until):
    """Gives true where nobody else has it; waited for until then (monotonic seconds)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Root's to read, too: whoever may open it may lock it, and no check would run here.
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        mine = True
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= until:
                    mine = False
                    break
                time.sleep(0.05)
        yield mine
