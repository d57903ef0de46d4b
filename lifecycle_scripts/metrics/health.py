"""What the health checks last said, the XIDs that the kernel has logged, and how many accelerators are there.
Python 3.9 and newer.
"""

import json
import re
import subprocess
import threading

NAME, SECONDS = "health", 8
METRICS = {
    "ultracluster_health_result": ("gauge", "Last word of a check: 0 ok, 1 warn, 2 critical, 3 unknown"),
    "ultracluster_health_checked_timestamp_seconds": ("gauge", "When it was said"),
    "ultracluster_health_open_faults": ("gauge", "Faults of this boot that are not answered, and why"),
    "ultracluster_xid_total": ("counter", "XIDs that the kernel has logged since boot"),
    "ultracluster_xid_last_timestamp_seconds": ("gauge", "When the last of them was logged"),
    "ultracluster_gpu_count": ("gauge", "GPUs that the driver serves"),
    "ultracluster_gpu_count_expected": ("gauge", "GPUs that this node should have"),
    "ultracluster_neuron_devices": ("gauge", "Neuron devices that the driver serves"),
    "ultracluster_neuron_devices_expected": ("gauge", "Neuron devices that this node should have"),
}
_CHECKS = "var/lib/ultracluster/health"
_OPEN = ("share", "hour", "foreign", "lock", "slurm", "name", "waiting", "stuck", "dry-run")
"""Answers of a fault that stays open (health_loop/open_faults.py)."""
_RESULTS = {"ok": 0, "warn": 1, "critical": 2, "unknown": 3}
_WORD = re.compile(r"[A-Za-z0-9_-]{1,40}")
_MOST_CHECKS, _MOST_XIDS = 40, 64

JOURNAL = ("journalctl", "--dmesg", "--boot", "--output=json", "--no-pager", "--quiet",
           "--output-fields=MESSAGE,_TRANSPORT")  # fmt: skip
JOURNAL_SECONDS = 4
# Only the kernel writes such lines; a line that tells of a process begins with a user's text
# (health/watch.py).
_XID = re.compile(r"NVRM: Xid \(([^)]{0,80})\): (\d{1,5})(?!\d)")
_ADDRESS = re.compile(r"(?:PCI:)?((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?![0-9a-fA-F])")
_PROCESS = re.compile(r".{0,15}\[\d{1,10}\][: ]", re.DOTALL)


def collect(host):
    yield from _checks(host)
    yield from _open_faults(host)
    expected = host.count("accelerators")
    kind = host.settings.get("accelerator")
    gpus = _gpus(host)
    if gpus or (kind == "nvidia" and expected):
        yield "ultracluster_gpu_count", {}, gpus
        if kind == "nvidia" and expected is not None:
            yield "ultracluster_gpu_count_expected", {}, expected
        yield from _xids(host)
    devices = len(host.names("sys/class/neuron_device"))
    if devices or (kind == "neuron" and expected):
        yield "ultracluster_neuron_devices", {}, devices
        if kind == "neuron" and expected is not None:
            yield "ultracluster_neuron_devices_expected", {}, expected


def _checks(host):
    known = 0
    for name in host.names(_CHECKS):
        check = name[: -len(".json")]
        if not name.endswith(".json") or not _WORD.fullmatch(check) or known >= _MOST_CHECKS:
            continue
        told = host.document(f"{_CHECKS}/{name}")
        if told.get("check") != check or told.get("result") not in _RESULTS:
            continue
        known += 1
        code = str(told.get("code") or told["result"])
        code = code if _WORD.fullmatch(code) else "other"
        yield "ultracluster_health_result", {"check": check, "code": code}, _RESULTS[told["result"]]
        at = told.get("at")
        if isinstance(at, (int, float)) and at > 0:
            yield "ultracluster_health_checked_timestamp_seconds", {"check": check}, at


def _open_faults(host):
    counts = {}
    rows = host.document(f"{_CHECKS}/open.json").get("rows")
    for row in (rows if isinstance(rows, list) else [])[:_MOST_XIDS]:
        found = row.get("finding") if isinstance(row, dict) else None
        if not isinstance(found, dict) or row.get("answer") not in _OPEN:
            continue
        check, code = (str(found.get(key) or "critical") for key in ("check", "code"))
        if _WORD.fullmatch(check) and _WORD.fullmatch(code):
            labels = (check, code, row["answer"])
            counts[labels] = counts.get(labels, 0) + 1
    for (check, code, answer), count in counts.items():
        yield "ultracluster_health_open_faults", {"check": check, "code": code, "answer": answer}, count


def _gpus(host):
    """GPUs that answer on the bus: one that has fallen off it is still listed, and reads as ones."""
    found = 0
    for name in host.names("sys/bus/pci/drivers/nvidia", 256):
        folder = f"sys/bus/pci/drivers/nvidia/{name}"
        if name.count(":") != 2 or not (host.text(f"{folder}/class", 16) or "").startswith("0x03"):
            continue
        try:
            with host.path(f"{folder}/config").open("rb") as file:
                lost = file.read(2) == b"\xff\xff"
        except OSError:
            lost = False
        found += not lost
    return found


# ---- the kernel's log


def _xids(host):
    kept = host.kept("xid")
    times = {key: one for key, one in kept.items() if key != "cursor" and _is_count(one)}
    cursor = kept.get("cursor") if isinstance(kept.get("cursor"), str) else ""
    for entry in _entries(cursor):
        if isinstance(entry.get("__CURSOR"), str):
            cursor = entry["__CURSOR"]
        found = xid_of(entry)
        if not found:
            continue
        key = " ".join(found)
        if key in times or len(times) < _MOST_XIDS:
            at = entry.get("__REALTIME_TIMESTAMP")
            at = int(at) // 10**6 if isinstance(at, str) and at.isdigit() and len(at) < 20 else int(host.now)
            times[key] = [times.get(key, [0, 0])[0] + 1, at]
    host.keep("xid", {**times, "cursor": cursor})
    for key, (count, at) in times.items():
        xid, _, gpu = key.partition(" ")
        yield "ultracluster_xid_total", {"xid": xid, "gpu": gpu}, count
        yield "ultracluster_xid_last_timestamp_seconds", {"xid": xid, "gpu": gpu}, at


def xid_of(entry):
    """Code and PCI address of a GPU's fault; None for any other line."""
    message = entry.get("MESSAGE")
    if entry.get("_TRANSPORT") != "kernel" or not isinstance(message, str) or _PROCESS.match(message):
        return None
    match = _XID.match(message)
    if not match:
        return None
    address = _ADDRESS.search(match[1])
    if not address:
        return str(int(match[2])), "unknown"
    parts = address[1].lower().split(":")
    return str(int(match[2])), ":".join([parts[0][-4:] if len(parts) == 3 else "0000", *parts[-2:]])


def _is_count(one):
    return isinstance(one, list) and len(one) == 2 and all(isinstance(part, int) for part in one)


def _entries(cursor):
    """Entries behind the cursor, as far as they can be read in time: the next round goes on from there."""
    after = [f"--after-cursor={cursor}"] if cursor else []
    try:
        process = subprocess.Popen(
            [*JOURNAL, *after], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return
    late = threading.Timer(JOURNAL_SECONDS, process.kill)
    late.daemon = True
    late.start()
    try:
        for line in process.stdout:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                yield entry
    finally:
        late.cancel()
        process.kill()
        process.stdout.close()
        process.wait()
