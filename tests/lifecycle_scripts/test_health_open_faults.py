"""Faults that are open: what is kept, when it is over, when it is tried again; and a storm of faults, in
which no more nodes are out of work than may be, and nothing is forgotten.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from project import ROOT
from script_modules import script_module

FOLDER = ROOT / "lifecycle_scripts" / "health_loop"
NOW = 1_800_000_000
OLD, NEW = "aaaaaaaa", "bbbbbbbb"


def _module(name: str) -> ModuleType:
    return script_module(FOLDER, name)


known, decide, place = _module("known"), _module("decide"), _module("place")
jobs, open_faults = _module("jobs"), _module("open_faults")


def line(code: str = "95", **changes: Any) -> Any:
    """What the watcher makes of a line of the kernel."""
    usual: dict[str, Any] = {
        "check": "xid",
        "result": "critical",
        "code": code,
        "action": "reset",
        "event": True,
        "verb": "watch",
        "fault": f"xid-{code}",
        "device": "0000:9b:00",
        "fatal": True,
        "at": NOW,
    }
    return known.Finding(**{**usual, **changes})


def contained(**changes: Any) -> Any:
    mild = {"result": "warn", "action": "requeue", "when_idle": "reset", "fatal": False}
    return line("94", **{**mild, **changes})


def look(result: str = "critical", code: str = "missing", **changes: Any) -> Any:
    """What a check finds."""
    usual: dict[str, Any] = {
        "check": "gpu_count",
        "result": result,
        "code": code,
        "action": "reboot" if result == "critical" else "none",
        "fault": f"gpu_count-{code}",
        "fatal": result == "critical",
        "at": NOW,
    }
    return known.Finding(**{**usual, **changes})


def book(*found: Any, boot: str = OLD, now: float = NOW, **more: Any) -> Any:
    return open_faults.noted(open_faults.Book(boot), found, now=now, **more)


def due(kept: Any, now: float = NOW, **more: Any) -> list[str]:
    return [finding.by for finding in open_faults.due(kept, now=now, **more)]


def refused(kept: Any, finding: Any, answer: str, now: float = NOW) -> Any:
    return open_faults.answered(kept, finding, asked="", answer=answer, now=now)


@pytest.mark.parametrize("answer", ["share", "hour", "foreign", "lock", "slurm", "name"])
def test_what_is_refused_is_tried_again_with_growing_pauses(answer: str) -> None:
    kept = book(line())
    pauses = []
    now = float(NOW)
    for _ in range(7):
        kept = refused(kept, line(), answer, now)
        began = now
        while not due(kept, now):
            now += 1
        pauses.append(now - began)
    assert pauses == [15, 30, 60, 120, 120, 120, 120]


@pytest.mark.parametrize("answer", ["drain", "requeue", "ours", "nothing", "waiting"])
def test_what_is_answered_is_not_asked_for_again(answer: str) -> None:
    assert due(refused(book(line()), line(), answer), NOW + 9999) == []


def test_a_dry_run_that_ends_goes_on_with_what_it_has_met() -> None:
    kept = refused(book(line()), line(), "dry-run")
    assert due(kept, NOW + 9999, enforce=False) == []
    assert due(kept, NOW + 9999) == ["xid:95"]


@pytest.mark.parametrize(
    ("later", "open_then"),
    [
        # a check that looks again and finds nothing proves it gone, and only what it had found itself
        ([look("ok", "ok")], ["xid:95"]),
        ([look("warn", "more")], ["xid:95"]),
        ([look("critical", "lost")], ["gpu_count:lost", "xid:95"]),
        ([look()], ["gpu_count:missing", "xid:95"]),
        # what is not known is no proof, and neither is another check, or another verb of it
        ([look("unknown", "late")], ["gpu_count:missing", "xid:95"]),
        ([look("ok", "ok", check="ecc")], ["gpu_count:missing", "xid:95"]),
        ([look("ok", "ok", verb="idle")], ["gpu_count:missing", "xid:95"]),
        ([], ["gpu_count:missing", "xid:95"]),
        # no look proves that a line of the kernel is over
        ([look("ok", "ok", check="xid")], ["gpu_count:missing", "xid:95"]),
    ],
)
def test_a_fault_is_over_when_its_own_check_says_so(later: list[Any], open_then: list[str]) -> None:
    kept = open_faults.noted(book(line(), look()), later, now=NOW + 300)
    assert sorted(row.finding.by for row in kept.rows.values()) == open_then


def test_two_readers_of_one_line_have_found_one_fault_of_the_kernel() -> None:
    """The watcher, and HealthCheckProgram, which met it first."""
    kept = refused(book(line(verb="quick", job="7")), line(), "drain")
    kept = open_faults.noted(kept, [line(job="8")], now=NOW + 5)
    (row,) = kept.rows.values()
    assert (row.finding.event, row.finding.job, row.answer) == (True, "7", "drain")
    assert kept.event()


def test_each_device_is_a_fault_of_its_own() -> None:
    assert len(book(line(), line(device="0000:53:00"), line("79")).rows) == 3


def test_the_same_line_minutes_later_is_open_again_with_its_own_job() -> None:
    kept = refused(book(contained(job="7")), contained(), "requeue")
    kept = open_faults.noted(kept, [contained(at=NOW + 30, job="8")], now=NOW + 30)
    assert due(kept, NOW + 30) == [], "it is told more than once"
    kept = open_faults.noted(kept, [contained(at=NOW + 300, job="9")], now=NOW + 300)
    assert due(kept, NOW + 300) == ["xid:94"]
    assert kept.of(contained()).finding.job == "9"


REPEATS = {"times": 2, "within_hours": 24, "apart_minutes": 30, "severity": "critical", "action": "replace"}


@pytest.mark.parametrize(
    ("boot", "minutes", "between", "action"),
    [
        (NEW, 5, [], "replace"),  # a boot has not mended it
        (OLD, 40, ["ok"], "replace"),
        (OLD, 5, ["ok"], "reboot"),  # it flickers
        (OLD, 300, ["critical"], "reboot"),  # it is the same fault, still
        (NEW, 25 * 60, [], "reboot"),
    ],
)
def test_a_fault_of_a_check_that_comes_again_within_a_day_is_answered_with_more(
    boot: str, minutes: int, between: list[str], action: str
) -> None:
    of: Any = {"gpu_count-missing": REPEATS}.get
    kept = book(look(), repeats=of)
    for result in between:
        kept = open_faults.noted(
            kept, [look(result, code="missing" if result != "ok" else "ok")], now=NOW + 60
        )
    if boot != OLD:
        kept = replace(kept, boot=boot, rows={})
    kept = open_faults.noted(kept, [look()], now=NOW + minutes * 60, repeats=of)
    assert kept.of(look()).finding.action == action
    # and the next look does not make it milder
    kept = open_faults.noted(kept, [look()], now=NOW + minutes * 60 + 300, repeats=of)
    assert kept.of(look()).finding.action == action


@pytest.mark.parametrize(
    ("users", "device", "hours", "action"),
    [
        (["1", "2"], "", 1, "hold"),
        (["1", "1", "1", "1"], "", 1, "requeue"),  # one program proves nothing of a GPU
        (["1", "2"], "0000:53:00", 1, "requeue"),
        (["1", "2"], "", 25, "requeue"),
        (["1", ""], "", 1, "requeue"),
    ],
)
def test_a_gpu_that_fails_under_jobs_of_two_users_within_a_day_is_held_for_diagnosis(
    users: list[str], device: str, hours: int, action: str
) -> None:
    kept, found = book(), None
    for number, user in enumerate(users):
        at = NOW + number * hours * 3600
        found = contained(
            at=at, user=user, job=str(number), **({"device": device} if number and device else {})
        )
        kept = open_faults.noted(kept, [found], now=at)
        if number == 0:
            kept = replace(kept, boot=NEW, rows={})  # the node boots when it is idle
    assert decide.action_for(kept.of(found).finding) == action


def test_one_program_on_one_gpu_never_leads_to_a_replacement() -> None:
    me, rules = known.Node("n1"), known.Policy(mode="enforce", orchestrator="pcs")
    for number in range(9):
        now = NOW + number * 3600
        plan = decide.answer(contained(job="7", at=now), me, [me], rules, boot=f"{number:08}", now=now)
        assert [word for word, _ in plan.steps] in (["requeue", "drain"], ["requeue"])
        if plan.memory is None:
            continue
        assert plan.memory.action == "reboot-idle"
        held = replace(me, states=frozenset({"IDLE", "DRAIN"}), reason="ultracluster:xid:94")
        held = replace(held, comment=plan.memory.text)
        after = {"boot": f"{number + 1:08}", "now": now + 600, "passes": 2}
        back = decide.follow(held, rules, jobs=[], warned=None, **after)
        if back.memory is not None:
            assert back.memory.action != "replace"
            me = replace(me, comment=back.memory.text)


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        ("drain", True),
        ("waiting", True),
        ("ours", True),
        ("reboot", True),
        ("requeue", False),
        ("nothing", False),
    ],
)
def test_what_a_killed_slurmctld_has_lost_is_asked_for_again(answer: str, again: bool) -> None:
    kept = open_faults.lost(refused(book(line()), line(), answer))
    assert bool(due(kept, all_open=True)) is again


def test_one_row_can_be_left_out() -> None:
    kept = book(line(), line("79"), look())
    assert due(kept, ignored=frozenset({"xid-95"})) == ["xid:79", "gpu_count:missing"]
    assert due(kept, ignored=frozenset({"xid"})) == ["gpu_count:missing"]
    assert not book(line()).event(frozenset({"xid-95"}))


# --- its file ---


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "RUN"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(place, name, tmp_path / name)
    monkeypatch.setattr(place, "LOG", tmp_path / "log")
    return tmp_path


def test_what_is_kept_outlives_its_process_and_not_its_boot(folder: Path) -> None:
    kept = refused(book(line(job="7", user="2001"), look()), line(), "share")
    open_faults.save(kept)
    assert open_faults.load(OLD) == kept
    assert open_faults.load("") == kept, "a boot whose id cannot be read is never another one"
    after = open_faults.load(NEW)
    assert (after.rows, after.times) == ({}, kept.times)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '{"version": 2, "boot": "aaaaaaaa", "rows": [], "times": []}',
        '{"version": 1, "boot": "aaaaaaaa", "rows": [{"finding": {"check": "xid"}}], "times": []}',
        '{"version": 1, "boot": "aaaaaaaa", "rows": [], "times": [["x"]]}',
        '{"version": 1, "rows": [7], "times": []}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_set_aside_and_the_log_is_read_again(folder: Path, text: str) -> None:
    (folder / "STATE/open.json").write_text(text)
    (folder / "STATE/xid.state").write_text('{"cursor": "c9"}')
    assert open_faults.load(OLD).rows == {}
    assert (folder / "STATE/open.json.damaged").read_text() == text
    assert not (folder / "STATE/xid.state").exists(), "this boot's log is read from its beginning"
    assert "open.json is damaged or of another version" in (folder / "log").read_text()


def test_a_full_disk_forgets_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = book(line())
    open_faults.save(first)
    full = folder / "STATE"
    write = place.write

    def fails(path: Path, document: Any) -> bool:
        return path.parent != full and write(path, document)

    monkeypatch.setattr(place, "write", fails)
    second = open_faults.noted(first, [line("79")], now=NOW)
    open_faults.save(second)
    assert open_faults.load(OLD) == second
    monkeypatch.setattr(place, "write", write)
    open_faults.save(second)
    assert json.loads((full / "open.json").read_text())["version"] == 1
    assert not (folder / "RUN/open.json").exists()


# --- whose job ---

QUEUE = [("7", NOW - 600, "2001")]


@pytest.mark.parametrize(
    ("queue", "process", "found"),
    [
        (QUEUE, "", ("7", "2001")),
        ([("8", NOW + 60, "2002")], "", ("", "")),  # it has begun since
        ([*QUEUE, ("8", NOW + 60, "2002")], "", ("7", "2001")),
        ([*QUEUE, ("8", NOW - 60, "2002")], "", ("", "")),  # which of two cannot be said
        ([*QUEUE, ("8", NOW - 60, "2002")], "8", ("8", "2002")),
        ([*QUEUE, ("8", NOW + 60, "2002")], "8", ("", "")),  # its process has the number of an earlier one
        (QUEUE, "9", ("", "")),
        ([], "", ("", "")),
    ],
)
def test_the_job_is_that_of_the_lines_time_and_process(queue: Any, process: str, found: Any) -> None:
    assert jobs.met(queue, NOW, process) == found


@pytest.mark.parametrize(
    ("detail", "cgroup", "job"),
    [
        ("94, pid=1896, name=python", "0::/system.slice/slurmstepd.scope/job_42/step_0", "42"),
        ("94, pid='1896', name=python", "6:freezer:/slurm_n1/uid_2001/job_7/step_batch", "7"),
        ("94, pid='<unknown>', name=<unknown>", "0::/job_42/x", ""),
        ("94, pid=1896, name=python", "0::/user.slice/not_job_4x", ""),
    ],
)
def test_the_process_of_a_line_tells_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detail: str, cgroup: str, job: str
) -> None:
    monkeypatch.setattr(place, "ROOT", tmp_path)
    (tmp_path / "proc/1896").mkdir(parents=True)
    (tmp_path / "proc/1896/cgroup").write_text(f"{cgroup}\n")
    assert jobs.of_process(contained(detail=detail)) == job
    assert jobs.of_process(look(detail=detail)) == ""


class Queue:
    """A Slurm with one node's jobs, and what was done to them."""

    def __init__(self, *there: str, note: str = "", start: float = NOW - 60) -> None:
        self.there, self.note, self.start = there, note, start
        self.done: list[str] = []

    def queue(self, _: str) -> list[tuple[str, float, str]]:
        return [(job, self.start, "2001") for job in self.there]

    def job_note(self, _: str) -> str:
        return self.note

    def run(self, *words: str) -> None:
        self.done.append(" ".join(words[1:]))


