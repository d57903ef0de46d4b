"""Lustre as this client sees it. Python 3.9 and newer.

Counters are files of the kernel module. Whether the file system answers is asked by a probe in a process of
its own: where Lustre hangs, so does whoever asks, and not even the kernel ends it. One that hangs is left
alone, and no second one is started beside it.
"""

import json
import os
import re
import select
import signal
import time

from host import started

NAME, SECONDS = "lustre", 10
METRICS = {
    "ultracluster_lustre_info": ("gauge", "1, with the mount name of the file system"),
    "ultracluster_lustre_read_bytes_total": ("counter", "Read by this client"),
    "ultracluster_lustre_write_bytes_total": ("counter", "Written by this client"),
    "ultracluster_lustre_read_operations_total": ("counter", "Reads of this client"),
    "ultracluster_lustre_write_operations_total": ("counter", "Writes of this client"),
    "ultracluster_lustre_metadata_operations_total": ("counter", "open, close, stat, mkdir and the like"),
    "ultracluster_lustre_metadata_seconds_total": ("counter", "Time of these; absent where not timed"),
    "ultracluster_lustre_probe_seconds": ("gauge", "How long the last answered probe took"),
    "ultracluster_lustre_stalled": ("gauge", "1 while a probe does not come back"),
    "ultracluster_lustre_reconnects_total": ("counter", "Times that a target was lost, all targets"),
    "ultracluster_lustre_evictions_total": ("counter", "Times that a server has thrown this client out"),
    "ultracluster_lustre_targets": ("gauge", "Targets (OST and MDT) that this client knows"),
    "ultracluster_lustre_targets_not_connected": ("gauge", "Of these, neither connected nor idle"),
    "ultracluster_lustre_size_bytes": ("gauge", "Size of the file system"),
    "ultracluster_lustre_free_bytes": ("gauge", "What is free"),
    "ultracluster_lustre_files": ("gauge", "Files that it could have"),
    "ultracluster_lustre_files_free": ("gauge", "Files that could still be made"),
    "ultracluster_lustre_efa": ("gauge", "1 where Lustre's network has an EFA interface that is up"),
}
PROBE_SECONDS = 4
"""Longer than that is a stall. FSx answers in milliseconds."""
_MOST_MOUNTS, _MOST_TARGETS = 4, 4000
# where releases from 2.10 to 2.15 keep them, as `lctl get_param` looks for them
_BASES = ("sys/kernel/debug/lustre", "proc/fs/lustre", "sys/fs/lustre")
_NIS = ("sys/kernel/debug/lnet/nis", "proc/sys/lnet/nis")
_STATS = re.compile(r"(\w+)\s+(\d+) samples \[(bytes|usecs?|reqs|regs)\](?: \d+ \d+ (\d+))?")
_METADATA = {
    "open", "close", "getattr", "setattr", "getxattr", "setxattr", "create", "link", "unlink", "symlink",
    "mkdir", "rmdir", "mknod", "rename", "statfs", "readdir", "lookup", "inode_permission", "truncate",
}  # fmt: skip
_HISTORY = re.compile(r"\[\s*(\d{1,12}),\s*([A-Z_]{1,20})\s*\]")


def collect(host):
    mounts = mounted(host)
    if not mounts:
        return
    efa = _efa(host)
    kept = host.kept("lustre")
    for fs, (mount_name, _) in mounts.items():
        yield "ultracluster_lustre_info", {"fs": fs, "mount_name": mount_name}, 1
        if efa is not None:
            yield "ultracluster_lustre_efa", {"fs": fs}, efa
        for name, value in {**_counters(host, mount_name), **_targets(host, mount_name, kept)}.items():
            yield f"ultracluster_lustre_{name}", {"fs": fs}, value
    host.keep("lustre", kept)
    yield from _probes(host, {fs: path for fs, (_, path) in mounts.items()})


def mounted(host):
    """Mount name and path of each file system, by the name that people know: where it is mounted.

    Kubernetes mounts one for each pod, at paths that nobody knows: then it is the mount name.
    """
    found, above = {}, ""
    text = host.text("proc/1/mounts")
    if text is None:
        # of a process of its own: in a container without the right to look at others the node's mounts lie
        # below the place where it sees the node
        text, above = host.text("proc/mounts") or "", str(host.root).rstrip("/")
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) < 3 or words[2] != "lustre" or ":/" not in words[0]:
            continue
        mount_name = words[0].rpartition(":/")[2].split("/")[0]
        path = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), words[1])
        if path.startswith(f"{above}/"):
            path = path[len(above) :]
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,16}", mount_name):
            continue
        if mount_name not in found or len(path) < len(found[mount_name]):
            found[mount_name] = path
    named = {
        path if not path.startswith("/var/lib/kubelet/") else mount_name: (mount_name, path)
        for mount_name, path in found.items()
    }
    return dict(sorted(named.items())[:_MOST_MOUNTS])


def _counters(host, mount_name):
    for base in _BASES:
        for instance in host.names(f"{base}/llite"):
            if not instance.startswith(f"{mount_name}-"):
                continue
            text = host.text(f"{base}/llite/{instance}/stats")
            if text is not None:
                return _of_stats(text)
    return {}


