#!/usr/bin/python3 -ISB
"""Keeps our settings in slurm.conf on HyperPod's controller, and login nodes out of the default partition.

Usage: slurm_conf.py [SETTINGS]   /opt/ultracluster/slurm/settings.json by default: `slurm` of cluster.json

The settings are a file of their own, ultracluster.conf beside slurm.conf, which includes it last: the later
value wins, and nodes get it together with slurm.conf. HyperPod's agent may write slurm.conf again at any
time, so a timer runs this each few minutes; where all is as it should be, nothing is written.

A controller never fails to start because of it. A slurmctld in a network of its own reads a copy first
(slurm_try.py). `scontrol reconfigure` says 0 and ends slurmctld where a value is wrong (Slurm 26.05), so it
is asked afterwards, too, and everything put back if it is gone. What was refused is not tried again for a
day.

Ends with 0 where the settings hold, 75 where it is too early to say (state.json has the reason), 1 where
Slurm refused them.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = os.environ.get("ULTRACLUSTER_ROOT", "")
ETC = Path(f"{ROOT}/opt/slurm/etc")
STATE = Path(f"{ROOT}/var/lib/ultracluster/slurm/state.json")
SETTINGS = Path(f"{ROOT}/opt/ultracluster/slurm/settings.json")
TRY = Path(__file__).with_name("slurm_try.py")
NAME = "ultracluster.conf"
INCLUDE = re.compile(rf"^\s*include\s+{re.escape(NAME)}\s*$", re.IGNORECASE)
LATER, REFUSED = 75, 1
DAY = 24 * 3600
OBJECTS = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")
HEAD = """\
# Ultracluster: orchestrator.slurm_settings of the environment file, and what follows from the cluster
# (`ultracluster plan` shows both with their reasons). Written again from there.
"""
os.environ["PATH"] = (
    f"/opt/slurm/sbin:/opt/slurm/bin:{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"
)


class Ended(Exception):  # noqa: N818
    """What the run comes to."""

    def __init__(self, result, why, status):
        super().__init__(why)
        self.result, self.why, self.status = result, why, status


def run(*command, seconds=60, **options):
    """What a command came to; 124 where it did not end."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, **options
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"{command[0]} did not answer in {seconds} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def assignments(text):
    """(name in lower case, value) of each line of slurm.conf that is not about a node or partition."""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.partition("#")[0].strip()
        found = re.findall(r'([A-Za-z][A-Za-z0-9_]*)\s*=\s*("[^"]*"|\S*)', line)
        if found and found[0][0].lower() not in OBJECTS:
            yield from ((name.lower(), value.strip('"')) for name, value in found)


def of_service(text, depth=0):
    """The last value of each parameter in slurm.conf and in what it includes, without ours."""
    found = {}
    for line in text.replace("\\\n", " ").splitlines():
        other = re.match(r"\s*include\s+(\S+)\s*$", line, re.IGNORECASE)
        if other and not INCLUDE.match(line) and depth < 5:
            with contextlib.suppress(OSError):
                found.update(of_service((ETC / other[1]).read_text(), depth + 1))
        else:
            found.update(assignments(line))
    return found


def with_words(ours, theirs):
    """A list of words, with those of the service that ours does not have."""
    lists = [
        [word.strip() for word in value.strip('"').split(",") if word.strip()] for value in (ours, theirs)
    ]
    mine = {word.partition("=")[0].lower() for word in lists[0]}
    return ",".join([*lists[0], *(word for word in lists[1] if word.partition("=")[0].lower() not in mine)])


def release():
    """Slurm's release, `25.11`."""
    found = re.search(r"(\d\d\.\d\d)", run("slurmctld", "-V").stdout)
    if not found:
        raise Ended("waits", "this node has no slurmctld", LATER)
    return found[1]


def wanted(settings, service, version):
    """Our lines, and what is left out with the reason."""
    lines, left_out = [], {}
    accounting = service.get("accountingstoragetype", "").endswith("slurmdbd")
    for one in settings:
        name, value, there = one["name"], str(one["value"]), service.get(one["name"].lower())
        if one.get("since", "") > version:
            left_out[name] = f"Slurm takes it from {one['since']} on"
        elif one.get("accounting") and not accounting:
            left_out[name] = "slurm.conf names no slurmdbd"
        elif one.get("unless_set") and there:
            left_out[name] = f"HyperPod set {there}"
        elif (
            name.lower() == "prologflags" and "nohold" in (there or "").lower() and "contain" in value.lower()
        ):
            left_out[name] = f"HyperPod set {there}, which excludes Contain"
        elif name.lower() in ("prolog", "epilog") and value[:1] != "/" and not (ETC / value).is_file():
            # each job would drain its nodes; an absolute path is one of the nodes
            left_out[name] = f"{value} is not beside slurm.conf"
        else:
            lines.append(f"{name}={with_words(value, there) if one.get('words') and there else value}")
    return HEAD + "".join(f"{line}\n" for line in lines), left_out


def includes(text, ours):
    """Whether slurm.conf includes our file, and sets nothing of it afterwards."""
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if INCLUDE.match(line)]
    if not places:
        return False
    mine = {name for name, _ in assignments(ours)}
    return not any(name in mine for name, _ in assignments("\n".join(lines[places[-1] + 1 :])))


def without_include(text):
    return "".join(f"{line}\n" for line in text.splitlines() if not INCLUDE.match(line))


def with_include(text):
    return f"{without_include(text)}Include {NAME}\n"


def write(path, text, like=None):
    """A whole file or none; with the owner and mode of another."""
    new = path.with_name(f".{path.name}.ultracluster-new")
    new.write_text(text)
    if like and like.exists():
        shutil.copymode(like, new)
        os.chown(new, like.stat().st_uid, like.stat().st_gid)
    else:
        new.chmod(0o644)
    new.replace(path)


