"""Faults that are open: what is kept, when it is over, when it is tried again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from health_findings import NEW, NOW, OLD, book, contained, due, known, line, look, open_faults, refused
from health_modules import health_module

decide = health_module("decide")
place = health_module("place")


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
