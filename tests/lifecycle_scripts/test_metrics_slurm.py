"""What is asked of Slurm: how often, how much, and what comes of an answer that is late, torn or huge.

A real slurmctld has its word in tests/slurm_twin/test_metrics.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from expositions import series
from metrics_node import NOW, PENDING, RUNNING, SINFO, Node, module

slurm: Any = module("slurm")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    found = Node(tmp_path)
    found.slurm()
    return found


def told(node: Node, now: float = NOW) -> dict[tuple[str, ...], float]:
    """Values by name and the texts of the labels."""
    return {
        (name.removeprefix("ultracluster_slurm_"), *(labels[key] for key in sorted(labels))): value
        for name, labels, value in series(node.text("slurm", now))
    }


def test_it_asks_nothing_where_it_is_not_told_to(node: Node) -> None:
    for value in (False, None, "yes"):
        node.settings["slurm"] = value
        assert node.text("slurm") == ""


def test_nodes_jobs_and_waits(node: Node) -> None:
    found = told(node)

    assert found["up",] == 1
    assert found["node_state", "ip-10-1-0-1", "mixed"] == 1
    assert found["node_drained", "gpu_count", "missing", "ip-10-1-0-2"] == 1
    assert found["node_drained_timestamp_seconds", "ip-10-1-0-2"] == 1_795_390_800
    assert found["job_node", "team-a", "4711", "train", "ip-10-1-0-3", "alice"] == 1
    assert found["pending_seconds", "train", "Resources"] == 3600
    assert found["pending_jobs", "train", "Resources"] == 2


@pytest.mark.parametrize(
    ("state", "reason", "check"),
    [
        ("drained", "a person | said so", "other"),
        ("drained*", "ultracluster:ecc:row_remap", "ecc"),
        ("draining", "ultracluster:ecc:row remap", "ecc"),
        ("drained", "ultracluster:ecc", "other"),
        ("drained", 'ultracluster:x"y:z', "other"),
        ("failing", "Action:Replace", "other"),
        ("down~", "Not responding", "other"),
        ("idle~", "ultracluster:ecc:row_remap", None),
        ("idle", "ultracluster:ecc:row_remap", None),
    ],
)
def test_who_took_a_node_out(node: Node, state: str, reason: str, check: str | None) -> None:
    node.slurm(sinfo=f"n1|{state}|2026-11-22T23:40:00|{reason}\n")

    assert [key[1] for key in told(node) if key[0] == "node_drained"] == ([check] if check else [])


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("idle", "idle"),
        ("idle~", "idle+powered_down"),
        ("mixed#", "mixed+powering_up"),
        ("drained*", "drained+not_responding"),
        ("idle-", "idle"),
        ("DOWN$*", "down+maint+not_responding"),
        ("", "unknown"),
        ("\u00fc*", "unknown+not_responding"),
    ],
)
def test_marks_of_a_state_are_words(node: Node, state: str, words: str) -> None:
    """So that a plain `idle` is a node that is there."""
    node.slurm(sinfo=f"n1|{state}|Unknown|none\n")

    assert [key[2] for key in told(node) if key[0] == "node_state"] == [words]


@pytest.mark.parametrize(
    ("told_reason", "kept"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:n[1-90]", "ReqNodeNotAvail"),
        ("(null)", "null"),
        ("", "none"),
        ("QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit"),
    ],
)
def test_a_reason_is_its_first_word(node: Node, told_reason: str, kept: str) -> None:
    node.slurm(pending=f"a,b|2026-11-22T23:59:00|{told_reason}\n")

    waits = {key[1:] for key in told(node) if key[0] == "pending_jobs"}
    assert waits == {("a", kept), ("b", kept)}, "a job for two partitions waits in both"


@pytest.mark.parametrize("private", ["jobs", "accounts,users", "ALL", "usage,jobs"])
def test_where_jobs_are_private_nobody_is_named(node: Node, private: str) -> None:
    """node_exporter's port is open to all users of the node."""
    node.slurm(private=private)

    text = node.text("slurm")

    assert "alice" not in text and "team-a" not in text
    assert 'ultracluster_slurm_job_node{account="",job_id="4711"' in text