@pytest.mark.parametrize(
    ("slurm", "done"),
    [
        (Queue("7"), ["update JobId=7 AdminComment=ultracluster:requeued:xid:94", "requeue 7"]),
        (
            Queue("7", note="vip"),
            ["update JobId=7 AdminComment=vip ultracluster:requeued:xid:94", "requeue 7"],
        ),
        (
            Queue("7", note="ultracluster:requeued:xid:94"),
            [
                "update JobId=7 AdminComment=ultracluster:requeued:xid:94 ultracluster:held:xid:94",
                "requeuehold 7",
            ],
        ),
        (Queue("8"), []),
        (Queue("7", start=NOW + 60), []),  # it has been queued again since
        (Queue(), []),
    ],
)
def test_a_job_is_queued_again_once_for_one_cause_and_then_held(slurm: Queue, done: list[str]) -> None:
    jobs.requeue_once(slurm, "n1", contained(), "7")
    assert slurm.done == done


def test_a_note_that_is_refused_keeps_no_job_from_the_queue() -> None:
    slurm = Queue("7")

    def run(*words: str) -> None:
        if words[1] == "update":
            raise jobs.SlurmError("no permission")
        slurm.done.append(" ".join(words[1:]))

    slurm.run = run
    assert jobs.requeue_once(slurm, "n1", contained(), "7")
    assert slurm.done == ["requeue 7"]