def accepted(conf, ours, service):
    """Whether a slurmctld starts with it, and why not. None where nothing can be tried here."""
    tried, why = attempt(conf, ours, service)
    if tried:
        return True, ""
    # Is it us? Without our file it must start.
    base, because = attempt(without_include(conf), "", service)
    return (False, why) if base else (None, f"slurmctld cannot be tried here: {because}")


def attempt(conf, ours, service):
    with tempfile.TemporaryDirectory(prefix="ultracluster-slurm-") as name:
        folder = Path(name)
        for file in ETC.iterdir():
            # slurmdbd.conf has a password, and is not read
            if file.is_file() and file.name != "slurmdbd.conf":
                shutil.copy2(file, folder / file.name)
        (folder / "slurm.conf").write_text(conf)
        (folder / NAME).write_text(ours)
        done = run(sys.executable, "-ISB", TRY, folder, service.get("slurmuser", "root"), seconds=120)
        return done.returncode == 0, (done.stdout or done.stderr).strip()[:300]


# --- the real one ---


def answers(seconds):
    """Whether slurmctld answers within so many seconds."""
    end = time.monotonic() + seconds
    while True:
        if re.search(r"\(primary\).* UP\b", run("scontrol", "ping", seconds=10).stdout):
            return True
        if time.monotonic() > end:
            return False
        time.sleep(1)


def apply(conf, ours):
    """Write both files and tell slurmctld; everything as it was where it does not come back."""
    path, mine = ETC / "slurm.conf", ETC / NAME
    before = mine.read_text() if mine.exists() else None
    lives = run("systemctl", "is-active", "--quiet", "slurmctld.service").returncode == 0 and answers(10)
    (STATE.parent / "slurm.conf.before").write_text(conf)
    # In this order: a file that is included and is not there stops every command of Slurm for a minute.
    write(mine, ours, like=path)
    changed = conf if includes(conf, ours) else with_include(conf)
    if path.read_text() != conf:
        raise Ended("waits", "slurm.conf was written meanwhile", LATER)
    if changed != conf:
        write(path, changed, like=path)
    if not lives:
        return "slurmctld is not running, and reads them when it starts"
    told = run("scontrol", "reconfigure", seconds=120)
    wait = float(os.environ.get("ULTRACLUSTER_SLURM_WAIT", "60"))
    time.sleep(min(2.0, wait))  # it says yes before it ends
    if told.returncode == 0 and answers(wait):
        return ""
    roll_back(path, mine, conf, changed, before)
    if not answers(5):
        run("systemctl", "reset-failed", "slurmctld.service")
        run("systemctl", "restart", "slurmctld.service", seconds=120)
    here = "slurmctld runs without them" if answers(wait) else "slurmctld is DOWN: journalctl -u slurmctld"
    said = (told.stderr.strip().splitlines() or ["it ended"])[-1]
    raise Ended("rolled-back", f"slurmctld did not take them ({said}); {here}", REFUSED)


def roll_back(path, mine, conf, changed, before):
    now = path.read_text()
    # what was written meanwhile stays, without our line
    kept = conf if now == changed else without_include(now)
    if before is None:
        write(path, kept, like=path)
    else:
        write(mine, before, like=path)
        if now == changed:
            write(path, conf, like=path)


def default_partition(name):
    """Login nodes are in the service's partition, its default: jobs that name none go to a compute one."""
    if name and "Default=NO" in run("scontrol", "--oneliner", "show", "partition", name).stdout:
        run("scontrol", "update", f"PartitionName={name}", "Default=YES")


def known(digest):
    with contextlib.suppress(OSError, ValueError):
        last = json.loads(STATE.read_text())
        refused = last.get("digest") == digest and last["result"] in ("refused", "rolled-back")
        if refused and time.time() - last["time"] < DAY:
            return last
    return None


def converge(section, facts):
    path = ETC / "slurm.conf"
    if not path.is_file() or not path.stat().st_size:
        raise Ended("waits", f"{path} is not there yet", LATER)
    conf = path.read_text()
    service = of_service(conf)
    version = facts["version"] = release()
    ours, facts["left_out"] = wanted(section["settings"], service, version)
    digest = facts["digest"] = hashlib.sha256(f"{version}\n{ours}".encode()).hexdigest()
    mine = ETC / NAME
    result, why = "holds", ""
    if not includes(conf, ours) or not mine.is_file() or mine.read_text() != ours:
        if last := known(digest):
            facts["time"] = last["time"]
            raise Ended(last["result"], last["why"], REFUSED)
        taken, why = accepted(conf if includes(conf, ours) else with_include(conf), ours, service)
        if taken is None:
            raise Ended("waits", why, LATER)
        if not taken:
            raise Ended("refused", why, REFUSED)
        result, why = "applied", apply(conf, ours)
    default_partition(section.get("default_partition", ""))
    return result, why


def main():
    section = json.loads(Path(sys.argv[1] if sys.argv[1:] else SETTINGS).read_text())
    STATE.parent.mkdir(parents=True, exist_ok=True)
    STATE.parent.chmod(0o700)
    facts, status = {"time": time.time()}, 0
    with (STATE.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            facts["result"], facts["why"] = converge(section, facts)
        except Ended as end:
            facts["result"], facts["why"], status = end.result, end.why, end.status
        except OSError as error:
            facts["result"], facts["why"], status = "waits", str(error), LATER
        write(STATE, json.dumps(facts) + "\n")
    print(f"Slurm's settings: {facts['result']}{facts['why'] and ': '}{facts['why']}")
    return status


if __name__ == "__main__":
    sys.exit(main())