def _of_stats(text):
    """Sums of lines such as `read_bytes 12 samples [bytes] LEAST MOST SUM`; 0 where nothing was counted yet.

    Older releases count metadata operations and do not time them (`[regs]`): a mean needs both of all.
    """
    microseconds = []
    told = dict.fromkeys(
        ("read_bytes_total", "write_bytes_total", "read_operations_total", "write_operations_total",
         "metadata_operations_total"), 0,
    )  # fmt: skip
    for line in text.splitlines():
        match = _STATS.match(line)
        if not match:
            continue
        if match[1] in ("read_bytes", "write_bytes"):
            kind = match[1].partition("_")[0]
            told[f"{kind}_operations_total"] = int(match[2])
            told[f"{kind}_bytes_total"] = int(match[4] or 0)
        elif match[1] in _METADATA:
            told["metadata_operations_total"] += int(match[2])
            microseconds.append(int(match[4]) if match[3].startswith("usec") and match[4] else None)
    if microseconds and None not in microseconds:
        told["metadata_seconds_total"] = sum(microseconds) / 1e6
    return told


def _targets(host, mount_name, kept):
    """Of the states of all targets together: for each the series of 1,000 clients would be too many."""
    known = kept.setdefault(mount_name, {})
    if not isinstance(known, dict) or not isinstance(known.get("seen", {}), dict):
        known = kept[mount_name] = {}
    seen, found = known.setdefault("seen", {}), {}
    away = 0
    for base in _BASES:
        for kind in ("osc", "mdc"):
            for target in host.names(f"{base}/{kind}", _MOST_TARGETS):
                if not target.startswith(f"{mount_name}-") or target in found:
                    continue
                text = host.text(f"{base}/{kind}/{target}/state", 8192)
                if text is None:
                    continue
                current = re.search(r"current_state:\s*(\w+)", text)
                # an OSC that nobody uses goes idle by itself
                away += bool(current) and current[1] not in ("FULL", "IDLE")
                found[target] = _events(text, seen.get(target), known)
    if not found:
        return {}
    known["seen"] = found
    return {
        "targets": len(found),
        "targets_not_connected": away,
        "reconnects_total": known.get("DISCONN", 0),
        "evictions_total": known.get("EVICTED", 0),
    }


def _events(text, since, known):
    """Adds what the history of a target's states has since then; returns its newest time."""
    newest = since if isinstance(since, int) else 0
    for at, state in _HISTORY.findall(text):
        if state in ("DISCONN", "EVICTED") and int(at) > (since if isinstance(since, int) else 0):
            before = known.get(state)
            known[state] = (before if isinstance(before, int) else 0) + 1
        newest = max(newest, int(at))
    return newest


def _efa(host):
    """None where the network's interfaces cannot be read."""
    for path in _NIS:
        text = host.text(path)
        if text is not None:
            return any("@efa" in line and " up " in f"{line} " for line in text.splitlines())
    return None


# ---- the probe


def _probes(host, paths):
    kept, begun = host.kept("lustre_probe"), {}
    for fs, path in paths.items():
        before = kept.get(fs)
        if isinstance(before, list) and len(before) == 2 and started(before[0]) == before[1] is not None:
            yield "ultracluster_lustre_stalled", {"fs": fs}, 1
            continue
        begun[fs] = _begin(host.path(path), host.is_mount)
    late = {fs: before for fs, before in kept.items() if fs in paths and fs not in begun}
    until = time.monotonic() + PROBE_SECONDS
    for fs, (pid, pipe) in begun.items():
        told = _answer(pid, pipe, until)
        if told is None:
            late[fs] = [pid, started(pid)]
        yield "ultracluster_lustre_stalled", {"fs": fs}, told is None
        for name, value in (told or {}).items():
            yield f"ultracluster_lustre_{name}", {"fs": fs}, value
    host.keep("lustre_probe", late)


def _begin(path, is_mount):
    """A process of its own, which nothing here waits for; its number and the pipe that it answers on."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # it may outlive its parent by days: no pipe of others may stay open in it
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        os.dup2(0, 2)
        os.dup2(writer, 3)
        os.closerange(4, 4096)
        os.chdir("/")
        os.write(3, json.dumps(_ask(path) if is_mount(path) else {}).encode())
    finally:
        os._exit(0)


def _ask(path):
    """Both kinds of server: statfs asks all targets, and a name that is not there the MDT."""
    began = time.monotonic()
    found = os.statvfs(path)
    os.path.lexists(path / ".ultracluster-probe")
    return {
        "probe_seconds": time.monotonic() - began,
        "size_bytes": found.f_blocks * found.f_frsize,
        "free_bytes": found.f_bavail * found.f_frsize,
        "files": found.f_files,
        "files_free": found.f_favail,
    }


def _answer(pid, pipe, until):
    """What the probe says; nothing where it failed; None while it hangs, when it stays behind."""
    try:
        ready = select.select([pipe], [], [], max(0, until - time.monotonic()))[0]
        text = os.read(pipe, 4096) if ready else None
    finally:
        os.close(pipe)
    if text is None:
        os.kill(pid, signal.SIGKILL)  # it may be slow only; what hangs in the kernel does not hear it
        until = time.monotonic() + 0.3
        while started(pid) is not None and time.monotonic() < until:
            time.sleep(0.02)
        return None
    os.waitpid(pid, 0)
    try:
        return json.loads(text)
    except ValueError:
        return {}