@pytest.mark.parametrize(
    ("error", "again"), [("scontrol: timed out", True), ("Requested operation is presently disabled", False)]
)
def test_a_slurmctld_that_is_away_is_asked_again_and_holds_no_job(error: str, again: bool) -> None:
    slurm = Queue("7", note="vip")

    def run(*words: str) -> None:
        if words[1] == "requeue":
            raise jobs.SlurmError(error)
        slurm.done.append(" ".join(words[1:]))

    slurm.run = run
    if again:
        with pytest.raises(jobs.SlurmError):
            jobs.requeue_once(slurm, "n1", contained(), "7")
        assert slurm.done[-1] == "update JobId=7 AdminComment=vip", "the next try is the first"
    else:
        assert not jobs.requeue_once(slurm, "n1", contained(), "7")


# --- a storm ---


class Cluster:
    """Nodes as slurmctld has them, each with its book; the lock is held for each step."""

    def __init__(self, count: int, rules: Any) -> None:
        self.rules, self.now = rules, NOW
        self.nodes = {f"n{number}": known.Node(f"n{number}", frozenset({"IDLE"})) for number in range(count)}
        self.books = {name: open_faults.Book(OLD) for name in self.nodes}

    def step(self, name: str, found: tuple[Any, ...] = ()) -> None:
        """One round of a node's service."""
        self.books[name] = open_faults.noted(self.books[name], found, now=self.now)
        for finding in open_faults.due(self.books[name], now=self.now, all_open=True)[:1]:
            me = self.nodes[name]
            plan = decide.answer(finding, me, self._all(), self.rules, boot=OLD, now=self.now)
            self._do(me, plan)
            taken = any(word == "drain" for word, _ in plan.steps)
            answer = "waiting" if plan.refused and taken else plan.refused or plan.steps[-1][0]
            self.books[name] = refused(self.books[name], finding, answer, self.now)
        self._do(self.nodes[name], decide.promote(self.nodes[name], self._all(), self.rules, self.now))

    def _all(self) -> list[Any]:
        return list(self.nodes.values())

    def _do(self, me: Any, plan: Any) -> None:
        for word, text in plan.steps:
            if word == "drain":
                me = replace(me, states=frozenset({"IDLE", "DRAIN"}), reason=text, reason_at=self.now)
            elif word == "last":
                me = replace(me, weight=known.LAST_WEIGHT)
        self.nodes[me.name] = replace(me, comment=plan.memory.text) if plan.memory else me

    def mend(self, name: str) -> None:
        """It has been rebooted, and is back."""
        memory = known.memory_of(self.nodes[name].comment)
        if self.nodes[name].held_by_us and not memory.waiting:
            comment = replace(memory, action="", event=False, waiting=False).text
            self.nodes[name] = known.Node(name, frozenset({"IDLE"}), comment=comment)
            self.books[name] = open_faults.Book(NEW)

    def out(self) -> int:
        return sum(map(decide.is_out, self.nodes.values()))

    def at_work_with_a_fault(self) -> list[str]:
        return [
            name
            for name, kept in self.books.items()
            if any(row.finding.fatal for row in kept.rows.values()) and not decide.is_out(self.nodes[name])
        ]


