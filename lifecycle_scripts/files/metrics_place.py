"""Who this node is, for its metrics: its name in Slurm, its instance and rack, and whether it asks slurmctld.

`here` never fails and never hangs: what cannot be found out is left out, and what asks Slurm or a shared file
system is a process of its own with a deadline, whose answer is kept for some minutes.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ASK_AGAIN_SECONDS = 600
ANSWER_SECONDS = 20
METRICS_SINCE = (25, 11)
"""Slurm's first release that serves metrics (slurm.conf manual, MetricsType)."""
LEASE_SECONDS = 300
LEASE = ".ultracluster-metrics/slurm.json"


def here(root, run, told):
    """Facts by name: node, instance_id, rack, slurm, slurmctld; only those that are known."""
    found = {"node": node_name(root), "instance_id": instance_id(root)}
    found["rack"] = kept(run, "rack", lambda: rack(found["node"])) if told.get("role") == "compute" else None
    if told.get("slurm"):
        server = kept(run, "slurmctld", slurmctld)
        # our collector asks every release of Slurm; the metrics of its own are of the newer ones
        found["slurm"] = bool(server) and asks(run, told, server)
        found["slurmctld"] = server.get("address") if server and found["slurm"] else None
    return {key: value for key, value in found.items() if value is not None}


def kept(run, name, ask):
    """The answer of `ask`, for some minutes the same; an older one where there is none now."""
    file = run / f"{name}.json"
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
        age = time.time() - file.stat().st_mtime
    except (OSError, ValueError):
        before, age = None, ASK_AGAIN_SECONDS
    if before is not None and 0 <= age < ASK_AGAIN_SECONDS:
        return before
    answer = ask()
    if answer is None:
        return before
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(answer), encoding="utf-8")
    new.replace(file)
    return answer


# --- the node ---


def node_name(root):
    """As slurmd was started with it (-N, on AWS PCS), as a prolog was told it, or the host's name."""
    for folder in (root / "proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().strip() != "slurmd" or not _is_roots(folder):
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        for number, word in enumerate(words):
            name = (
                words[number + 1]
                if word == "-N" and number + 1 < len(words)
                else word[2:]
                if word[:2] == "-N"
                else ""
            )
            if re.fullmatch(r"[A-Za-z0-9._-]{1,255}", name):
                return name
    try:
        name = json.loads((root / "var/lib/ultracluster/health/node_name.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        name = None
    return name if isinstance(name, str) and name else os.uname().nodename.split(".")[0]


def _is_roots(process):
    """Whether it runs as root: anybody may call a process slurmd, and give it another node's name."""
    found = re.search(r"^Uid:((?:\s+\d+)+)$", (process / "status").read_text(), re.MULTILINE)
    return bool(found) and set(found[1].split()) == {"0"}


def instance_id(root):
    """Of EC2: Nitro shows it as the board's asset tag (seen on instances; AWS does not document it)."""
    try:
        text = (root / "sys/devices/virtual/dmi/id/board_asset_tag").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return text if re.fullmatch(r"i-[0-9a-f]{8,17}", text) else None


def rack(node):
    """The lowest switch or block of Slurm's topology that has the node; None where Slurm knows none."""
    text = ask("scontrol", "--oneliner", "show", "topology", node or "")
    if text is None:
        return None
    blocks = re.findall(r"^BlockName=(\S+)", text, re.MULTILINE)
    switches = re.findall(r"^SwitchName=(\S+) .*?Level=(\d+)", text, re.MULTILINE)
    lowest = [name for name, level in switches if level == "0"]
    names = blocks or lowest
    return names[0] if len(names) == 1 else None


# --- the node that asks slurmctld ---


def slurmctld():
    """Where it runs: `host` and `ip`, and `address` where it serves metrics; None without an answer."""
    text = ask("scontrol", "show", "config")
    if text is None:
        return None
    said = dict(re.findall(r"^(\w+(?:\[0\])?)\s*=\s*(.*?)\s*$", text, re.MULTILINE))
    host = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\(([A-Za-z0-9.:_-]+)\))?", said.get("SlurmctldHost[0]", ""))
    if not host:
        return None
    found = {"host": host[1], "ip": host[2]}
    if serves_metrics(said):
        port = re.match(r"\d+", said.get("SlurmctldPort", ""))
        name = host[2] or host[1]
        found["address"] = f"{f'[{name}]' if ':' in name else name}:{port[0] if port else 6817}"
    return found


def serves_metrics(said):
    version = re.match(r"(\d+)\.(\d+)", said.get("SLURM_VERSION", ""))
    new = bool(version) and (int(version[1]), int(version[2])) >= METRICS_SINCE
    return new and said.get("MetricsType", "").startswith("metrics/")


def ask(*command):
    """What a command of Slurm prints; None where it fails or takes too long."""
    folders = [
        "/opt/slurm/bin",
        *sorted(str(one) for one in Path("/opt/aws/pcs/scheduler").glob("slurm-*/bin"))[::-1],
    ]
    path = ":".join([*os.environ.get("PATH", "/usr/bin:/bin").split(":"), *folders])
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def asks(run, told, server):
    """Whether this is the one node that asks.

    A controller does where it is the first of slurm.conf. Login nodes of AWS PCS know nothing of each other:
    the one that holds a lease in the cluster's shared folder does; without such a folder, each.
    """
    if told.get("role") == "controller":
        mine = {os.uname().nodename.split(".")[0], told.get("address")}
        return bool({server.get("host"), server.get("ip")} & mine) or not server.get("host")
    folder = told.get("shared")
    if not folder:
        return True
    me = str(told.get("address") or os.uname().nodename)
    before = run / "lease"
    try:
        process = subprocess.Popen(
            [sys.executable, "-ISB", __file__, folder, me],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        said = process.communicate(timeout=ANSWER_SECONDS)[0].strip()
    except subprocess.TimeoutExpired:
        process.kill()  # it ends when the file system lets it
        said = ""
    except OSError:
        said = ""
    if said not in ("yes", "no"):
        # a folder that cannot be written is none; one that hangs leaves all as it was
        return before.read_text(encoding="ascii") == "yes" if before.exists() else True
    before.write_text(said, encoding="ascii")
    return said == "yes"


def lease(folder, me):
    """Take or renew the lease, and print whether this node has it. Times are the file server's own.

    People may be able to write to `folder`: what lies there under the lease's name counts only where it is a
    folder of this process's own user that nobody else may write to, and no link is followed.

    Raises:
        OSError: there is none, or it is somebody else's. Nothing is printed then.
    """
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    name, _, document = LEASE.partition("/")
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode=0o700, dir_fd=above)
    place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    about = os.fstat(place)
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise PermissionError(f"{folder}/{name} is somebody else's")
    mine = f"{re.sub('[^A-Za-z0-9.-]', '_', me)}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(mine, flags, mode=0o600, dir_fd=place), "w", encoding="utf-8") as file:
        json.dump({"node": me}, file)
        file.flush()
        now = os.fstat(file.fileno()).st_mtime
    try:
        reader = os.open(document, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=place)
        with os.fdopen(reader, encoding="utf-8") as file:
            holder = json.load(file).get("node")
            age = now - os.fstat(file.fileno()).st_mtime
    except (OSError, ValueError, AttributeError):
        holder, age = None, LEASE_SECONDS
    if holder == me or age >= LEASE_SECONDS:
        os.replace(mine, document, src_dir_fd=place, dst_dir_fd=place)
        print("yes")
    else:
        os.unlink(mine, dir_fd=place)
        print("no")


if __name__ == "__main__":
    lease(*sys.argv[1:])
