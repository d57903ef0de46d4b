"""What slurmctld knows and its own metrics do not tell: which node is drained for what, which job runs
where, and how long the queue waits. On one node of a cluster, and at most once a minute. Python 3.9 and
newer.
"""

import calendar
import os
import re
import time
from pathlib import Path

from host import CannotTellError
from slurm_names import expanded

NAME, SECONDS = "slurm", 18
METRICS = {
    "ultracluster_slurm_up": ("gauge", "1 where slurmctld answers"),
    "ultracluster_slurm_node_state": ("gauge", "1, with the state of a node"),
    "ultracluster_slurm_node_drained": (
        "gauge",
        "1 for a node that takes no job, with the check that drained it",
    ),
    "ultracluster_slurm_node_drained_timestamp_seconds": ("gauge", "Since when"),
    "ultracluster_slurm_job_node": ("gauge", "1 for each node of a running job"),
    "ultracluster_slurm_pending_seconds": ("gauge", "How long the oldest pending job waits"),
    "ultracluster_slurm_pending_jobs": ("gauge", "Pending jobs"),
    "ultracluster_slurm_rows_left_out": ("gauge", "Nodes and jobs beyond the limits"),
}
EACH_SECONDS = 55
"""Between two questions to slurmctld; rounds in between say the same again."""
COMMAND_SECONDS = 4
MOST_NODES, MOST_ROWS, MOST_WAITS = 5000, 10_000, 100
_OUT = {"drain", "drained", "draining", "down", "fail", "failed", "failing"}
_MARKS = {
    "*": "not_responding", "~": "powered_down", "#": "powering_up", "!": "power_down", "%": "powering_down",
    "$": "maint", "@": "reboot_requested", "^": "reboot_issued",
}  # fmt: skip
"""What sinfo puts behind a state, of nodes that are not simply there (sinfo's manual, NODE STATE CODES)."""
_PREFIX = "ultracluster:"
# Slurm of ParallelCluster and HyperPod, and of AWS PCS: no service has both on its PATH.
_PLACES = ["/opt/slurm/bin", *sorted(map(str, Path("/opt/aws/pcs/scheduler").glob("slurm-*/bin")))]
# Times without a zone are the zone of who asks.
_ENVIRONMENT = {"TZ": "UTC", "SLURM_TIME_FORMAT": "standard", "LC_ALL": "C"}


def collect(host):
    if host.settings.get("slurm") is not True:
        return
    kept = host.kept("slurm")
    at = kept.get("at")
    if not (
        isinstance(at, (int, float)) and 0 <= host.now - at < EACH_SECONDS and _is_rows(kept.get("rows"))
    ):
        try:
            rows = [*asked(host), ["ultracluster_slurm_up", {}, 1]]
        except CannotTellError:
            rows = [["ultracluster_slurm_up", {}, 0]]
        kept = {"at": host.now, "rows": rows}
        host.keep("slurm", kept)
    yield from map(tuple, kept["rows"])


def asked(host):
    """All samples.

    Raises:
        CannotTellError: slurmctld does not answer.
    """
    left_out = {"nodes": 0, "jobs": 0}
    # the reason, which is anybody's text, comes last
    nodes = _ask(host, "sinfo", "--Node", "--format=%N|%T|%H|%E")
    yield from _nodes(nodes, left_out)
    running = _ask(host, "squeue", "--states=RUNNING,COMPLETING,SUSPENDED", "--format=%A|%u|%a|%P|%N")
    yield from _running(running, left_out, private=_is_private(_ask(host, "scontrol", "show", "config")))
    yield from _pending(_ask(host, "squeue", "--states=PENDING", "--format=%P|%V|%r"), host.now)
    for what, count in left_out.items():
        yield "ultracluster_slurm_rows_left_out", {"what": what}, count


def _ask(host, *words):
    path = ":".join([os.environ.get("PATH", "/usr/bin:/bin"), *_PLACES])
    environment = {**_ENVIRONMENT, "PATH": path}
    words = words if words[0] == "scontrol" else (*words, "--noheader")
    return host.run(*words, seconds=COMMAND_SECONDS, environment=environment).splitlines()


def _nodes(lines, left_out):
    seen = set()
    for line in lines:
        node, state, since, reason = [*line.split("|", 3), "", "", ""][:4]
        # one line for each partition of a node
        if not node or node in seen:
            continue
        seen.add(node)
        if len(seen) > MOST_NODES:
            left_out["nodes"] += 1
            continue
        base, marks = re.match(r"([a-z_+]*)(.{0,8})", state.strip().lower()).groups()
        state = "+".join([base or "unknown", *(_MARKS[mark] for mark in marks if mark in _MARKS)])
        yield "ultracluster_slurm_node_state", {"slurm_node": node, "state": state}, 1
        if base not in _OUT:
            continue
        check, code = "other", ""
        match = re.match(re.escape(_PREFIX) + r"([\w-]{1,40}):([\w-]{1,40})", reason)
        if match:
            check, code = match.groups()
        labels = {"slurm_node": node, "check": check, "code": code}
        yield "ultracluster_slurm_node_drained", labels, 1
        at = _seconds(since)
        if at:
            yield "ultracluster_slurm_node_drained_timestamp_seconds", {"slurm_node": node}, at


def _is_private(lines):
    """Whether Slurm hides jobs from other users (PrivateData): root sees them, and must not tell whose."""
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "PrivateData":
            return bool({"jobs", "users", "all"} & {one.strip().lower() for one in value.split(",")})
    return False


def _running(lines, left_out, private):
    rows = 0
    for line in lines:
        words = line.split("|")
        if len(words) != 5 or not words[0].isdigit():
            continue
        job, user, account, partition, nodes = words
        names = expanded(nodes)
        # a job is there with all of its nodes, or not at all: half of one would look like a small job
        if rows + len(names) > MOST_ROWS:
            left_out["jobs"] += 1
            continue
        rows += len(names)
        for node in names:
            labels = {"job_id": job, "user": "" if private else user,
                      "account": "" if private else account.replace("(null)", ""),
                      "partition": partition, "slurm_node": node}  # fmt: skip
            yield "ultracluster_slurm_job_node", labels, 1


def _pending(lines, now):
    waits = {}
    for line in lines:
        partition, submitted, reason = [*line.split("|", 2), "", ""][:3]
        at = _seconds(submitted)
        if at is None:
            continue
        # such as `ReqNodeNotAvail, UnavailableNodes:n[1-90]`: the first word
        reason = re.match(r"\(?(\w{0,40})", reason)[1] or "none"
        # of a job for several partitions each
        for one in partition.split(",")[:8]:
            key = (one, reason)
            if key in waits or len(waits) < MOST_WAITS:
                count, oldest = waits.get(key, (0, at))
                waits[key] = (count + 1, min(oldest, at))
    for (partition, reason), (count, oldest) in waits.items():
        labels = {"partition": partition, "reason": reason}
        yield "ultracluster_slurm_pending_jobs", labels, count
        yield "ultracluster_slurm_pending_seconds", labels, max(0, now - oldest)


def _seconds(text):
    """Of Slurm's time in UTC; None where it says none."""
    try:
        return calendar.timegm(time.strptime(text.strip(), "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None


def _is_rows(rows):
    return isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 3 and isinstance(row[1], dict) for row in rows
    )
