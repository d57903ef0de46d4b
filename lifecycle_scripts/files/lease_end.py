#!/usr/bin/python3 -IS
"""Keeps jobs from being lost when a lease ends: a Capacity Block, or a training plan.

    lease_end.py lease.json

Each minute: asks AWS for the end (it moves when a lease is extended), keeps a reservation of Slurm from a few
minutes before on the nodes of that lease, so that what cannot finish does not start there, lets in what says
no limit or writes checkpoints, signals those a while before, and puts jobs that may be requeued back into the
queue when the reservation begins. A second run does nothing twice.

Status 0: all done. 1: something could not be done; the last line says what.
"""

import json
import os
import re
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

# Slurm of ParallelCluster and HyperPod, Slurm of AWS PCS, and the AWS CLI: no service has all on its PATH
PLACES = [
    "/usr/local/bin",
    "/opt/slurm/bin",
    *sorted(map(str, Path("/opt/aws/pcs/scheduler").glob("slurm-*/bin"))),
]
os.environ["PATH"] = ":".join([os.environ.get("PATH", "/usr/bin:/bin"), *PLACES])
ROOT = os.environ.get("ULTRACLUSTER_ROOT", "")
HERE = Path("/opt/ultracluster/teams")
# first where this lies, for a copy that is tried elsewhere
sys.path[:0] = [str(Path(__file__).resolve().parent), str(HERE)]

import lease_end_decision as decision  # noqa: E402
from lease_end_times import CannotTellError, call, ends_of, seconds_of_limit, seconds_of_time  # noqa: E402

STATE = Path(f"{ROOT}/var/lib/ultracluster/lease_end.json")
CONFIG = Path(f"{ROOT}/etc/ultracluster/pull")
RESOURCES = Path(f"{ROOT}/opt/ml/config/resource_config.json")
UTC = timezone(timedelta(0), "UTC")
NOT_SAID = ("Partition_Limit", "NOT_SET", "INVALID", "N/A", "")


# ---- what Slurm has


def known_nodes():
    return sorted(set(call("sinfo", "--noheader", "--Node", "--format=%N").split()))


def nodes_of(lease, known, resources):
    """Those of the group, of the nodes that Slurm knows."""
    if pattern := lease["nodes"].get("pattern"):
        return tuple(node for node in known if re.fullmatch(pattern, node))
    group = lease["nodes"].get("instance_group")
    names = set()
    for one in resources.get("InstanceGroups") or []:
        if one.get("Name") == group:
            for instance in one.get("Instances") or []:
                names.add(f"ip-{str(instance.get('CustomerIpAddress')).replace('.', '-')}")
    return tuple(node for node in known if node in names)


# Columns of fixed width: no job writes into another column by its comment, which comes last. Slurm takes a
# comment with a line break: what follows that is no longer than the column, and would be a row of its own
# about anybody's job.
FIELDS = {
    "JobID": 24, "ArrayJobID": 24, "TimeLimit": 24, "StartTime": 24, "EndTime": 24, "MinTime": 24,
    "Requeue": 8, "BatchFlag": 10, "Partition": 200, "Comment": 400,
}  # fmt: skip


def jobs(most, *which):
    """Jobs by squeue's words; `most` is the longest limit of each partition, for those that say none."""
    columns = ",".join(f"{name}:{size}" for name, size in FIELDS.items())
    for line in call("squeue", "--noheader", *which, f"--Format={columns}").split("\n"):
        if len(line) <= FIELDS["Comment"]:
            continue
        told, at = {}, 0
        for name, size in FIELDS.items():
            told[name], at = line[at : at + size].strip(), at + size
        limit = told["TimeLimit"]
        if limit in NOT_SAID:
            limit = most.get(told["Partition"], "UNLIMITED")
        limit = seconds_of_limit(limit)
        yield decision.Job(
            id=told["JobID"],
            limit=limit,
            start=seconds_of_time(told["StartTime"]),
            end=None if limit is None else seconds_of_time(told["EndTime"]),
            partition=told["Partition"],
            least=0 if told["MinTime"] in NOT_SAID else seconds_of_limit(told["MinTime"]) or 0,
            requeue=told["Requeue"] == "1",
            batch=told["BatchFlag"] == "1",
            comment=told["Comment"],
            array=told["ArrayJobID"] or told["JobID"],
        )