def test_slurmctld_is_asked_once_a_minute(node: Node) -> None:
    first = told(node)
    node.command("sinfo", "exit 1")
    assert told(node, NOW + 30) == first
    assert told(node, NOW + 60) == {("up",): 0}
    node.slurm()
    assert told(node, NOW + 62) == {("up",): 0}, "a slurmctld that is down is not asked more often"
    assert told(node, NOW + 120)["up",] == 1


def test_a_clock_that_was_set_back_does_not_stop_it(node: Node) -> None:
    told(node, NOW + 10_000)
    node.slurm(sinfo="n9|idle|Unknown|none\n")

    assert ("node_state", "n9", "idle") in told(node)


def test_a_slurmctld_that_does_not_answer_is_down_in_time(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.command("sinfo", "exec sleep 3600")
    monkeypatch.setattr(slurm, "COMMAND_SECONDS", 0.3)
    assert told(node) == {("up",): 0}


def test_all_questions_fit_into_a_round() -> None:
    assert 4 * slurm.COMMAND_SECONDS < slurm.SECONDS
    assert slurm.SECONDS < 20, "the service that runs a round has 20 seconds"


def test_thousands_of_nodes_and_jobs_stay_within_the_limits(node: Node) -> None:
    """1,000 nodes, each with a job of its own, and 8,000 jobs that wait; then more than the limits."""
    names = [f"ip-10-{one // 250}-0-{one % 250}" for one in range(1000)]
    node.slurm(
        sinfo="".join(f"{name}|allocated|Unknown|none\n" for name in names),
        running="".join(f"{at}|user{at % 40}|team|train|{name}\n" for at, name in enumerate(names)),
        pending="".join(
            f"p{at % 5}|2026-11-22T2{at % 4}:00:00|Reason{at // 10 % 60}\n" for at in range(8000)
        ),
    )
    found = told(node)
    assert sum(key[0] == "job_node" for key in found) == 1000
    assert sum(key[0] == "pending_jobs" for key in found) == slurm.MOST_WAITS

    node.slurm(running="".join(f"{at}|u|team|train|n[1-1000]\n" for at in range(12)) + "x|y\n\n")
    found = told(node, NOW + 60)
    assert sum(key[0] == "job_node" for key in found) == slurm.MOST_ROWS
    assert found["rows_left_out", "jobs"] == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3,7],login1", ["n1", "n2", "n3", "n7", "login1"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("a[1-2]b[3-4]", ["a1b3", "a1b4", "a2b3", "a2b4"]),
        ("", []),
        ("n[", []),
        ("n[3-1]", []),
        ("n[1-99999999999]", []),
        ("n[a-b],n1", ["n1"]),
    ],
)
def test_names_of_several_nodes(text: str, names: list[str]) -> None:
    assert module("slurm_names").expanded(text) == names


def test_names_without_end_end() -> None:
    found = module("slurm_names").expanded("n[0-9999]x[0-9999]y[0-9999]", 50)

    assert len(found) == 50


@pytest.mark.parametrize(
    "broken", ["\0\xff|||\n" * 3, "|" * 50, "n1\n" * 5, "n1|idle\n", "n\udcff1|idle|x|y\n"]
)
def test_torn_answers_break_nothing(node: Node, broken: str) -> None:
    for name in ("sinfo", "running", "pending"):
        texts = {"sinfo": SINFO, "running": RUNNING, "pending": PENDING, name: broken}
        for key, text in texts.items():
            (node.bin / f"{key}.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
        (node.state / "slurm.json").unlink(missing_ok=True)
        assert told(node)["up",] == 1
