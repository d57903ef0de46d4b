"""A round of collectors, and the program that nodes run: what fails, hangs or talks too much costs itself."""

from __future__ import annotations

import ast
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from expositions import series
from metrics_node import COLLECTORS, METRICS, Node, module
from node_agent.receiver import until

rounds: Any = module("rounds")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def collector(name: str, collect: Any, seconds: float = 300) -> Any:
    families = {f"ultracluster_{name}": ("gauge", "A test")}
    return SimpleNamespace(NAME=name, SECONDS=seconds, METRICS=families, collect=collect)


def good(host: Any) -> Iterator[Any]:
    yield "ultracluster_good", {"x": "1"}, 1
    yield "ultracluster_good", {"x": "1"}, 2


def fails(host: Any) -> Iterator[Any]:
    yield "ultracluster_fails", {}, 1
    raise RuntimeError("broken")


def hangs(host: Any) -> Iterator[Any]:
    yield "ultracluster_hangs", {}, 1
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.run(["sleep", "3600"], check=False)


def leaves_a_child(host: Any) -> Iterator[Any]:
    yield "ultracluster_leaves", {}, 1
    if os.fork() == 0:
        time.sleep(3600)
        os._exit(0)


def talks(host: Any) -> Iterator[Any]:
    return (("ultracluster_talks", {"x": str(one)}, one) for one in range(20_000))


def run(node: Node, to: Path, *collectors: Any) -> dict[str, dict[str, float]]:
    """What is told of each collector."""
    rounds.round_of(node.host(), collectors, to)
    told: dict[str, dict[str, float]] = {}
    for name, labels, value in series((to / "collectors.prom").read_text()):
        told.setdefault(labels["collector"], {})[name.removeprefix("ultracluster_collector_")] = value
    return told


def test_what_fails_or_hangs_costs_itself_only(node: Node, tmp_path: Path) -> None:
    to = tmp_path / "to"
    to.mkdir()
    (to / "fails.prom").write_text("ultracluster_fails 7\n")

    told = run(
        node, to, collector("good", good), collector("fails", fails), collector("hangs", hangs, 0.5),
        collector("leaves", leaves_a_child, 1), collector("talks", talks),
    )  # fmt: skip

    assert {name: one["up"] for name, one in told.items()} == {
        "good": 1, "fails": 0, "hangs": 0, "leaves": 0, "talks": 1,
    }  # fmt: skip
    assert (told["good"]["samples_refused"], told["talks"]["samples_refused"]) == (1, 15_000)
    assert "samples_refused" not in told["fails"]
    assert sorted(file.name for file in to.iterdir()) == ["collectors.prom", "good.prom", "talks.prom"]
    assert list(series((to / "good.prom").read_text())) == [("ultracluster_good", {"x": "1"}, 1.0)]
    assert stat.S_IMODE((to / "good.prom").stat().st_mode) == 0o644


