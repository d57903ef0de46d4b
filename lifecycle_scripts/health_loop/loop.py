"""The health loop of one node: looks, decides (decide.py), and does it.

Where it is called from: Slurm's prolog, epilog and HealthCheckProgram, and a service that follows the
kernel's log, looks after each boot, and goes on with a drained node (main.py). No error in here may end
a job or a node.
"""

import contextlib
import fcntl
import os
import subprocess
import time
from dataclasses import replace

import checks
import decide
import place
from known import ACTION_REBOOT, ACTION_REPLACE, MOVING, Finding, memory_of
from place import say
from slurm import Slurm, SlurmError

_ASKED = "asked.json"
"""When slurmctld last said that this node is not held by us."""
_LOOK = "look.json"
"""What the last look found; its age is counted on the clock that no one sets."""
_PAUSE_SECONDS = int(os.environ.get("ULTRACLUSTER_HEALTH_PAUSE", "60"))
"""Between two looks that may give a node back."""
_AGAIN_SECONDS = 120
"""Until the same thing is asked for again, where it has shown no effect."""
_ASK_SECONDS = 8 * float(os.environ.get("ULTRACLUSTER_HEALTH_TICK", "15"))
"""Between two questions whether this node is held by us, where nothing here has drained it."""
_SAME_FAULT_SECONDS = {True: 30, False: 900}
"""So long after a job was queued again its contained error is told once more: by the watcher, by a check."""
SIGNAL = "ultracluster:signal=USR1"
"""In the comment of a job that has a handler for it. Any other job would end by the signal, and fail."""


