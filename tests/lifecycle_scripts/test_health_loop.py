"""The health loop of a node where its surroundings misbehave: checks that hang, crash or talk nonsense, a
Slurm that does not answer, damaged settings. Whatever it is, a prolog ends in time and drains no node for it.

What the loop does in a Slurm that works is in tests/slurm_twin/test_health.py.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from health_modules import health_module as module
from health_node import ENFORCE, FAULT, Node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Nothing that a check of it started outlives the test."""
    made = Node(tmp_path)
    yield made
    for group in made.left():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while (left := made.left()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left


def test_a_fault_drains_the_node_with_our_reason_before_the_prolog_fails(node: Node) -> None:
    node.check("gpu", f"echo '{FAULT}'")
    assert node.run("prolog") == 1
    locked, drained, unlocked = node.changes
    assert locked.startswith("create reservation ReservationName=ultracluster_health ")
    assert drained.startswith(
        "update NodeName=n1 State=DRAIN Reason=ultracluster:gpu:lost Comment=ultracluster "
    )
    assert unlocked == "delete ReservationName=ultracluster_health"


def test_a_look_that_is_young_enough_is_not_repeated(node: Node) -> None:
    node.settings({**ENFORCE, "fresh_seconds": 60})
    node.check(
        "gpu", "echo x >>$ULTRACLUSTER_ROOT/looks; " + "echo '" + FAULT.replace("critical", "ok") + "'"
    )
    assert [node.run("prolog") for _ in range(3)] == [0, 0, 0]
    assert (node.root / "looks").read_text() == "x\n"


def test_a_fault_is_looked_at_again_however_young(node: Node) -> None:
    node.settings({**ENFORCE, "fresh_seconds": 60, "mode": "dry-run"})
    node.check("gpu", f"echo x >>$ULTRACLUSTER_ROOT/looks; echo '{FAULT}'")
    assert [node.run("prolog") for _ in range(2)] == [0, 0]
    assert (node.root / "looks").read_text() == "x\nx\n"
    assert node.changes == []
    assert "DRY RUN, would do: drain=ultracluster:gpu:lost" in node.log


NONSENSE = [
    "exit 9",
    "kill -SEGV $$",
    "echo 'Failed to initialize NVML'",
    "echo '{'",
    "echo '[]'",
    "echo '\"critical\"'",
    'echo \'{"check": "gpu", "result": "critical", "code": 7}\'',
    'echo \'{"check": "other", "result": "critical", "code": "lost"}\'',
    'echo \'{"check": "gpu", "result": "fatal", "code": "lost"}\'',
    'echo \'{"check": "gpu", "result": "critical", "code": "two words"}\'',
    'echo \'{"check": "gpu", "result": "critical", "code": "Action:Replace"}\'',
    "head -c 3000000 /dev/zero | tr '\\\\0' x",
    "printf '\\\\xff\\\\xfe\\\\n'",
    "syntax error (",
]


def test_nonsense_of_a_check_is_no_fault(node: Node) -> None:
    for number, code in enumerate(NONSENSE):
        name = f"gpu{number}"
        node.check(name, code.replace("\\\\", "\\").replace('"gpu"', f'"{name}"'))
    assert node.run("prolog") == 0
    assert node.changes == []
    assert len(node.started.read_text().split()) == len(NONSENSE)


def test_a_hung_check_holds_neither_a_prolog_nor_the_other_checks(node: Node) -> None:
    node.check("a_hangs", "trap '' TERM INT HUP; while :; do sleep 1; done")
    node.check("b_hangs", "sleep 3600 & echo")
    node.check("c_hangs", "exec 1>&-; sleep 3600")
    node.check("gpu", f"echo '{FAULT}'")
    assert node.run("prolog", slower=3) == 1, "what the other check found counts"


@pytest.mark.parametrize("trouble", ["hangs", "fails", "locked"])
def test_without_an_answer_of_slurm_the_job_runs_and_the_fault_is_kept(node: Node, trouble: str) -> None:
    node.check("gpu", f"echo '{FAULT}'")
    (node.state / trouble).touch()
    slower = 3
    assert node.run("prolog", slower=slower) == 0
    assert not any("State=DRAIN" in line for line in node.changes)
    if trouble == "locked":  # waiting nodes leave slurmctld its time
        asked = sum(line.startswith("create reservation") for line in node.changes)
        assert 2 <= asked <= 14 * slower

    (node.state / trouble).unlink()
    node.check("gpu", "echo '" + FAULT.replace("critical", "ok") + "'")
    if trouble != "hangs":  # there the prolog itself was ended
        node.run("program", slower=slower)
        assert any("State=DRAIN Reason=ultracluster:gpu:lost" in line for line in node.changes)


CONTAINED = FAULT.replace("critical", "warn").replace('"replace"', '"requeue", "when_idle": "reset"')


FULL = "\nNodeName=o99 State=IDLE+DRAIN Reason=ultracluster:gpu:lost [root@2026-11-22T20:00:00]"
EVENT = FAULT.replace(
    '"detail": "x"', '"detail": "x", "event": true, "at": 1800000000.5, "fault": "gpu-lost"'
)


def drains(node: Node) -> int:
    return sum("State=DRAIN Reason=ultracluster:gpu:lost" in line for line in node.changes)


def test_a_line_of_the_kernel_that_is_refused_is_tried_again_when_there_is_room(node: Node) -> None:
    """It is found by one look only; the log has nothing new afterwards."""
    node.check("gpu", f"echo '{EVENT}'")
    node.nodes("IDLE", FULL)
    assert node.run("prolog") == 0
    assert drains(node) == 0
    node.check("gpu", "echo '" + FAULT.replace("critical", "ok") + "'")
    node.run("program")
    assert drains(node) == 0
    assert "ALERT only, it stays open" in node.log
    node.nodes("IDLE")
    node.run("program")
    assert drains(node) == 1


@pytest.mark.parametrize("states", ["UNKNOWN", "DOWN*", "IDLE+NOT_RESPONDING+DOWN"])
def test_a_node_that_is_not_ours_for_a_moment_is_looked_at_again(node: Node, states: str) -> None:
    node.check("gpu", f"echo '{EVENT}'")
    node.nodes(states)
    node.run("program")
    assert drains(node) == 0
    node.check("gpu", "echo '" + FAULT.replace("critical", "ok") + "'")
    node.nodes("IDLE")
    node.run("program")
    assert drains(node) == 1


@pytest.mark.parametrize("text", ["{", '{"version": 99, "rows": []}'])
def test_a_damaged_file_of_open_faults_ends_nothing(node: Node, text: str) -> None:
    file = node.root / "var/lib/ultracluster/health/open.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    node.check("gpu", f"echo '{EVENT}'")
    assert node.run("prolog") == 1
    assert file.with_name("open.json.damaged").read_text() == text
    assert json.loads(file.read_text())["rows"][0]["answer"] == "drain"


@pytest.mark.parametrize(("ignored", "status"), [("gpu-lost", 0), ("gpu-found", 1)])
def test_one_row_of_the_table_can_be_left_out(node: Node, ignored: str, status: int) -> None:
    node.settings({**ENFORCE, "ignore": [ignored]})
    node.check("gpu", f"echo '{EVENT}'")
    assert node.run("prolog") == status


def test_what_a_check_finds_besides_the_gravest_is_a_fault_of_its_own(node: Node) -> None:
    other = EVENT.replace("lost", "hot").replace("replace", "reboot")
    node.settings({**ENFORCE, "ignore": ["gpu-lost"]})
    node.check("gpu", f"echo '{EVENT[:-1]}, \"others\": [{other}, 7, {{}}]}}'")
    assert node.run("prolog") == 1
    assert any("Reason=ultracluster:gpu:hot" in line for line in node.changes)


DIALOGUE = """#!/bin/sh
cd '{state}' && echo "$*" >>calls
case " $* " in
  ' --oneliner ')
    sed -n 's/^update /update /p' >>calls
    printf 'scontrol: show node n1\\n'
    cat before after
    ;;
  *' reservation '* | *' config '*) ;;
  *' show '*) cat nodes ;;
esac
"""
OURS = "NodeName=n1 State=IDLE+DRAIN Reason=ultracluster:gpu:lost [root@2026-11-22T20:27:49] Comment=x\n"


@pytest.mark.parametrize(
    ("before", "after", "restored"),
    [
        ("NodeName=n1 State=IDLE\n", OURS, ""),
        (
            "NodeName=n1 State=IDLE+FAIL Reason=Action:Replace [root@2026-11-22T20:27:48] Comment=\n",
            OURS,
            "update NodeName=n1 State=FAIL Reason=Action:Replace Comment=",
        ),
        (
            "NodeName=n1 State=IDLE+DRAIN Reason=bad fan [anna@2026-11-22T20:27:48] Comment=rack 7\n",
            OURS,
            "update NodeName=n1 State=DRAIN Reason=bad fan Comment=rack 7",
        ),
    ],
)
def test_what_someone_else_writes_at_the_same_moment_is_restored(
    node: Node, before: str, after: str, restored: str
) -> None:
    """Slurm has no compare-and-set: the node was ours to drain when it was read."""
    (node.bin / "scontrol").write_text(DIALOGUE.replace("{state}", str(node.state)))
    (node.state / "before").write_text(before)
    (node.state / "after").write_text(after)
    node.check("gpu", f"echo '{EVENT}'")
    assert node.run("prolog") == (0 if restored else 1)
    written = [line for line in node.changes if line.startswith("update NodeName=n1 State=")]
    assert written[1:] == ([restored] if restored else [])
    row = json.loads((node.root / "var/lib/ultracluster/health/open.json").read_text())["rows"][0]
    assert row["answer"] == ("slurm" if restored else "drain"), "it stays open"


def jobs_of(node: Node, *jobs: str) -> None:
    (node.bin / "squeue").write_text("#!/bin/sh\n" + "".join(f"echo {job}\n" for job in jobs))


def requeued(node: Node) -> list[str]:
    return [line for line in node.changes if line.startswith("requeue")]


def test_one_contained_error_queues_one_job_again_however_often_it_is_told(node: Node) -> None:
    """By the watcher, by the next look, and by a prolog that takes over what it found. No other node may
    be drained here: jobs go on to come to this one."""
    node.settings({**ENFORCE, "fresh_seconds": 60, "ignore": []})
    node.nodes(
        "MIXED", "\nNodeName=o99 State=IDLE+DRAIN Reason=ultracluster:gpu:lost [root@2026-11-22T20:00:00]"
    )
    node.check("gpu", f"echo '{CONTAINED}'")
    jobs_of(node, "7")
    node.run("program")
    assert requeued(node) == ["requeue 7"]
    jobs_of(node, "8")
    node.run("program")
    node.run("prolog")
    assert requeued(node) == ["requeue 7"]


def test_jobs_that_share_a_node_of_ours_are_not_queued_again_for_one_of_them(node: Node) -> None:
    comment = "Comment=ultracluster boot=1 action=reboot-idle by=gpu:lost drained=1"
    node.nodes("MIXED+DRAIN", f" Reason=ultracluster:gpu:lost [root@2026-11-22T20:00:00] {comment}")
    node.check("gpu", f"echo '{CONTAINED}'")
    jobs_of(node, "7", "8")
    node.run("program")
    assert requeued(node) == []


def test_a_healthy_node_asks_slurmctld_now_and_then_and_a_drained_one_each_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, place, known = module("loop"), module("place"), module("known")
    for name in ("RUN", "STATE", "HOME"):
        monkeypatch.setattr(place, name, tmp_path / name)
    asked: list[str] = []

    class Slurm:
        def node(self, name: str) -> Any:
            asked.append(name)
            return known.Node(name=name, states=frozenset({"IDLE"}))

        def swap(self, *_: object) -> tuple[None, None]:
            return None, None

    loop = program.Loop()
    loop.name, loop.slurm, loop.settings.mode = "n1", Slurm(), "enforce"
    for _ in range(9):
        loop.follow()
    assert asked == ["n1"]
    loop._do(known.Plan((("drain", "ultracluster:gpu:lost"),)), known.Node(name="n1"))
    loop.follow()
    assert asked == ["n1", "n1"]


@pytest.mark.parametrize(
    ("comment", "due"),
    [
        ("", True),
        ("ultracluster boot=old", True),
        ("ultracluster boot=now action=reboot", False),
        ("rack", False),
    ],
)
def test_a_drain_that_slurmctld_has_lost_is_asked_for_again_and_a_resume_is_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str, due: bool
) -> None:
    program, place, known = module("loop"), module("place"), module("known")
    faults = module("open_faults")
    for name in ("RUN", "STATE", "HOME"):
        monkeypatch.setattr(place, name, tmp_path / name)
    loop = program.Loop()
    loop.boot = "now"
    line = known.Finding("xid", "critical", "95", "reset", event=True)
    kept = faults.noted(faults.Book("now"), [line], now=1)
    faults.save(faults.answered(kept, line, asked="", answer="drain", now=1))
    loop._lost(known.Node("n1", frozenset({"IDLE"}), comment=comment))
    assert bool(faults.due(faults.load("now"), now=2, all_open=True)) is due


