"""The job that has met a fault, and what is done with it. No other job is touched for it."""

import contextlib
import re

import place
from place import say
from slurm import SlurmError

SIGNAL = "ultracluster:signal=USR1"
"""In the comment of a job that has a handler for it. Any other job would end by the signal, and fail."""
_PID = re.compile(r"\bpid='?(\d{1,10})\b")
_CGROUP = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)
_AWAY = re.compile(r"timed out|[Uu]nable to contact|connect failure|[Ss]ocket")
_LATE_SECONDS = 2
"""slurmctld knows the start of a job to the second."""


def met(queue, at, of_process=""):
    """The job, as (id, user), that was on the node at that moment: that of the process, else the only one.

    Args:
        queue: `Slurm.queue` of the node.
        at: seconds since 1970.
        of_process: the job whose process the line names; empty where it names none, or that has ended.
    """
    there = {job: user for job, start, user in queue if start <= at + _LATE_SECONDS}
    if of_process in there:
        return of_process, there[of_process]
    return next(iter(there.items())) if len(there) == 1 and not of_process else ("", "")


def of_process(finding):
    """The job of the process that a line of the kernel names, by its cgroup."""
    named = _PID.search(finding.detail) if finding.event else None
    if not named:
        return ""
    try:
        text = (place.ROOT / f"proc/{named[1]}/cgroup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    found = _CGROUP.search(text)
    return found[1] if found else ""


def requeue_once(slurm, node, finding, job):
    """Queues the job again that has met a fault, once for one cause; the next time it is held. The job itself
    carries that with it (AdminComment, which no user can write), wherever it runs. Returns whether it was.

    Raises:
        SlurmError: slurmctld does not answer.
    """
    there = {known for known, start, _ in slurm.queue(node) if start <= finding.at + _LATE_SECONDS}
    if job not in there:
        say(f"{finding.by}: job {job}, which met it, is not on this node any more: none is queued again")
        return False
    mark = f"ultracluster:requeued:{finding.by}"
    note = slurm.job_note(job)
    verb = "requeuehold" if mark in note.split() else "requeue"
    words = f"{note} {mark}" if verb == "requeue" else f"{note} ultracluster:held:{finding.by}"
    try:
        # first, so that it is never queued again twice
        slurm.run("scontrol", "update", f"JobId={job}", f"AdminComment={words.strip()}")
    except SlurmError as error:
        say(f"that job {job} is queued again cannot be noted with it: {error}")
    try:
        slurm.run("scontrol", verb, job)
    except SlurmError as error:
        if not _AWAY.search(str(error)):
            say(f"job {job} cannot be queued again: {error}")
            return False
        # The next try must not find it noted.
        with contextlib.suppress(SlurmError):
            slurm.run("scontrol", "update", f"JobId={job}", f"AdminComment={note}")
        raise
    if verb == "requeue":
        say(f"job {job} is queued again")
    else:
        say(f"job {job} has met {finding.by} again after it was queued again for it: it is held")
    return True


def requeue_all(slurm, node):
    """The jobs of a node that is to be rebooted or replaced."""
    for job in slurm.jobs(node):
        try:
            slurm.run("scontrol", "requeue", job)
            say(f"job {job} is queued again")
        except SlurmError as error:
            say(f"job {job} cannot be queued again, the node waits for its end: {error}")


def warn(slurm, node, seconds):
    for job in slurm.jobs(node):
        with contextlib.suppress(SlurmError):
            if SIGNAL in slurm.job_comment(job):
                slurm.run("scancel", "--batch", "--signal=USR1", job)
                say(f"job {job} was sent USR1: {seconds} s for a checkpoint")