class Loop:
    """One look or several, at the node that this runs on."""

    def __init__(self, seconds=5.0):
        self.settings = place.Settings()
        self.slurm = Slurm(seconds=seconds, root=os.environ.get("ULTRACLUSTER_ROOT"))
        self.name = place.node_name()
        self.boot = place.boot()

    # --- looking ---

    def look(self, seconds, *, fresh=0, verb="quick"):
        """What the checks find within so many seconds; what an earlier look found, if it is no older than
        `fresh` seconds. None where another look goes on all that time."""
        until = time.monotonic() + seconds
        with _alone(place.RUN / "look.lock", until) as mine:
            if not mine:
                return None
            if fresh and (known := self._known(fresh)) is not None:
                return known
            chosen = [name for name in checks.names(place.HOME) if name not in self.settings.ignore]
            lines = checks.run(place.HOME, verb, chosen, max(0.5, until - time.monotonic()))
            for line in lines:
                place.write(place.STATE / f"{line['check']}.json", {**line, "at": int(time.time())})
                if line["result"] in ("warn", "critical"):
                    say(f"{line['check']}: {line['result']} {line.get('code', '')}: {line.get('detail', '')}")
            if verb == "quick":
                place.write(place.RUN / _LOOK, {"at": time.monotonic(), "lines": lines})
            return checks.findings(lines)

    def _known(self, seconds):
        look = place.read(place.RUN / _LOOK, {})
        at = look.get("at")
        if not isinstance(at, float) or not 0 <= time.monotonic() - at < seconds:
            return None
        found = checks.findings(look.get("lines") or [], self.settings.ignore)
        # A fault is looked at again: it may be over.
        return None if any(finding.result == "critical" for finding in found) else found

    def is_old(self, seconds):
        """Whether the last look was so long ago; without any, whether the boot was."""
        at = place.read(place.RUN / _LOOK, {}).get("at", 0.0)
        return not isinstance(at, float) or time.monotonic() - at > seconds

    def knows_itself(self):
        """Whether slurmctld knows this node. Nobody tells its name to a service: first a prolog or a
        HealthCheckProgram does; before that it may be the host's."""
        with contextlib.suppress(SlurmError):
            self.name = self.name or place.remember_name(self.slurm.name_here())
            return self.name is not None and "UNKNOWN" not in self.slurm.node(self.name).states
        return False

    # --- deciding and doing ---

    def act(self, found, *, until):
        """What is done at once about what was found. Returns whether the node takes no further job because of
        it: then a prolog may send its job away."""
        finding = decide.worst([one for one in found if one.check not in self.settings.ignore])
        if finding is None or self.settings.mode == "off":
            return False
        if not self.name:
            say(f"{finding.by}: Slurm has not told this node's name yet")
            self._keep_for_later(finding)
            return False
        try:
            return self._act(finding, until)
        except SlurmError as error:
            say(f"{finding.by}: {error}")
            self._keep_for_later(finding)
            return False

    def _act(self, finding, until):
        policy = self._policy()
        if decide.action_for(finding) == "requeue" and self._requeued_since(finding.event):
            finding = replace(finding, result="warn", action="none")
        ends_job = decide.action_for(finding) in ("drain", "reboot", "replace")
        plan, me = self._plan(finding, policy)
        if plan.steps and policy.mode != "enforce":
            say(f"DRY RUN, would do: {_words(plan)}: {plan.why} ({finding.detail})")
            return False
        if not _takes(plan):
            self._do(plan, me, only_one=True)
            say(f"{_words(plan) or 'nothing'}: {plan.why} ({finding.detail})")
            return ends_job and me.held_by_us
        if not self.slurm.lock(self.name, until):
            say(f"{finding.by}: other nodes drain themselves at this moment; later")
            self._keep_for_later(finding)
            return False
        try:
            # Others may have come first since: they are counted now.
            plan, me = self._plan(finding, policy)
            self._do(plan, me, only_one=True)
        finally:
            with contextlib.suppress(SlurmError):
                self.slurm.unlock()
        say(f"{_words(plan) or 'nothing'}: {plan.why} ({finding.detail})")
        return ends_job and _takes(plan)

    def _plan(self, finding, policy):
        nodes = self.slurm.nodes()
        me = _own(nodes, self.name)
        return decide.answer(finding, me, nodes, policy, boot=self.boot, now=int(time.time())), me

    def _policy(self):
        policy = self.settings.policy
        if policy.orchestrator in ("parallelcluster", "pcs"):
            with contextlib.suppress(SlurmError):
                policy = replace(policy, slurm_reboots=self.slurm.reboots())
        return policy

    def _requeued_since(self, event):
        """Whether the job that met it was queued again: the next one has met nothing."""
        at = place.read(place.RUN / "requeued.json", {}).get("at")
        return isinstance(at, float) and 0 <= time.monotonic() - at < _SAME_FAULT_SECONDS[event]

    def _do(self, plan, me, *, only_one=False):
        if _takes(plan):
            self._look_after()
        comment = () if plan.memory is None else (f"Comment={plan.memory.text}",)
        for word, text in plan.steps:
            if word == "drain":
                self.slurm.update(me.name, "State=DRAIN", f"Reason={text}", *comment)
            elif word == "reboot":
                if comment:
                    self.slurm.update(me.name, *comment)
                after = (
                    ("nextstate=RESUME",) if self.settings.policy.orchestrator == "parallelcluster" else ()
                )
                self.slurm.run("scontrol", "reboot", "ASAP", *after, f"reason={text}", me.name)
            elif word == "fail":
                if text not in (ACTION_REBOOT, ACTION_REPLACE):
                    raise ValueError(text)
                self.slurm.update(me.name, "State=FAIL", f"Reason={text}", *comment)
            elif word == "power-down":
                self.slurm.update(me.name, "State=POWER_DOWN_ASAP", f"Reason={text}", *comment)
            elif word == "resume":
                self.slurm.update(me.name, "State=RESUME", *comment)
            elif word == "remember" and comment:
                self.slurm.update(me.name, *comment)
            elif word == "requeue":
                if only_one:
                    place.write(place.RUN / "requeued.json", {"at": time.monotonic()})
                self._requeue(me, only_one=only_one)
            elif word == "warn":
                self._warn(me)
            elif word == "reboot-here":
                subprocess.run(["/usr/bin/env", "systemctl", "reboot"], timeout=30, check=False)

    def _requeue(self, me, *, only_one):
        """The jobs of this node. Of several that share it none can be said to have met the fault."""
        jobs = self.slurm.jobs(me.name)
        if only_one and len(jobs) > 1:
            say(f"{len(jobs)} jobs share this node: none of them is queued again")
            return
        for job in jobs:
            try:
                self.slurm.run("scontrol", "requeue", job)
                say(f"job {job} is queued again")
            except SlurmError as error:
                say(f"job {job} cannot be queued again, the node waits for its end: {error}")

    def _warn(self, me):
        for job in self.slurm.jobs(me.name):
            with contextlib.suppress(SlurmError):
                if SIGNAL in self.slurm.job_comment(job):
                    self.slurm.run("scancel", "--batch", "--signal=USR1", job)
                    say(f"job {job} was sent USR1: {self.settings.checkpoint_seconds} s for a checkpoint")

    # --- what could not be done at once ---

    def _keep_for_later(self, finding):
        place.write(place.RUN / "later.json", {**finding.__dict__, "at": time.monotonic()})

    def later(self):
        """A fault of the last ten minutes for which Slurm did not answer, or another node was first."""
        told = place.read(place.RUN / "later.json", {})
        with contextlib.suppress(OSError):
            (place.RUN / "later.json").unlink()
        at = told.pop("at", None)
        if not isinstance(at, float) or not 0 <= time.monotonic() - at < 600:
            return []
        with contextlib.suppress(TypeError):
            return [Finding(**told)]
        return []

    # --- going on with a node that was drained ---

    def follow(self):
        """One step further; what has been done before is kept in STATE, and in the node's comment."""
        if not self.name or self.settings.mode != "enforce":
            return
        kept = place.read(place.STATE / "drained.json", {})
        asked = place.read(place.RUN / _ASKED, {}).get("at")
        if not kept and isinstance(asked, float) and 0 <= time.monotonic() - asked < _ASK_SECONDS:
            return
        me = self.slurm.node(self.name)
        if not me.held_by_us:
            if kept:
                place.write(place.STATE / "drained.json", {})
            place.write(place.RUN / _ASKED, {"at": time.monotonic()})
            return
        if me.states & MOVING:
            return
        memory = memory_of(me.comment)
        if kept.get("reason") != me.reason or kept.get("boot") != self.boot:
            kept = {"reason": me.reason, "boot": self.boot, "passes": 0}
        jobs = self.slurm.jobs(self.name)
        by = (memory.by if memory and memory.by else me.reason.split(":", 1)[1]).split(":")[0]
        rebooted = (
            memory is None
            or memory.boot != self.boot
            or (memory.action in ("", "drain") and not memory.event)
        )
        if not jobs and rebooted and _elapsed(kept.get("passed", 0)) >= _PAUSE_SECONDS:
            passes = self._passes(by, kept)
            kept.update(passes=kept["passes"] + 1 if passes else 0, passed=int(time.time()))
        warned = kept.get("warned")
        plan = decide.follow(
            me,
            self._policy(),
            jobs=jobs,
            boot=self.boot,
            now=int(time.time()),
            passes=kept["passes"],
            warned=None if warned is None else _elapsed(warned) >= self.settings.checkpoint_seconds,
        )
        if kept.get("said") != plan.why:
            say(f"{_words(plan) or 'waits'}: {plan.why}")
            kept["said"] = plan.why
        word = plan.steps[0][0] if plan.steps else ""
        due = _elapsed(kept.get(word, 0)) >= _AGAIN_SECONDS
        if word == "warn":
            kept["warned"] = int(time.time())
        if word and due:
            kept[word] = int(time.time())
        place.write(place.STATE / "drained.json", kept)
        if word and due:
            self._do(plan, self._unchanged(me))

    @staticmethod
    def _look_after():
        """The service asks after this node with its next round."""
        with contextlib.suppress(OSError):
            (place.RUN / _ASKED).unlink()

    def _passes(self, failed, kept):
        """Whether no check finds a fault now, and the one that found it says ok; the long ones once."""
        found = self.look(12)
        if found is None or any(finding.result == "critical" for finding in found):
            return False
        if any(finding.check == failed and finding.result == "unknown" for finding in found):
            return False
        if not kept.get("idle"):
            long = self.look(checks.IDLE_SECONDS + 30, verb="idle")
            if long is None or any(finding.result == "critical" for finding in long):
                return False
            kept["idle"] = True
        return True

    def _unchanged(self, me):
        """Read before write: an operator may have taken the node over during a long look.

        Raises:
            SlurmError: then nothing is done.
        """
        now = self.slurm.node(me.name)
        if now.reason != me.reason or now.states != me.states:
            raise SlurmError(f"{me.name} has changed to {now.described}: nothing is done")
        return now


def _elapsed(at):
    """Seconds since then; for ever where a clock that was ahead wrote it, and has been set since."""
    passed = time.time() - at
    return passed if passed > -60 else float("inf")


def _own(nodes, name):
    for node in nodes:
        if node.name == name:
            return node
    raise SlurmError(f"slurmctld does not know {name}")


def _takes(plan):
    return any(word in ("drain", "reboot") for word, _ in plan.steps)


def _words(plan):
    return " ".join(f"{word}={text}" if text else word for word, text in plan.steps)


@contextlib.contextmanager
def _alone(path, until):
    """Whether nobody else looks; waited for until then (monotonic seconds)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Root's to read, too: whoever may open it may lock it, and no check would run here.
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        mine = True
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= until:
                    mine = False
                    break
                time.sleep(0.05)
        yield mine
