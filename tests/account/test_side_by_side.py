"""Calls at the same time: all answers, each error where its answer is wanted, and a quick interrupt."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from ultracluster.account.side_by_side import as_they_come


def test_every_answer_with_its_number() -> None:
    calls = [lambda number=number: number * number for number in range(20)]

    assert {number: answer() for number, answer in as_they_come(calls, 3)} == {n: n * n for n in range(20)}
    assert list(as_they_come([], 3)) == []


def test_what_ends_first_comes_first_and_no_more_run_than_are_wanted() -> None:
    go = threading.Event()
    most = running = 0
    lock = threading.Lock()

    def call(waits: bool) -> bool:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        if waits:
            go.wait(300)
        with lock:
            running -= 1
        return waits

    calls = [lambda waits=waits: call(waits) for waits in (True, False, False, False)]
    come = as_they_come(calls, 2)
    assert [next(come)[0] for _ in range(3)] == [1, 2, 3]
    go.set()
    assert next(come)[1]()
    assert most == 2


def test_an_error_is_raised_where_the_answer_is_wanted() -> None:
    def fails() -> int:
        raise ValueError("this one")

    answers = dict(as_they_come([fails, lambda: 1], 2))

    assert answers[1]() == 1
    with pytest.raises(ValueError, match="this one"):
        answers[0]()


def test_an_interrupt_waits_for_nobody() -> None:
    code = (
        "import time\n"
        "from ultracluster.account.side_by_side import as_they_come\n"
        "def call(): print('begun', flush=True); time.sleep(600)\n"
        "for _ in as_they_come([call] * 9, 4): pass\n"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert program.stdout
    for _ in range(4):
        program.stdout.readline()
    program.send_signal(signal.SIGINT)

    assert program.wait(300) != 0
