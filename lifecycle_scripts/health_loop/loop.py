"""The health loop of one node: looks, decides (decide.py), and does it.

Where it is called from: Slurm's prolog, epilog and HealthCheckProgram, and a service that follows the
kernel's log, looks after each boot, and goes on with a drained node (main.py). No error in here may end
a job or a node.
"""

import contextlib
import os
import subprocess
import time
from dataclasses import replace

import checks
import decide
import jobs
import open_faults
import place
import recovery
from known import ACTION_REBOOT, ACTION_REPLACE, LAST_WEIGHT, MOVING, Plan, memory_of
from place import say
from slurm import Slurm, SlurmError, take

_ASKED = "asked.json"
"""When slurmctld last said that this node is not held by us."""
_LOOK = "look.json"
"""What the last look found; its age is counted on the clock that no one sets."""
_PAUSE_SECONDS = int(os.environ.get("ULTRACLUSTER_HEALTH_PAUSE", "60"))
"""Between two looks that may give a node back."""
_TICK_SECONDS = float(os.environ.get("ULTRACLUSTER_HEALTH_TICK", "15"))
_AGAIN_SECONDS = 8 * _TICK_SECONDS
"""Until the same thing is asked for again, where it has shown no effect; each time twice as long."""
_LONGEST_SECONDS = 3600
_ASK_SECONDS = 8 * _TICK_SECONDS
"""Between two questions whether this node is held by us, where nothing here has drained it."""


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
        with place.alone(place.RUN / "look.lock", until) as mine:
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
            return checks.findings(lines, self.settings.ignore)

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

    def act(self, found, *, until, all_open=False):
        """Acts at once on what was found now, and about open faults that were refused. Returns
        whether the node takes no further job because of one: then a prolog may send its job away.

        Args:
            found: findings of a look or of the watcher, those that are well included.
            until: monotonic seconds.
            all_open: also what was refused a moment ago.
        """
        if self.settings.mode == "off":
            return False
        book = self._note(found)
        due = open_faults.due(
            book,
            now=time.time(),
            ignored=self.settings.ignore,
            pause=_TICK_SECONDS,
            all_open=all_open,
            enforce=self.settings.mode == "enforce",
        )
        away = False
        for number, finding in enumerate(due):
            # Beside the gravest, what has to be done for the jobs of others.
            if number == 0 or decide.action_for(finding) == "requeue":
                away = self._answer(finding, until) or away
        return away

    def is_held(self):
        """True where the node is out by us for a fault that was answered: its next job goes elsewhere."""
        book = open_faults.load(self.boot)
        if not self.name or not book.ends_jobs(self.settings.ignore):
            return False
        try:
            return self.slurm.node(self.name).held_by_us
        except SlurmError as error:
            say(f"whether the node is held is not known: {error}")
            return False

    def _answer(self, finding, until):
        if not self.name:
            say(f"{finding.by}: Slurm has not told this node's name yet")
            self._record(finding, "", "name")
            return False
        try:
            plan, answer, away = self._act(finding, until)
        except SlurmError as error:
            say(f"{finding.by}: {error}")
            self._record(finding, "", "slurm")
            return False
        self._record(finding, _words(plan), answer)
        return away

    def _note(self, found):
        """The open faults with what was found now, each with the job that met it."""
        if not any(decide.action_for(finding) != "none" for finding in found):
            return self._noted(found)
        with self._book() as book:
            new = [
                finding
                for finding in found
                if decide.action_for(finding) != "none" and open_faults.is_new(book.now, finding)
            ]
        jobs_of = {finding.key: self._met(finding) for finding in new}
        found = [
            replace(finding, job=jobs_of[finding.key][0], user=jobs_of[finding.key][1])
            if finding.key in jobs_of
            else finding
            for finding in found
        ]
        return self._noted(found)

    def _noted(self, found):
        with self._book() as book:
            book.now = open_faults.noted(book.now, found, now=time.time(), repeats=open_faults.repeats)
            return book.now

    def _met(self, finding):
        if not self.name:
            return "", ""
        try:
            return jobs.met(self.slurm.queue(self.name), finding.at, jobs.of_process(finding))
        except SlurmError as error:
            say(f"{finding.by}: which job has met it is not known: {error}")
            return "", ""

    def _record(self, finding, asked, answer):
        with self._book() as book:
            book.now = open_faults.answered(book.now, finding, asked=asked, answer=answer, now=time.time())

    def _claim(self, finding, *, back=False):
        """True where no other process of this node has queued the job again for this fault; `back` gives the
        claim back."""
        with self._book() as book:
            row = book.now.of(finding)
            if row is None or (finding.job in row.requeued) is not back:
                return False
            others = tuple(job for job in row.requeued if job != finding.job)
            row = replace(row, requeued=others if back else (*others, finding.job))
            book.now = replace(book.now, rows={**book.now.rows, finding.key: row})
            return True

    @contextlib.contextmanager
    def _book(self):
        """The open faults, for nobody else meanwhile."""
        with place.alone(place.RUN / "open.lock", time.monotonic() + 5):
            book = _Kept(open_faults.load(self.boot))
            before = book.now
            yield book
            if book.now != before:
                open_faults.save(book.now)

    def _act(self, finding, until):
        """The plan, the word that is kept as its answer, and whether it keeps jobs away."""
        policy = self._policy()
        ends_job = decide.action_for(finding) in ("drain", "reboot", "hold", "replace")
        plan, me = self._plan(finding, policy)
        if plan.steps and policy.mode != "enforce":
            say(f"DRY RUN, would do: {_words(plan)}: {plan.why} ({finding.detail})")
            return plan, "dry-run", False
        requeue = tuple(step for step in plan.steps if step[0] == "requeue")
        if requeue and _takes(plan):
            # The lock of others is nothing that the job has to wait for.
            self._do(Plan(requeue), me, finding)
        if not _takes(plan):
            self._do(plan, me, finding)
            say(f"{_words(plan) or 'nothing'}: {plan.why} ({finding.detail})")
            return plan, _answer_of(plan), ends_job and me.held_by_us
        if not self.slurm.lock(self.name, until):
            say(f"{finding.by}: other nodes drain themselves at this moment; later")
            return plan, "lock", False
        try:
            # Others may have come first since: they are counted now.
            plan, me = self._plan(finding, policy)
            self._do(plan, me, finding)
        finally:
            with contextlib.suppress(SlurmError):
                self.slurm.unlock()
        say(f"{_words(plan) or 'nothing'}: {plan.why} ({finding.detail})")
        return plan, _answer_of(plan), ends_job and _takes(plan)

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

    def _do(self, plan, me, finding=None):
        if _takes(plan):
            self._look_after()
        comment = () if plan.memory is None else (f"Comment={plan.memory.text}",)
        for word, text in plan.steps:
            if word == "drain":
                take(self.slurm, me, "DRAIN", text, plan.memory)
            elif word == "fail":
                if text not in (ACTION_REBOOT, ACTION_REPLACE):
                    raise ValueError(text)
                take(self.slurm, me, "FAIL", text, plan.memory)
                recovery.asked(text, self.boot)
            elif word == "reboot":
                if comment:
                    self.slurm.update(me.name, *comment)
                after = (
                    ("nextstate=RESUME",) if self.settings.policy.orchestrator == "parallelcluster" else ()
                )
                self.slurm.run("scontrol", "reboot", "ASAP", *after, f"reason={text}", me.name)
            elif word == "power-down":
                self.slurm.update(me.name, "State=POWER_DOWN_ASAP", f"Reason={text}", *comment)
            elif word == "resume":
                self.slurm.update(me.name, "State=RESUME", *comment)
            elif word == "last":
                self.slurm.update(me.name, f"Weight={LAST_WEIGHT}", *comment)
            elif word == "weight":
                self.slurm.update(me.name, f"Weight={text}", *comment)
            elif word == "remember" and comment:
                self.slurm.update(me.name, *comment)
            elif word == "requeue" and finding is None:
                jobs.requeue_all(self.slurm, me.name)
            elif word == "requeue":
                if self._claim(finding):
                    try:
                        jobs.requeue_once(self.slurm, me.name, finding, text)
                    except SlurmError:
                        self._claim(finding, back=True)
                        raise
            elif word == "warn":
                jobs.warn(self.slurm, me.name, self.settings.checkpoint_seconds)
            elif word == "reboot-here":
                force = ["--force"] if text else []
                command = ["/usr/bin/env", "systemctl", *force, "reboot"]
                subprocess.run(command, timeout=30, check=False)

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
        book = open_faults.load(self.boot)
        if not me.held_by_us:
            if kept:
                place.write(place.STATE / "drained.json", {})
            place.write(place.RUN / _ASKED, {"at": time.monotonic()})
            if not self._ask_again(me):
                self._lost(me)
                if not me.foreign:
                    recovery.forget()
                    self._settle(open_faults.settled)
                self._do(decide.preferred(me, fatal=book.fatal(self.settings.ignore)), me)
            return
        if me.states & MOVING:
            return
        memory = memory_of(me.comment)
        if memory is not None and memory.waiting and memory.boot == self.boot:
            self._promote(me)
            return
        if kept.get("reason") != me.reason or kept.get("boot") != self.boot:
            kept = {"reason": me.reason, "boot": self.boot, "passes": 0}
        on_it, event = self.slurm.jobs(self.name), book.event(self.settings.ignore)
        by = (memory.by if memory and memory.by else me.reason.split(":", 1)[1]).split(":")[0]
        rebooted = (
            memory is None
            or memory.boot != self.boot
            or (memory.action in ("", "drain") and not memory.event and not event)
        )
        if not on_it and rebooted and place.elapsed(kept.get("passed", 0)) >= _PAUSE_SECONDS:
            passes = self._passes(by, kept)
            kept.update(passes=kept["passes"] + 1 if passes else 0, passed=int(time.time()))
        warned = kept.get("warned")
        plan = decide.follow(
            me,
            self._policy(),
            jobs=on_it,
            boot=self.boot,
            now=int(time.time()),
            passes=kept["passes"],
            warned=None if warned is None else place.elapsed(warned) >= self.settings.checkpoint_seconds,
            open_event=event,
            tries=kept.get("tries", {}),
        )
        if kept.get("said") != plan.why:
            say(f"{_words(plan) or 'waits'}: {plan.why}")
            kept["said"] = plan.why
        if plan.refused == "stuck":
            self._settle(open_faults.stuck)
        self._step(plan, me, kept)

    def _ask_again(self, me):
        """True where the node waits for HyperPod because this node asked. What has had its time in vain is
        asked for again, or more is."""
        request = recovery.of(me.reason, self.boot)
        if request is None:
            return False
        if not recovery.is_due(request):
            return True
        plan = decide.request(me, self._policy(), boot=self.boot, tries=request["tries"])
        if plan.refused == "foreign":
            return False
        if plan.refused == "stuck":
            if self._settle(open_faults.stuck):
                say(f"waits: {plan.why}")
        elif not self.slurm.jobs(self.name):
            say(f"{_words(plan)}: {plan.why}")
            self._do(plan, self._unchanged(me))
        return True

    def _settle(self, change):
        """Changes the book; whether that is another one."""
        with self._book() as book:
            before, book.now = book.now, change(book.now)
            return book.now != before

    def _lost(self, me):
        """Asks again for what a slurmctld has lost that was killed before it saved its state: the node's
        comment does not know of this boot. Where a person has resumed the node it does."""
        memory = memory_of(me.comment)
        if memory is None or memory.boot == self.boot or me.foreign:
            return
        with self._book() as book:
            again = open_faults.lost(book.now)
            if again != book.now:
                say("slurmctld does not know of our drain any more: open faults are asked for again")
            book.now = again

    def _step(self, plan, me, kept):
        """Does it, unless it was asked for a moment ago: each time the pause is twice as long."""
        word = plan.steps[0][0] if plan.steps else ""
        tries = kept.setdefault("tries", {})
        pause = min(_AGAIN_SECONDS * 2 ** max(tries.get(word, 0) - 1, 0), _LONGEST_SECONDS)
        place.write(place.STATE / "drained.json", kept)
        if not word or place.elapsed(kept.get(word, 0)) < pause:
            return
        me = self._unchanged(me)
        # Before it is done: a reboot ends this process, too.
        kept[word] = int(time.time())
        tries[word] = tries.get(word, 0) + 1
        if word == "warn":
            kept["warned"] = kept[word]
        place.write(place.STATE / "drained.json", kept)
        self._do(plan, me)

    def _promote(self, me):
        """Continues with a node that is closed beyond the share, when the share has a place."""
        asked = place.read(place.RUN / "promote.json", {})
        pause = _TICK_SECONDS * min(2 ** asked.get("tries", 0), 8)
        if 0 <= time.monotonic() - asked.get("at", -pause) < pause:
            return
        place.write(place.RUN / "promote.json", {"at": time.monotonic(), "tries": asked.get("tries", 0) + 1})
        plan = decide.promote(me, self.slurm.nodes(), self._policy(), int(time.time()))
        if not plan.steps:
            say(f"waits: {plan.why}")
            return
        if not self.slurm.lock(self.name, time.monotonic() + 10):
            return
        try:
            nodes = self.slurm.nodes()
            me = _own(nodes, self.name)
            plan = decide.promote(me, nodes, self._policy(), int(time.time()))
            self._do(plan, me)
        finally:
            with contextlib.suppress(SlurmError):
                self.slurm.unlock()
        say(f"{_words(plan) or 'waits'}: {plan.why}")
        if plan.steps:
            with self._book() as book:
                book.now = open_faults.went_on(book.now)

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


def _own(nodes, name):
    for node in nodes:
        if node.name == name:
            return node
    raise SlurmError(f"slurmctld does not know {name}")


def _takes(plan):
    return any(word in ("drain", "reboot") for word, _ in plan.steps)


def _answer_of(plan):
    """The word that is kept of it: why it was refused, else what was done."""
    if plan.refused in ("share", "hour") and _takes(plan):
        return "waiting"
    return plan.refused or plan.steps[-1][0]


class _Kept:
    """The book while it is held."""

    def __init__(self, now):
        self.now = now


def _words(plan):
    return " ".join(f"{word}={text}" if text else word for word, text in plan.steps)