def test_a_repair_without_effect_is_asked_for_again_with_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, place, known = module("loop"), module("place"), module("known")
    for name in ("RUN", "STATE", "HOME"):
        monkeypatch.setattr(place, name, tmp_path / name)
    clock, asked = [1_800_000_000], list[int]()
    monkeypatch.setattr(program.time, "time", lambda: clock[0])
    loop = program.Loop()
    monkeypatch.setattr(loop, "_unchanged", lambda me: me)
    monkeypatch.setattr(loop, "_do", lambda *_: asked.append(clock[0]))
    plan, kept = known.Plan((("reboot-here", ""),)), dict[str, Any]()
    while len(asked) < 8:
        loop._step(plan, known.Node(name="n1"), kept)
        clock[0] += 15
    pauses = [after - before for before, after in itertools.pairwise(asked)]
    assert pauses == [120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize("word", ["reboot-here", "warn"])
def test_a_repair_that_was_not_asked_for_as_the_node_has_changed_is_no_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """Such as its job, which has just ended: the next round asks, and forces nothing."""
    program, place, known, slurm = module("loop"), module("place"), module("known"), module("slurm")
    for name in ("RUN", "STATE", "HOME"):
        monkeypatch.setattr(place, name, tmp_path / name)
    loop, kept = program.Loop(), dict[str, Any]()
    before = known.Node("n1", frozenset({"IDLE", "COMPLETING", "DRAIN"}), reason="ultracluster:xid:79")
    after = known.Node("n1", frozenset({"IDLE", "DRAIN"}), reason="ultracluster:xid:79")
    asked = list[str]()

    class Slurm:
        def node(self, _: str) -> Any:
            return after

    loop.slurm = Slurm()
    monkeypatch.setattr(loop, "_do", lambda plan, _: asked.append(plan.steps[0][0]))
    plan = known.Plan(((word, ""),))
    with pytest.raises(slurm.SlurmError):
        loop._step(plan, before, kept)
    assert asked == []
    assert not any(kept["tries"].values())
    assert "warned" not in kept
    loop._step(plan, after, kept)
    assert asked == [word]
    assert place.read(place.STATE / "drained.json")["tries"] == {word: 1}


@pytest.mark.parametrize("status", [1, 75, 127])
def test_a_python_that_is_too_old_or_missing_sends_no_job_away(node: Node, status: int) -> None:
    """3.6 of RHEL 8 ends with 1 at the first import that it lacks, a shell without any with 127."""
    node.check("gpu", f"echo '{FAULT}'")
    (node.bin / "python3").write_text(f"#!/bin/sh\nexit {status}\n")
    (node.bin / "python3").chmod(0o755)
    assert [node.run(verb) for verb in ("prolog", "epilog", "program")] == [int(status == 75), 0, 0]
    assert node.changes == []


def test_no_user_can_hold_the_lock_of_looks(node: Node) -> None:
    """flock asks for no more than a file that can be opened."""
    node.check("gpu", f"echo '{FAULT}'")
    node.run("program")
    assert (node.root / "run/ultracluster/health/look.lock").stat().st_mode & 0o077 == 0


def test_a_clock_that_was_ahead_holds_no_node_for_ever() -> None:
    place = module("place")
    assert place.elapsed(time.time() + 86400) == float("inf")
    assert 9 < place.elapsed(time.time() - 10) < 20


@pytest.mark.parametrize("told", ["", "{", "[]", '{"mode": "destroy"}', '{"mode": 7, "ignore": 3}', "null"])
def test_damaged_settings_are_a_dry_run(node: Node, told: str) -> None:
    node.settings(told)
    node.check("gpu", f"echo '{FAULT}'")
    assert node.run("prolog") == 0
    assert node.changes == []


def test_what_is_off_or_ignored_does_not_run(node: Node) -> None:
    node.check("gpu", f"touch $ULTRACLUSTER_ROOT/looked; echo '{FAULT}'")
    node.settings({**ENFORCE, "mode": "off"})
    assert node.run("prolog") == 0
    node.settings({**ENFORCE, "ignore": ["gpu"]})
    assert node.run("prolog") == 0
    assert not (node.root / "looked").exists()


def test_the_epilog_looks_after_failed_jobs_only_and_never_fails(node: Node) -> None:
    node.check("gpu", f"echo x >>$ULTRACLUSTER_ROOT/looks; echo '{FAULT}'")
    assert node.run("epilog", SLURM_JOB_EXIT_CODE="0") == 0
    assert not (node.root / "looks").exists()
    for status in ("1792", "9", "", "nonsense"):
        assert node.run("epilog", SLURM_JOB_EXIT_CODE=status) == 0
    assert (node.root / "looks").read_text() == "x\n" * 4
    assert any("Reason=ultracluster:gpu:lost" in line for line in node.changes)


@pytest.mark.parametrize(
    ("states", "rest"),
    [
        ("IDLE+DRAIN", " Reason=bad fan [anna@2026-11-22T20:27:49] Comment="),
        ("IDLE+FAIL", " Reason=Action:Replace [root@2026-11-22T20:27:49] Comment="),
        ("DOWN*", " Reason=Not responding [slurm@2026-11-22T20:27:49]"),
    ],
)
def test_a_node_of_someone_else_stays_as_it_is(node: Node, states: str, rest: str) -> None:
    node.nodes(states, rest)
    node.check("gpu", f"echo '{FAULT}'")
    assert node.run("program") == 0
    assert node.changes == []


LINES = {
    # Slurm 24.11, 25.11 and 26.05 on the same node, cut to what is read
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1 State=IDLE+DRAIN ThreadsPerCore=1 "
    "BootTime=2026-11-22T03:11:18 Reason=ultracluster:gpu_count:missing [root@2026-11-22T20:27:49] "
    "Comment=ultracluster boot=12 drained=1,2": (
        {"IDLE", "DRAIN"},
        "ultracluster:gpu_count:missing",
        1795379269,
        "ultracluster boot=12 drained=1,2",
    ),
    "NodeName=n1 State=DOWN+DRAIN+REBOOT_ISSUED NextState=RESUME Partitions=p "
    "Reason=ultracluster:x:y : reboot issued [root@2026-11-22T20:27:51]": (
        {"DOWN", "DRAIN", "REBOOT_ISSUED"},
        "ultracluster:x:y : reboot issued",
        1795379271,
        "",
    ),
    "NodeName=n1 State=MIXED*+CLOUD Reason=says State=IDLE [of the rack] [anna@2026-11-22T20:27:51] Extra={} "
    "InstanceId=i-1": ({"MIXED", "CLOUD"}, "says State=IDLE [of the rack]", 1795379271, ""),
    "NodeName=n1 State=IDLE Comment=rack 7 Extra=(null)": ({"IDLE"}, "", 0, "rack 7"),
}


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_nodes_are_read_as_scontrol_prints_them(line: str) -> None:
    found: Any = module("slurm").parsed(line)
    assert (set(found.states), found.reason, found.reason_at, found.comment) == LINES[line]


def test_lines_that_are_no_nodes_are_none() -> None:
    parsed = module("slurm").parsed
    assert [parsed(line) for line in ("", "No nodes in the system", "NodeName=", "State=IDLE")] == [None] * 4


def test_a_health_check_program_has_no_environment_and_slurm_is_found() -> None:
    environment = module("slurm").environment
    assert (
        environment({"SLURM_CONF": "/a/slurm.conf", "HOME": "/root"}, root="/x")["SLURM_CONF"]
        == "/a/slurm.conf"
    )
    bare = environment({"SLURMD_NODENAME": "n1"})
    assert "/opt/slurm/bin" in bare["PATH"] or not Path("/opt/slurm/bin").exists()
    assert "/usr/bin" in bare["PATH"] and bare["TZ"] == "UTC0"