def running(leases, most):
    for lease in leases:
        if lease.nodes:
            for job in jobs(most, f"--nodelist={','.join(lease.nodes)}", "--states=R,S,CF"):
                yield job._replace(nodes=lease.nodes)


def reservations():
    found = []
    for line in call("scontrol", "--oneliner", "show", "reservation").splitlines():
        told = dict(re.findall(r"(\S+?)=(\S*)", line))
        name = told.get("ReservationName", "")
        if name.startswith(decision.PREFIX):
            nodes = call("scontrol", "show", "hostnames", told["Nodes"]).split() if told.get("Nodes") else []
            start = seconds_of_time(told.get("StartTime", "")) or 0
            found.append(decision.Reservation(name, start, tuple(nodes)))
    return found


# ---- all of it


def read_json(path):
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def keep(state):
    STATE.parent.mkdir(parents=True, exist_ok=True)
    new = STATE.with_suffix(".new")
    new.write_text(json.dumps(state, sort_keys=True, indent=1) + "\n", encoding="utf-8")
    new.rename(STATE)


def look(document, now, state):
    """What is to be done, the leases, and what could not be known; brings the ends in `state` up to date."""
    config = read_words(CONFIG)
    ends, problems, leases = {}, [], []
    have = reservations()
    known = known_nodes() if document["leases"] else []
    resources = read_json(RESOURCES)
    for lease in document["leases"]:
        ends[lease["id"]], problem = ends_of(lease, now, config.get("REGION", ""), state["ends"])
        problems += [problem] if problem else []
        leases.append(
            decision.Lease(
                group=lease["group"],
                nodes=nodes_of(lease, known, resources),
                partition=lease["partition"],
                begin=ends[lease["id"]].get("begin"),
                end=ends[lease["id"]].get("end"),
                reclaimed_minutes=lease["reclaimed_minutes"],
            )
        )
    state["ends"] = ends
    on, waiting = [], []
    if any(one.end and one.nodes for one in leases):
        most = dict(line.split("|") for line in call("sinfo", "--noheader", "--format=%R|%l").splitlines())
        on = list(running(leases, most))
        partitions = ",".join(sorted({one.partition for one in leases}))
        waiting = list(jobs(most, f"--partition={partitions}", "--states=PD"))
        for key in ("limits", "signalled"):
            there = {one for job in (*on, *waiting) for one in (job.id, job.array)}
            state[key] = {job: value for job, value in state[key].items() if job in there}
    minutes = document["signal_minutes"], document["stop_minutes"]
    return decision.decide(now, leases, have, on, waiting, state, *minutes), leases, problems


def read_words(path):
    try:
        return dict(re.findall(r"^(\w+)=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
    except OSError:
        return {}


def main(arguments):
    try:
        document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        [*document["leases"]], document["signal_minutes"] - document["stop_minutes"]
    except FileNotFoundError:
        print("no document of leases yet")
        return 0
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(f"this is no document of leases: {error!r}")
        return 2
    try:
        state = {key: read_json(STATE).get(key) or {} for key in ("ends", "limits", "signalled")}
        before = json.dumps(state, sort_keys=True)
        actions, leases, problems = look(document, time.time(), state)
    except (CannotTellError, OSError) as error:
        print(f"Slurm cannot be asked: {error}")
        return 0 if not document["leases"] else 1
    for action in actions:
        if action.words:
            print(action.words)
        try:
            if action.command:
                call(*action.command)
            if action.note:
                kind, job, value = action.note
                state[kind][job] = value
        except CannotTellError as error:
            problems.append(str(error))
    if json.dumps(state, sort_keys=True) != before:
        keep(state)
    ends = ", ".join(
        f"{one.group} ({len(one.nodes)} nodes) "
        + (f"until {datetime.fromtimestamp(one.end, UTC):%Y-%m-%d %H:%M} UTC" if one.end else "until ?")
        for one in leases
    )
    print("; ".join([ends or "no leases", *problems]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
