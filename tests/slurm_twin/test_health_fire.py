"""Faults under fire in a real Slurm, with the limits as they are by default: two GPUs that break one after
the other, a controller that restarts, a lock that others hold. A fault that was seen is answered in the end.

The clock of the loop goes ten times faster than on a node.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest
from slurm_twin import health
from slurm_twin.health import LOCK, breaks, found_by_program, held, job_on, log, program
from slurm_twin.twin import Twin

from tests.slurm_twin import conftest

NODES = [f"n{number}" for number in range(1, 7)]
SETTINGS = {
    "mode": "enforce",
    "orchestrator": "parallelcluster",
    "boot_gate": True,
    "ignore": list(health.BESIDES),
    "replace": True,
    "checkpoint_seconds": 3,
    "fresh_seconds": 0,
}


@pytest.fixture(scope="module")
def running() -> Iterator[Twin]:
    boot = health.boot(health.cluster(SETTINGS), "gpu", tick=1.5, pause=6)
    yield from conftest.running(Twin(nodes=len(NODES), conf=health.CONF, boot=boot))


@pytest.fixture
def twin(running: Twin) -> Twin:
    """Healthy nodes that nobody remembers anything of."""
    health.begin(running, SETTINGS)
    return running


on_both = pytest.mark.parametrize("orchestrator", ["parallelcluster", "hyperpod-slurm"])
"""ParallelCluster's own slurm.conf always has the RebootProgram; HyperPod is asked, and played here."""


def set_all(twin: Twin, **changes: object) -> None:
    for node in NODES:
        health.set_node(twin, node, {**SETTINGS, **changes})


def boot_of(twin: Twin, node: str) -> str:
    """Empty while it boots."""
    with contextlib.suppress(OSError, ValueError):
        return twin.on(node, "cat /proc/sys/kernel/random/boot_id", check=False).stdout
    return ""


def on(*nodes: str) -> tuple[str, str]:
    return f"--nodes={len(nodes)}", f"--nodelist={','.join(nodes)}"


@on_both
def test_a_fault_that_a_restart_of_slurmctld_hides_is_answered(twin: Twin, orchestrator: str) -> None:
    """Drill B: without an answer, and then from a node that is UNKNOWN for a moment."""
    set_all(twin, orchestrator=orchestrator, node_recovery="automatic")
    boot = boot_of(twin, "n4")
    saved(twin)
    twin.kill("slurmctld")
    breaks(twin, "n4", 95)
    twin.wait(lambda: "xid:95" in log(twin, "n4"), "the loop to meet it")
    twin.start("slurmctld")
    if orchestrator == "hyperpod-slurm":
        mended_by_hyperpod(twin, "n4")
    twin.wait(lambda: boot_of(twin, "n4") not in ("", boot), "n4 to be rebooted")
    twin.wait(lambda: not held(twin), "n4 to be back")


def saved(twin: Twin) -> None:
    """Until slurmctld has written its nodes down: one that is killed comes back with what it saved last."""
    twin.run("touch /run/twin/before; scontrol update NodeName=n1 Comment=''")
    newer = "test /var/lib/slurm/slurmctld/node_state -nt /run/twin/before"
    twin.wait(lambda: not twin.run(newer, check=False).returncode, "slurmctld to save its nodes")


@on_both
def test_a_second_gpu_that_breaks_within_the_hour_is_not_forgotten(twin: Twin, orchestrator: str) -> None:
    """Drill A. No check but the kernel's log finds XID 95."""
    set_all(twin, orchestrator=orchestrator, node_recovery="automatic")
    boots = {node: boot_of(twin, node) for node in ("n2", "n3")}
    job = job_on(twin, *on("n2", "n3"))
    breaks(twin, "n2", 95)
    breaks(twin, "n3", 95)
    twin.wait(lambda: {"n2", "n3"} <= held(twin).keys(), "both to be closed to new jobs")
    kept = json.loads(twin.on("n2", "cat /var/lib/ultracluster/health/open.json").stdout)
    assert [row["finding"]["job"] for row in kept["rows"]] == [str(job)], "the job of its time is kept"
    twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")
    twin.run(f"scancel {job}")
    if orchestrator == "hyperpod-slurm":
        mended_by_hyperpod(twin, "n2", "n3")
    twin.wait(lambda: all(boot_of(twin, node) not in ("", boots[node]) for node in boots), "both to boot")
    twin.wait(lambda: not held(twin), "both to be back")
    assert all(one.reason == "" for node, one in twin.states().items() if node not in boots)
    said = log(twin, "n2") + log(twin, "n3")
    assert "waits for the share" in said and "the share has a place" in said


