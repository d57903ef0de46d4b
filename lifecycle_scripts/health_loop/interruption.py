"""The notice that EC2 reclaims this instance, two minutes before: jobs are signalled, then queued again.

The notice is in the instance's metadata (Amazon EC2 User Guide, Spot Instance interruption notices:
`spot/instance-action`, to be asked for every 5 seconds). Whether an interruptible Capacity Reservation has it
there, too, is not published: its instances are asked in the same way.
"""

import calendar
import contextlib
import json
import os
import time
import urllib.error
import urllib.request

import jobs
import place
from known import MOVING
from place import say

METADATA = os.environ.get("ULTRACLUSTER_METADATA", "http://169.254.169.254")
REASON = "EC2 takes this instance back at "
"""Not among the reasons of our checks: nothing here gives the node back but the end of the notice."""
KEPT = ("on-demand", "scheduled", "capacity-block")
"""Life cycles of instances that no notice is sent to; leases have an end of their own (lease_end.py)."""
STATE = place.RUN / "interruption.json"
_SECONDS = float(os.environ.get("ULTRACLUSTER_NOTICE_SECONDS", "5"))
_REQUEUE_SECONDS = 30
"""Before the instance goes: until then jobs write their checkpoint."""
_TOKEN_SECONDS = 3600
_LONGEST = 600
"""Seconds ahead in which a notice is believed; EC2 gives two minutes."""


class Metadata:
    """The instance's metadata, by version 2 of its service."""

    def __init__(self):
        self.token, self.until = "", 0.0

    def read(self, path):
        """A category as text; None where the service has none of it.

        Raises:
            OSError: the service does not answer.
        """
        if time.monotonic() >= self.until:
            header = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
            self.token = self._ask("/latest/api/token", header, "PUT")
            self.until = time.monotonic() + _TOKEN_SECONDS / 2
        try:
            return self._ask(f"/latest/meta-data/{path}", {"X-aws-ec2-metadata-token": self.token}, "GET")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            self.until = 0.0
            raise

    @staticmethod
    def _ask(path, headers, method):
        request = urllib.request.Request(METADATA + path, headers=headers, method=method)  # noqa: S310
        # no proxy of the environment: it would be asked for its own instance
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=2) as answer:
            return answer.read(4096).decode("utf-8", "replace").strip()


def notice(text, now):
    """When the instance goes, in seconds since 1970; None where the text is no notice of that."""
    try:
        told = json.loads(text or "null")
        at = calendar.timegm(time.strptime(told["time"], "%Y-%m-%dT%H:%M:%SZ"))
    except (ValueError, TypeError, KeyError):
        return None
    return at if told.get("action") != "hibernate" and now - 60 < at <= now + _LONGEST else None


class Interruption:
    """State of a notice, and what was done about it: in a file, so that no restart of the service does it
    twice."""

    def __init__(self, slurm, orchestrator, metadata=None):
        self.slurm, self.orchestrator = slurm, orchestrator
        self.metadata = metadata or Metadata()

    def step(self, name, now):
        """One look, and what is due by it.

        Raises:
            OSError: metadata do not answer, which is no notice and no end of one.
            SlurmError: slurmctld does not answer; the next look tries again.
        """
        at = notice(self.metadata.read("spot/instance-action"), now)
        done = place.read(STATE, {})
        if at is None:
            # a notice whose moment has passed may be withdrawn, too: the node is still there
            if done:
                self._give_back(name)
                STATE.unlink()
            return
        if abs(done.get("at", 0) - at) > 60:
            done = {"at": at}
            say(f"{REASON}{_clock(at)}")
        left = int(max(0, at - now - _REQUEUE_SECONDS))
        for what, due, act in (
            ("closed", True, lambda: self._close(name, at)),
            (
                "signalled",
                True,
                lambda: jobs.warn(self.slurm, name, left),
            ),
            ("requeued", now >= at - _REQUEUE_SECONDS, lambda: jobs.requeue_all(self.slurm, name)),
        ):
            if due and not done.get(what):
                act()
                done[what] = True
                place.write(STATE, done)

    def _close(self, name, at):
        """No job begins here any more. PCS launches another instance for a node that is powered down, and
        would keep the drain of one that has ended; ParallelCluster replaces one that is drained."""
        state = "POWER_DOWN_ASAP" if self.orchestrator == "pcs" else "DRAIN"
        self.slurm.update(name, f"State={state}", f"Reason={REASON}{_clock(at)}")

    def _give_back(self, name):
        node = self.slurm.node(name)
        # what is powered down already is replaced
        if node.reason.startswith(REASON) and "DRAIN" in node.states and not node.states & MOVING:
            self.slurm.update(name, "State=RESUME")
            say("EC2 has withdrawn its notice: the node takes jobs again")


def follow(slurm, name_of, orchestrator):
    """For ever, beside the loop: its looks may take longer than the notice lasts.

    Args:
        name_of: returns the node's name in Slurm, or None while it is not known.
    """
    metadata, said = Metadata(), ""
    interruption = Interruption(slurm, orchestrator, metadata)
    kept = None
    while True:
        try:
            if kept is None:
                kept = metadata.read("instance-life-cycle") in KEPT
            if kept:
                return
            if name := name_of():
                interruption.step(name, time.time())
            said = ""
        except Exception as error:  # silence or a mistake: the next look may see the notice
            if str(error) != said:
                said = str(error)
                say(f"notice of EC2: {type(error).__name__}: {said}")
        with contextlib.suppress(InterruptedError):
            time.sleep(_SECONDS)


def _clock(at):
    return time.strftime("%H:%M:%S UTC", time.gmtime(at))
