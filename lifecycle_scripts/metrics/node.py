"""The node itself: processors, the release that it was brought to, what it costs, and, on a head node, when
leases end. Python 3.9 and newer.
"""

import json
import os

NAME, SECONDS = "node", 5
METRICS = {
    "ultracluster_node_cpu_seconds_total": ("counter", "Time of all processors together"),
    "ultracluster_node_cpus": ("gauge", "Processors"),
    "ultracluster_node_release_info": ("gauge", "1, with the release of the node and what came of it"),
    "ultracluster_node_components_missing": ("gauge", "Wanted components that the node does not have"),
    "ultracluster_node_boot_timestamp_seconds": ("gauge", "When this node booted"),
    "ultracluster_node_usd_per_hour": ("gauge", "List price of this node"),
    "ultracluster_lease_end_timestamp_seconds": ("gauge", "When the lease of a group ends"),
}
_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_READY, _REPORT = "run/ultracluster/ready", "var/log/ultracluster/report.jsonl"
_LEASES, _ENDS = "var/lib/ultracluster/state/lease.json", "var/lib/ultracluster/lease_end.json"
_STATES = ("ready", "degraded", "failed")


def collect(host):
    yield from _processors(host)
    yield from _release(host)
    price = host.settings.get("usd_per_hour")
    if isinstance(price, (int, float)) and not isinstance(price, bool) and price > 0:
        yield "ultracluster_node_usd_per_hour", {}, price
    ends = host.document(_ENDS).get("ends")
    leases = host.document(_LEASES).get("leases")
    for lease in leases[:64] if isinstance(leases, list) and isinstance(ends, dict) else ():
        if isinstance(lease, dict):
            end = ends.get(str(lease.get("id")))
            end = end.get("end") if isinstance(end, dict) else None
            yield "ultracluster_lease_end_timestamp_seconds", {"lease_group": str(lease.get("group"))}, end


def _processors(host):
    """All together: for each of 192 the series would cost more than those of eight GPUs."""
    processors = 0
    for line in (host.text("proc/stat") or "").splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "cpu":
            ticks = os.sysconf("SC_CLK_TCK")
            for at, mode in enumerate(_MODES, 1):
                if words[at : at + 1] and words[at].isdigit():
                    yield "ultracluster_node_cpu_seconds_total", {"mode": mode}, int(words[at]) / ticks
        elif words[0].startswith("cpu"):
            processors += 1
        elif words[0] == "btime" and words[1:] and words[1].isdigit():
            yield "ultracluster_node_boot_timestamp_seconds", {}, int(words[1])
    if processors:
        yield "ultracluster_node_cpus", {}, processors


def _release(host):
    """Of the last run's report. The file of a run that has ended is gone after a boot, its report is not."""
    told = host.document(_READY)
    if not told:
        for line in reversed(host.tail(_REPORT).splitlines()):
            try:
                told = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(told, dict):
                continue
            if told.get("run") != "ended":
                # a step, behind which no run has ended yet
                told = {**told, "state": "running", "degraded": None}
            break
    if not told:
        return
    state = told.get("state") if told.get("state") in (*_STATES, "running") else "unknown"
    release = told.get("release") or host.settings.get("release") or "none"
    yield "ultracluster_node_release_info", {"release": str(release), "state": state}, 1
    if isinstance(told.get("degraded"), list):
        yield "ultracluster_node_components_missing", {}, len(told["degraded"])