def test_what_the_kernel_does_not_end_is_left_alone_and_not_started_again(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a process that hangs in Lustre: no signal reaches it."""
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _: killed.append(pid))
    begun = tmp_path / "begun"

    def stuck(host: Any) -> Iterator[Any]:
        again = begun.exists()
        with begun.open("a") as file:
            file.write("x")
        if not again:
            time.sleep(3600)
        yield "ultracluster_stuck", {}, 1

    for _ in range(3):
        assert (
            run(node, tmp_path / "to", collector("stuck", stuck, 0.3), collector("good", good))["stuck"]["up"]
            == 0
        )
    until(begun.exists)
    assert (begun.read_text(), len(killed)) == ("x", 1)

    monkeypatch.undo()
    os.kill(killed[0], signal.SIGKILL)
    until(lambda: module("host").started(killed[0]) is None)
    run(node, tmp_path / "to", collector("stuck", stuck))
    assert begun.read_text() == "xx", "started again once it is gone"


def test_a_file_system_that_hangs_is_told_and_asked_by_one_process_only(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.lustre()
    lustre: Any = module("lustre")
    monkeypatch.setattr(lustre, "PROBE_SECONDS", 0.3)
    monkeypatch.setattr(lustre, "_ask", lambda _: time.sleep(3600))
    probes: list[int] = []
    real = os.kill

    def kill(pid: int, number: int) -> None:
        probes.append(pid)

    monkeypatch.setattr(os, "kill", kill)
    try:
        for _ in range(3):
            told = {name: value for name, _, value in series(node.text("lustre"))}
            assert told["ultracluster_lustre_stalled"] == 1
            assert (
                "ultracluster_lustre_probe_seconds" not in told
                and "ultracluster_lustre_free_bytes" not in told
            )
            assert told["ultracluster_lustre_read_bytes_total"] > 0, "counters do not ask the servers"
        assert len(probes) == 1, "no second probe beside one that hangs"
    finally:
        monkeypatch.undo()
        for pid in probes:
            real(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    monkeypatch.setattr(lustre, "PROBE_SECONDS", 300)
    assert 'stalled{fs="/fsx"} 0' in node.text("lustre")


# ---- the program


def main(node: Node, *arguments: str, seconds: float = 600, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-ISB",
        METRICS / "main.py",
        "--root",
        node.root,
        "--state",
        node.state,
        *arguments,
    ]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False,
        env={"PATH": f"{node.bin}:/usr/bin:/bin"}, **more,
    )  # fmt: skip


def test_the_program_writes_a_file_for_each_collector(node: Node, tmp_path: Path) -> None:
    node.everything()
    settings = node.document("settings.json", node.settings)

    done = main(node, "--to", str(tmp_path / "to"), "--settings", str(settings))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    files = {file.name for file in (tmp_path / "to").iterdir()}
    assert files == {"collectors.prom", *(f"{name}.prom" for name in COLLECTORS)}


def test_without_settings_it_says_what_it_sees(node: Node, tmp_path: Path) -> None:
    node.efa(2)

    done = main(node, "--to", str(tmp_path / "to"), "--settings", "/does/not/exist", "--only", "efa,node")

    assert done.returncode == 0
    assert "ultracluster_efa_devices 2" in (tmp_path / "to/efa.prom").read_text()
    assert "expected" not in (tmp_path / "to/efa.prom").read_text()


@pytest.mark.parametrize("arguments", [["--only", "efa,nothing"], ["--loop", "0"], ["--other"]])
def test_wrong_arguments_are_refused(node: Node, arguments: list[str]) -> None:
    done = main(node, *arguments)

    assert done.returncode == 2 and "usage:" in done.stderr and "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_written_is_said(node: Node, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = main(node, "--to", str(tmp_path / "file"), "--only", "node")

    assert done.returncode == 1
    assert done.stdout.startswith("nothing can be written to") and "Traceback" not in done.stderr


def test_a_loop_goes_on_until_it_is_ended(node: Node, tmp_path: Path) -> None:
    node.itself()
    to = tmp_path / "to"
    process = subprocess.Popen(
        [sys.executable, "-ISB", METRICS / "main.py", "--root", node.root, "--state", node.state,
         "--loop", "1", "--to", to, "--only", "node", "--settings", node.document("s.json", {})],
    )  # fmt: skip
    try:
        until((to / "node.prom").exists)
        first = (to / "node.prom").stat().st_mtime_ns
        until(lambda: (to / "node.prom").stat().st_mtime_ns != first)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    finally:
        process.kill()
    assert list((to).glob(".*")) == [], "nothing half-written is left"


def test_every_program_runs_with_python_3_9() -> None:
    """What is newer in the language is an error here; what is newer in the library is not seen."""
    for file in METRICS.glob("*.py"):
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_what_people_write_leaves_room_for_the_node(node: Node) -> None:
    """One scrape has all files of a node: with more lines than its budget all of it would be refused."""
    counts = {}
    for budget in (None, 2000, 20_000):
        node.settings = {} if budget is None else {"max_series_per_node": budget}
        host = module("host").Host(node.root, node.root / "state", node.settings)
        counts[budget] = [rounds.most_lines(host, name) for name in ("training", "slurm", "node")]
    assert counts == {None: [5000, 30_000, 5000], 2000: [1000, 30_000, 5000], 20_000: [5000, 30_000, 5000]}