def test_a_storm_of_200_of_1000_nodes() -> None:
    """Share 100, closed up to 250: all 200 are closed to new jobs. With a closed limit of 12 % the others
    work on, and each of them is still open."""
    chosen = random.Random(7)  # noqa: S311
    for closed, expected in ((25, 200), (12, 120)):
        cluster = Cluster(1000, known.Policy(mode="enforce", orchestrator="pcs", max_closed_percent=closed))
        broken = chosen.sample(sorted(cluster.nodes), 200)
        for name in broken:
            cluster.step(name, (line(),))
        assert cluster.out() == expected
        working = cluster.at_work_with_a_fault()
        assert len(working) == 200 - expected
        assert all(cluster.books[name].of(line()).open for name in working)
        assert all(cluster.nodes[name].weight == known.LAST_WEIGHT for name in working)
        drained = [name for name in broken if known.memory_of(cluster.nodes[name].comment).drained]
        assert len(drained) == 100


@given(
    st.integers(1, 40),
    st.integers(1, 50),
    st.integers(1, 60),
    st.integers(0, 5),
    st.lists(
        st.tuples(st.sampled_from(["break", "idle", "again", "mend", "hour"]), st.integers(0, 39)),
        max_size=60,
    ),
)
@settings(max_examples=examples(60), deadline=None)
def test_never_more_are_out_than_share_and_second_limit_and_no_fault_is_forgotten(
    count: int, percent: int, closed: int, hourly: int, story: list[tuple[str, int]]
) -> None:
    rules = known.Policy(
        mode="enforce",
        orchestrator="pcs",
        max_drained_percent=percent,
        max_closed_percent=closed,
        max_drained_per_hour=hourly,
    )
    cluster = Cluster(count, rules)
    share = max(1, count * percent // 100)
    limit = max(2, count * closed // 100)
    for word, number in story:
        name = f"n{number % count}"
        cluster.now += 20
        if word == "break":
            cluster.step(name, (line(at=cluster.now),))
        elif word == "idle":
            cluster.step(name, (line("63", result="warn", action="none", when_idle="reset", fatal=False),))
        elif word == "again":
            cluster.step(name)
        elif word == "mend":
            cluster.mend(name)
        else:
            cluster.now += 3600
        assert cluster.out() <= share + limit
        for one in cluster.at_work_with_a_fault():
            assert any(row.open for row in cluster.books[one].rows.values())
    # in the end each is answered: nodes come back, hours pass
    for _ in range(2 * count):
        cluster.now += 3601
        for name in cluster.nodes:
            cluster.step(name)
        for name in cluster.nodes:
            cluster.mend(name)
    assert cluster.out() == 0
    assert not any(kept.rows for kept in cluster.books.values())