def test_above_the_second_limit_a_node_is_the_last_choice_until_there_is_a_place(twin: Twin) -> None:
    """Nobody reboots here: of six nodes one may be out, and two closed."""
    set_all(twin, orchestrator="hyperpod-slurm", node_recovery="none")
    for node in ("n1", "n2", "n3"):
        breaks(twin, node, 95)
    last = "scontrol --oneliner show nodes | grep -c ' Weight=1000000 '"
    twin.wait(lambda: twin.run(last, check=False).stdout.strip() == "1", "one to be the last choice")
    closed = held(twin).keys()
    assert len(closed) == 2
    (third,) = {"n1", "n2", "n3"} - closed
    twin.wait(lambda: "ALERT only, it stays open" in log(twin, third), "its log to say so")
    (first,) = (node for node in closed if "waiting=yes" not in twin.state(node).comment)
    twin.run(f"scontrol update NodeName={first} State=RESUME")
    twin.wait(lambda: third in held(twin), "the third to be closed, now that there is a place")
    assert len(held(twin)) == 2


def mended_by_hyperpod(twin: Twin, *nodes: str) -> None:
    """What the service does about a node that fails with its words, one after the other."""
    left = set(nodes)
    while left:
        twin.wait(lambda: asked(twin, left), "HyperPod to be asked")
        node = asked(twin, left)[0]
        assert len(asked(twin, left)) == 1, "no more than the share"
        left.discard(node)
        twin.reboot(node)
        twin.wait(lambda node=node: twin.registered(node), f"{node} to register")
        twin.run(f"scontrol update NodeName={node} State=RESUME")


def asked(twin: Twin, nodes: set[str]) -> list[str]:
    return [node for node, one in twin.states(*nodes).items() if one.reason == "Action:Reboot"]


@on_both
def test_a_contained_error_requeues_the_job_that_met_it_and_no_other(twin: Twin, orchestrator: str) -> None:
    """Drill F: the lock is not free, the job ends, and another one begins."""
    set_all(twin, orchestrator=orchestrator, node_recovery="automatic")
    first = job_on(twin, *on("n1"))
    twin.run(
        f"scontrol create reservation ReservationName={LOCK} StartTime=now Duration=60 Users=root Nodes=n6"
        " Flags=IGNORE_JOBS,OVERLAP"
    )
    breaks(twin, "n1", 94)
    twin.wait(lambda: twin.job(first)["restart_cnt"] == 1, "the job to be queued again without the lock")
    twin.run(f"scancel {first}")
    second = job_on(twin, *on("n1"), user="bob")
    twin.run(f"scontrol delete reservation={LOCK}")
    twin.wait(lambda: "DRAIN" in twin.state("n1").states, "n1 to wait for an idle moment")
    assert twin.job(second)["restart_cnt"] == 0
    assert twin.job(second)["job_state"] == ["RUNNING"]


def test_a_job_that_meets_a_contained_error_again_is_held(twin: Twin) -> None:
    job = job_on(twin, *on("n5"))
    breaks(twin, "n5", 94)
    twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")
    # before n5 waits for an idle moment, or when it has booted
    twin.wait(lambda: twin.job(job)["job_state"] == ["RUNNING"], "the job to run")
    breaks(twin, twin.job(job)["nodes"], 94)
    twin.wait(lambda: twin.job(job)["hold"], "the job to be held")
    assert "ultracluster:held:xid:94" in twin.job(job)["admin_comment"]


@on_both
def test_the_job_on_a_lost_gpu_is_queued_again_before_the_reboot(twin: Twin, orchestrator: str) -> None:
    """Drill G."""
    set_all(twin, orchestrator=orchestrator, node_recovery="automatic")
    boot = boot_of(twin, "n1")
    job = job_on(twin, *on("n1", "n2"))
    breaks(twin, "n1", 79)
    twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")
    if orchestrator == "hyperpod-slurm":
        mended_by_hyperpod(twin, "n1")
    twin.wait(lambda: boot_of(twin, "n1") not in ("", boot), "n1 to be rebooted")
    said = log(twin, "n1")
    assert said.index("its jobs are told") < said.index(f"job {job} is queued again")
    if orchestrator == "hyperpod-slurm":
        assert said.index(f"job {job} is queued again") < said.index("HyperPod is asked")


def test_a_condemned_node_stays_drained_whoever_reads_the_line_first(twin: Twin) -> None:
    """Drill H: HealthCheckProgram meets it while the service stands still. No other node is asked for, so the
    orchestrator does not matter."""
    set_all(twin, orchestrator="hyperpod-slurm", replace=False)
    twin.on("n3", health.AT_REST.format(command="kill -STOP $(cat /run/health.pid)"))
    try:
        breaks(twin, "n3", 64)
        found_by_program(twin, "n3")
        assert held(twin) == {"n3": "ultracluster:xid:64"}
    finally:
        twin.on("n3", "kill -CONT $(cat /run/health.pid)")
    twin.wait(lambda: "a person has to look" in log(twin, "n3"), "the service to go on with it")
    for _ in range(3):
        program(twin, "n3")
    assert held(twin).keys() == {"n3"}
    assert "resume" not in log(twin, "n3")
