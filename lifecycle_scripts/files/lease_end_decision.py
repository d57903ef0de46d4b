"""What is done about the end of a lease (a Capacity Block, a training plan): a pure function.

Times are seconds since 1970. Python 3.9 and newer.
"""

import re
import time
from typing import Any, NamedTuple

PREFIX = "ultracluster_lease_"
"""Of our reservations' names; the group's name follows."""
LEAST = 11 * 60
"""Seconds to which backfill may cut the limit of a job that is let in."""
OPTED_IN = re.compile(r"ultracluster:signal=(USR1|USR2)(?![A-Z0-9])")
"""In a job's comment: its batch script traps this signal and writes a checkpoint."""


class Lease(NamedTuple):
    """Nodes that go away together."""

    group: str
    nodes: tuple
    """Those that Slurm knows."""
    partition: str
    begin: Any
    end: Any
    """Both None while they are not known."""
    reclaimed_minutes: int
    """Before the end, when AWS begins to take the nodes."""


class Job(NamedTuple):
    id: str
    limit: Any
    """Seconds; None without one."""
    start: Any = None
    end: Any = None
    """When its limit ends it; None without a limit, and while it waits."""
    nodes: tuple = ()
    partition: str = ""
    least: int = 0
    """Seconds that backfill may cut its limit to; 0 where it may not."""
    requeue: bool = True
    batch: bool = True
    comment: str = ""
    array: str = ""
    """Id of the job array that it is of; its own id otherwise."""


class Reservation(NamedTuple):
    name: str
    start: float
    nodes: tuple


class Action(NamedTuple):
    command: tuple
    words: str
    note: tuple = ()
    """What is to be remembered when it is done: of what, of which job, and the value."""


def stop_time(lease, stop_minutes):
    """When jobs have to be gone from the nodes."""
    return lease.end - 60 * (lease.reclaimed_minutes + stop_minutes)


def decide(now, leases, reservations, running, pending, remembered, signal_minutes, stop_minutes):
    """What is to be done now; the same again gives nothing more.

    Args:
        leases: of this cluster.
        reservations: those of Slurm with our prefix.
        running: jobs on any node of a lease.
        pending: jobs that wait in a partition of a lease.
        remembered: `{"limits": {array: seconds or None}, "signalled": {job: time}}` of earlier notes.
        signal_minutes: before AWS takes the nodes.
        stop_minutes: before AWS takes the nodes.
    """
    have = {one.name: one for one in reservations}
    actions = [
        Action(("scontrol", "delete", f"ReservationName={name}"), f"{name}: its lease is gone")
        for name in have
        if name not in {PREFIX + lease.group for lease in leases}
    ]
    for lease in leases:
        if lease.end is None or not lease.nodes or (lease.begin is not None and lease.begin > now):
            continue
        stop = stop_time(lease, stop_minutes)
        actions += _reserve(now, lease, stop, have.get(PREFIX + lease.group))
        gone = lease.end - 60 * lease.reclaimed_minutes
        for job in running:
            if {*job.nodes} & {*lease.nodes}:
                actions += _running(now, job, gone, gone - 60 * signal_minutes, stop, remembered)
        for job in pending:
            if lease.partition in job.partition.split(","):
                actions += _let_in(now, job, stop, remembered["limits"])
    return actions


def _reserve(now, lease, stop, there):
    name, start = PREFIX + lease.group, max(stop, now)
    what = f"StartTime={_slurm_time(start)} Duration=UNLIMITED Nodes={','.join(lease.nodes)}".split()
    words = ("scontrol", "create", "reservation", f"ReservationName={name}", *what)
    make = Action(
        (*words, "Users=root", "Flags=MAINT,IGNORE_JOBS"),
        f"{name}: from {_slurm_time(start)} on nothing runs on {len(lease.nodes)} nodes",
    )
    if there is None:
        return [make]
    same_start = abs(there.start - stop) < 60 or (there.start <= now and stop <= now)
    if same_start and {*there.nodes} == {*lease.nodes}:
        return []
    if there.start <= now < stop:
        # "Reservation already started": Slurm does not move it
        return [
            Action(("scontrol", "delete", f"ReservationName={name}"), f"{name}: the lease is longer"),
            make,
        ]
    change = what[2:] if same_start else what
    return [
        Action(
            ("scontrol", "update", "reservation", f"ReservationName={name}", *change),
            f"{name}: {' '.join(change)}",
        )
    ]


def _running(now, job, gone, signal, stop, remembered):
    """Of a job on nodes of the lease."""
    if job.array in remembered["limits"]:
        # Backfill has cut its limit to let it in. A requeue is to end it, not a limit that nobody set.
        own = remembered["limits"][job.array]
        until = gone + 600 if own is None else min(gone + 600, job.start + own)
        if job.end is not None and job.end < until - 60:
            minutes = int((until - job.start) // 60) + 1
            yield Action(
                ("scontrol", "update", f"JobId={job.id}", f"TimeLimit={minutes}"),
                f"job {job.id}: may run until its nodes go",
            )
    elif job.end is not None and job.end <= gone:
        return
    wanted = OPTED_IN.search(job.comment)
    # once for each end; one that is extended moves by days
    told = gone - remembered["signalled"].get(job.id, 0) < 3600
    if now >= signal and wanted and not told:
        yield Action(
            ("scancel", "--batch", f"--signal={wanted.group(1)}", job.id),
            f"job {job.id}: {wanted.group(1)}, its nodes go at {_slurm_time(gone)}",
            ("signalled", job.id, int(gone)),
        )
    if now >= stop and job.batch and job.requeue:
        yield Action(("scontrol", "requeue", job.id), f"job {job.id}: back into the queue, its nodes go")
    elif now >= stop:
        yield Action((), f"job {job.id} cannot be put back into the queue: it runs until its nodes go")


def _let_in(now, job, stop, limits):
    """A job that does not say how long it runs, or writes checkpoints, starts although it may not finish."""
    if job.array in limits:
        own = limits[job.array]
        if job.limit != own:
            # it was requeued; Slurm keeps what backfill and this have made of the limit
            text = "UNLIMITED" if own is None else max(1, int(own // 60))
            command = ("scontrol", "update", f"JobId={job.id}", f"TimeLimit={text}")
            yield Action(command, f"job {job.id}: its own limit again")
        return
    opted_in = OPTED_IN.search(job.comment) and job.batch and job.requeue
    if job.least or stop - now <= LEAST:
        return
    if job.limit is None or (opted_in and now + job.limit > stop and job.limit > LEAST):
        yield Action(
            ("scontrol", "update", f"JobId={job.id}", f"TimeMin={LEAST // 60}"),
            f"job {job.id} may start before the lease ends",
            ("limits", job.array, job.limit),
        )


def _slurm_time(seconds):
    """Slurm's daemons and this one share a clock and its zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
