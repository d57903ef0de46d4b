"""What topology_update.py asks of slurmctld and tells it. Python 3.6 and newer: no annotations."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

_ALONE = 'ip link set lo up; ip address add 192.0.2.1/32 dev lo; exec "$@"'
"""A network with one address, which is not the loopback's: Slurm finds no host by that."""
_FLAT = "- topology: default\n  cluster_default: true\n  flat: true\n"


class UnknownError(Exception):
    """Something did not answer; the text says what."""


def version():
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", asked(["scontrol", "--version"]))
    if not found:
        raise UnknownError("scontrol does not tell its version")
    return tuple(int(part) for part in found.groups())


def config():
    pairs = [line.split("=", 1) for line in asked(["scontrol", "show", "config"]).splitlines() if "=" in line]
    found = {key.strip(): value.strip() for key, value in pairs}
    if not found.get("SLURM_CONF"):
        raise UnknownError("slurmctld does not tell where slurm.conf is")
    return found


def nodes():
    """Address by name, of every node that slurmctld knows, running or not."""
    found = {}
    for line in asked(["scontrol", "--oneliner", "show", "node"]).splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "NodeName" in words:
            found[words["NodeName"]] = words.get("NodeAddr", "")
    if not found:
        raise UnknownError("slurmctld knows no nodes")
    return found


def placed():
    """The nodes that are in a leaf of the topology that slurmctld works with; none where it does not tell."""
    status, text = run(["scontrol", "show", "topology"], 30)
    found = set()
    for one in (
        re.findall(r"^SwitchName=\S+ Level=0 .*?Nodes=(\S+)", text, re.MULTILINE) if status == 0 else ()
    ):
        found.update(asked(["scontrol", "show", "hostnames", one]).split())
    return found


def reconfigure(names):
    """Why slurmctld has not taken its configuration with all these nodes; empty where it has."""
    status, text = run(["scontrol", "reconfigure"], 120)
    if status:
        return last(text) or f"status {status}"
    end = time.monotonic() + float(os.environ.get("ULTRACLUSTER_TOPOLOGY_SECONDS", "30"))
    while True:
        if run(["scontrol", "ping"], 30)[0] == 0 and set(names) <= placed():
            return ""
        if time.monotonic() > end:
            break
        time.sleep(1)
    return "it does not have every node afterwards"


def trial(text, names, plugins=""):
    """Why a slurmctld of its own refuses `topology.yaml`; empty where it takes it, or where there is none.

    It has its own folder and no network, so it meets neither nodes nor database. One that does not start
    without a topology either says nothing about this one.
    """
    refused = _trial(text, names, plugins)
    return refused if refused and not _trial(_FLAT, names, plugins) else ""


def _trial(text, names, plugins):
    slurmctld, unshare = shutil.which("slurmctld"), shutil.which("unshare")
    if not slurmctld or not unshare or not shutil.which("ip"):
        return ""
    lines = [
        "ClusterName=trial", f"SlurmctldHost={os.uname()[1].split('.')[0]}(192.0.2.1)",
        "SlurmUser=root", "SlurmdUser=root", "AuthType=auth/none", "CredType=cred/none",
        "SelectType=select/cons_tres",
        "MpiDefault=none", "ProctrackType=proctrack/linuxproc",
    ]  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="ultracluster-topology-"))
    try:
        lines += [f"PluginDir={plugins}"] if plugins else []
        lines += [f"StateSaveLocation={folder}/state", f"SlurmctldPidFile={folder}/pid"]
        lines += [f"NodeName={name} NodeAddr=192.0.2.1 CPUs=1 State=DOWN" for name in names]
        (folder / "state").mkdir()
        write(folder / "slurm.conf", "\n".join([*lines, "PartitionName=all Nodes=ALL Default=YES", ""]))
        write(folder / "cgroup.conf", "CgroupPlugin=disabled\n")
        write(folder / "topology.yaml", text)
        alone = [unshare, "--net", "sh", "-c", _ALONE, "-"]
        return _end_of([*alone, slurmctld, "-D", "-f", f"{folder}/slurm.conf"])
    except OSError as error:
        return str(error)
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)


def _end_of(command):
    """The last words of a slurmctld that ends; empty for one that takes up its work."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    )
    clock = threading.Timer(60, process.kill)
    clock.start()
    words = ""
    try:
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").strip()
            if "Running as primary controller" in line:
                return ""
            words = line or words
        return words[:200] or "it ended"
    finally:
        clock.cancel()
        process.kill()
        process.stdout.close()
        process.wait()


def asked(command, seconds=60):
    """What a command prints; it must end well."""
    status, text = run(command, seconds)
    if status:
        raise UnknownError(f"{' '.join(command[:3])}: {last(text) or f'status {status}'}")
    return text


def run(command, seconds):
    """Status and output of a command; a status of its own where it does not start, or not end in time."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        return 127, str(error)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return 124, f"no answer within {seconds} s"
    return process.returncode, (out if process.returncode == 0 else err or out).decode("utf-8", "replace")


def last(text):
    return (text.strip().splitlines() or [""])[-1].strip()[:200]


def write(path, text):
    """Whole or not at all."""
    new = path.with_name(path.name + ".ultracluster-new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.chmod(0o644)
    new.replace(path)
