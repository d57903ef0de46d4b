"""A request to HyperPod without effect: asked again with growing pauses, then for more, then a person's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from health_findings import NEW, OLD, book, known, line, open_faults
from health_modules import health_module

decide, place, recovery = health_module("decide"), health_module("place"), health_module("recovery")
program = health_module("loop")
REBOOT, REPLACE = "Action:Reboot", "Action:Replace"
MINUTE = 60
START = 1_800_000_000


def asked_node(reason: str = REBOOT, states: str = "IDLE+FAIL", **memory: Any) -> Any:
    """A node for which this node asked HyperPod on its present boot."""
    text = known.Memory(**{"boot": OLD, "action": "reboot", "by": "xid:95", **memory}).text
    return known.Node("n1", frozenset(states.split("+")), reason, comment=text)


def policy(**changes: Any) -> Any:
    rules = {"mode": "enforce", "orchestrator": "hyperpod-slurm", "recovery": True}
    return known.Policy(**{**rules, **changes})


@pytest.mark.parametrize(
    ("me", "changes", "tries", "steps"),
    [
        (asked_node(), {}, 1, (("fail", REBOOT),)),
        (asked_node(), {}, 3, (("fail", REBOOT),)),
        (asked_node(action="reboot-idle"), {}, 1, (("fail", REBOOT),)),
        (asked_node(), {}, 4, (("fail", REPLACE),)),
        (asked_node(), {"replace": False}, 4, "stuck"),
        (asked_node(REPLACE, action="replace"), {}, 1, (("fail", REPLACE),)),
        (asked_node(REPLACE, action="replace"), {}, 2, "stuck"),
        # never what is not ours: another boot, another request, a node that is on its way or in service
        (asked_node(boot=NEW), {}, 1, "foreign"),
        (asked_node(REPLACE), {}, 1, "foreign"),  # someone asks for more than we did
        (asked_node(action="replace"), {}, 1, "foreign"),
        (asked_node(action=""), {"recovery": False}, 1, "foreign"),
        (asked_node(states="IDLE+FAIL+REBOOT_ISSUED"), {}, 1, "foreign"),
        (asked_node(states="IDLE"), {}, 1, "foreign"),
        (known.Node("n1", frozenset({"FAIL"}), REBOOT, comment="rack 7"), {}, 1, "foreign"),
    ],
)
def test_what_is_done_about_a_request_without_effect(
    me: Any, changes: dict[str, Any], tries: int, steps: Any
) -> None:
    plan = decide.request(me, policy(**changes), boot=OLD, tries=tries)
    assert plan.refused == steps if isinstance(steps, str) else (plan.steps, plan.refused) == (steps, "")
    assert not (isinstance(steps, str) and plan.steps)
    if steps == (("fail", REPLACE),) and me.reason == REBOOT:
        assert plan.memory.action == "replace" and plan.memory.by == "xid:95", "it is remembered as such"


class HyperPod:
    """A slurmctld whose node stays as it was asked to be: HyperPod does nothing, or what a test says."""

    def __init__(self, me: Any, clock: list[float]) -> None:
        self.me, self.clock = me, clock
        self.asked: list[tuple[str, int]] = []
        self.running: list[str] = []

    def node(self, _: str) -> Any:
        return self.me

    def jobs(self, _: str) -> list[str]:
        return self.running

    def swap(self, name: str, *settings: tuple[str, str]) -> tuple[Any, Any]:
        told, before = dict(settings), self.me
        states = frozenset({"IDLE", told["State"]})
        self.me = known.Node(
            name, states, told["Reason"], comment=told.get("Comment", before.comment)
        )  # fmt: skip
        self.asked.append((told["Reason"], round((self.clock[0] - START) / MINUTE)))
        return before, self.me

    def update(self, *words: str) -> None:
        raise AssertionError(words)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [float(START)]
    for name in ("RUN", "STATE", "HOME"):
        monkeypatch.setattr(place, name, tmp_path / name)
    monkeypatch.setattr(program.time, "time", lambda: now[0])
    monkeypatch.setattr(program.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(place, "alone", _nobody_else)
    return now


class _nobody_else:  # noqa: N801, in the place of a context manager's function
    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None: ...


def loop_of(clock: list[float], **settings: Any) -> tuple[Any, HyperPod]:
    """A loop that has drained its node for an Xid 95, and is about to ask HyperPod."""
    loop = program.Loop()
    drained = known.Memory(boot=OLD, action="reboot", by="xid:95", event=True, drained=(START,))
    me = known.Node("n1", frozenset({"IDLE", "DRAIN"}), "ultracluster:xid:95", comment=drained.text)
    loop.name, loop.boot, loop.slurm = "n1", OLD, HyperPod(me, clock)
    loop.settings.mode, loop.settings.policy = "enforce", policy(**settings)
    kept = book(line("95"))
    open_faults.save(open_faults.answered(kept, line("95"), asked="", answer="drain", now=START))
    return loop, loop.slurm


def after(loop: Any, clock: list[float], minutes: int) -> None:
    for _ in range(minutes * 4):
        loop.follow()
        clock[0] += 15


def answer_of() -> str:
    return open_faults.load(OLD).of(line("95")).answer


def test_a_reboot_that_hyperpod_does_not_do_becomes_a_replacement_and_then_a_persons(
    clock: list[float],
) -> None:
    loop, service = loop_of(clock)
    after(loop, clock, 600)
    reasons = [reason for reason, _ in service.asked]
    times = [at for _, at in service.asked]
    assert reasons == [REBOOT] * 4 + [REPLACE] * 2
    pauses = [later - sooner for sooner, later in pairwise(times)]
    assert pauses[:4] == sorted(pauses[:4]) and 5 <= pauses[0] < pauses[3] <= 45, pauses
    assert 60 <= pauses[4] <= 63, "a replacement takes up to half an hour"
    assert answer_of() == "stuck", "and is reported"
    assert "a person has to look" in place.LOG.read_text(encoding="utf-8")


def test_where_nodes_are_not_replaced_a_person_looks_after_four_reboots(clock: list[float]) -> None:
    loop, service = loop_of(clock, replace=False)
    after(loop, clock, 300)
    assert [reason for reason, _ in service.asked] == [REBOOT] * 4 and answer_of() == "stuck"


def test_a_reboot_that_has_its_effect_is_asked_for_once(clock: list[float]) -> None:
    loop, service = loop_of(clock)
    after(loop, clock, 3)
    loop.boot = NEW
    after(loop, clock, 300)
    assert [reason for reason, _ in service.asked] == [REBOOT]


def test_a_request_of_someone_else_is_left_alone(clock: list[float]) -> None:
    loop, service = loop_of(clock)
    after(loop, clock, 3)
    service.me = known.Node("n1", service.me.states, REPLACE, comment=service.me.comment)
    after(loop, clock, 300)
    assert [reason for reason, _ in service.asked] == [REBOOT], "HyperPod itself wants more"


def test_what_a_person_has_resumed_is_over_and_begins_anew(clock: list[float]) -> None:
    loop, service = loop_of(clock, replace=False)
    after(loop, clock, 300)
    assert answer_of() == "stuck" and len(service.asked) == 4
    service.me = known.Node("n1", frozenset({"IDLE"}), "", comment=service.me.comment)
    after(loop, clock, 5)
    assert answer_of() == "drain" and len(service.asked) == 4
    assert recovery.of(REBOOT, OLD) is None


def test_a_job_that_still_runs_keeps_the_request_as_it_is(clock: list[float]) -> None:
    loop, service = loop_of(clock)
    after(loop, clock, 3)
    service.running = ["7"]
    after(loop, clock, 60)
    assert [reason for reason, _ in service.asked] == [REBOOT]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"reason": "Action:Reboot", "boot": "aaaaaaaa", "tries": "9", "at": 0}']
)
def test_a_damaged_note_is_none(clock: list[float], text: str) -> None:
    place.STATE.mkdir(parents=True)
    (place.STATE / "request.json").write_text(text)
    assert recovery.of(REBOOT, OLD) is None and recovery.of("rack", OLD) is None
    recovery.asked(REBOOT, OLD)
    assert recovery.of(REBOOT, OLD)["tries"] == 1 and recovery.of(REBOOT, NEW) is None
    assert recovery.of(REBOOT, "") is None, "a boot whose id cannot be read is none of ours"
