"""Faults of nodes in a real Slurm: each is injected, and the node is drained or failed with the right reason
within its budget, its job is queued again, and no other node is changed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from subprocess import Popen

import pytest
from slurm_twin import health
from slurm_twin.health import HOME, breaks, found_by_program, held, job_on, log, program
from slurm_twin.twin import Twin

from tests.slurm_twin import conftest

NODES = ["n1", "n2", "n3", "n4"]
SETTINGS = {
    "mode": "enforce",
    "orchestrator": "hyperpod-slurm",  # which reboots and replaces nothing with
    "node_recovery": "none",
    "boot_gate": True,
    "ignore": list(health.BESIDES),
    "max_drained_percent": 50,
    "max_drained_per_hour": 1000,
    "replace": True,
    "max_resumes_per_day": 20,
    "checkpoint_seconds": 3,
    "fresh_seconds": 0,
}


@pytest.fixture(scope="module")
def running() -> Iterator[Twin]:
    boot = health.boot(health.cluster(SETTINGS), "gpu")
    yield from conftest.running(Twin(nodes=len(NODES), conf=health.CONF, boot=boot))


@pytest.fixture
def twin(running: Twin) -> Twin:
    """Four healthy nodes, and none of them changed by the test before."""
    health.begin(running, SETTINGS)
    return running


def tell(twin: Twin, node: str, **changes: object) -> None:
    """Settings of one node."""
    health.set_node(twin, node, {**SETTINGS, **changes})


def fewer_gpus(twin: Twin, node: str) -> None:
    """One does not answer; and what the checks of one moment share is forgotten."""
    twin.on(node, "echo 7 >/run/fake/gpus/count; rm -f /run/ultracluster/health/nvidia-smi")


def nodes_of(twin: Twin, job: int) -> set[str]:
    names = twin.run(f"squeue --noheader --jobs={job} --format=%N").stdout.strip()
    return set(twin.run(f"scontrol show hostnames {names}").stdout.split()) if names else set()


def test_the_step_lays_the_loop_and_healthy_nodes_run_jobs(twin: Twin) -> None:
    job = job_on(twin, "--nodes=4", script="srun hostname")
    twin.wait(lambda: twin.job(job)["job_state"] == ["COMPLETED"], "the job to end")
    assert held(twin) == {}
    said = twin.on("n1", f"cat {HOME}/settings.json /var/lib/ultracluster/health/gpu_count.json").stdout
    assert '"mode": "enforce"' in said
    assert '"result": "ok"' in said


def test_a_test_begins_with_the_services_that_nothing_has_touched(twin: Twin) -> None:
    """To start them again takes 2 CPU seconds for each test."""
    before = [twin.on(node, "cat /run/health.pid").stdout for node in NODES]
    health.begin(twin, SETTINGS)
    assert [twin.on(node, "cat /run/health.pid").stdout for node in NODES] == before


def test_a_gpu_that_falls_off_the_bus_drains_its_node_and_sends_the_job_elsewhere(twin: Twin) -> None:
    broken = job_on(twin, "--nodes=2")
    other = job_on(twin, "--nodes=1", user="bob")
    first, before = sorted(nodes_of(twin, broken))[0], nodes_of(twin, other)

    breaks(twin, first, 79)
    twin.wait(lambda: held(twin), "the node to be drained")
    assert held(twin) == {first: "ultracluster:xid:79"}

    twin.wait(
        lambda: first not in nodes_of(twin, broken) and twin.job(broken)["job_state"] == ["RUNNING"],
        "the job to run elsewhere",
    )
    assert twin.job(broken)["restart_cnt"] == 1
    assert nodes_of(twin, other) == before, "the job of another node was left alone"
    assert twin.job(other)["restart_cnt"] == 0


def test_a_job_has_time_for_a_checkpoint_if_it_asks_for_a_signal(twin: Twin) -> None:
    tell(twin, "n4", checkpoint_seconds=3600)
    job = job_on(
        twin,
        "--nodes=1",
        "--nodelist=n4",
        "--comment=ultracluster:signal=USR1",
        script="srun sleep 300 & while sleep 0.1; do continue; done",
        first="trap 'touch checkpoint' USR1",
    )
    breaks(twin, "n4", 79)
    written = "test -e /home/alice/checkpoint"
    twin.wait(lambda: not twin.run(written, check=False).returncode, "the job to be told")
    twin.wait(lambda: "3600 s for a checkpoint" in log(twin, "n4"), "the log to say so")
    assert twin.job(job)["restart_cnt"] == 0
    tell(twin, "n4", checkpoint_seconds=0)
    twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")


def test_a_contained_memory_error_requeues_the_job_and_the_node_stays(twin: Twin) -> None:
    job = job_on(twin, "--nodes=1")
    (node,) = nodes_of(twin, job)
    breaks(twin, node, 94)
    twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")


def test_before_a_job_a_lost_gpu_is_found_and_the_job_runs_on_another_node(twin: Twin) -> None:
    fewer_gpus(twin, "n1")
    job = twin.submit("#!/bin/bash\nsrun hostname\n", "--nodes=4", "--requeue", "--exclusive")
    twin.wait(lambda: "n1" in held(twin), "n1 to be drained")
    assert held(twin) == {"n1": "ultracluster:gpu_count:missing"}
    # a prolog that fails leaves the reason, and holds no job
    assert "PENDING" in twin.job(job)["job_state"]
    assert not twin.job(job)["hold"]


def test_a_file_system_that_is_gone_drains_its_node_and_leaves_the_job_alone(twin: Twin) -> None:
    job = job_on(twin, "--nodes=1", "--nodelist=n2")
    twin.on("n2", "sed -i 's,^LUSTRE_PATH=.*,LUSTRE_PATH=/fsx,' /var/lib/ultracluster/health/node")
    try:
        found_by_program(twin, "n2")
        assert held(twin) == {"n2": "ultracluster:lustre:unmounted"}
        assert twin.job(job)["job_state"] == ["RUNNING"]
    finally:
        twin.on("n2", "sed -i 's,^LUSTRE_PATH=.*,LUSTRE_PATH=,' /var/lib/ultracluster/health/node")


def test_a_tool_that_hangs_holds_no_job(twin: Twin) -> None:
    twin.on("n2", "touch /run/fake/gpus/hangs")
    began = time.monotonic()
    done = twin.on("n2", "SLURMD_NODENAME=n2 /opt/ultracluster/prolog.d/10_ultracluster_health; echo $?")
    assert time.monotonic() - began < 60, "it waited until the tool had ended by itself"
    assert done.stdout.strip() == "0", "slow once is no fault"
    assert held(twin) == {}


def test_a_false_alarm_everywhere_drains_no_more_than_the_share(twin: Twin) -> None:
    for node in NODES:
        tell(twin, node, max_drained_percent=25)
        fewer_gpus(twin, node)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    programs = [
        Popen(twin.enter(node, "root", "env", f"SLURMD_NODENAME={node}", f"{HOME}/program"), env=environment)
        for node in NODES
    ]
    for process in programs:
        assert process.wait(60) == 0
    assert len(held(twin)) == 1
    (drained,) = held(twin)
    others = "".join(log(twin, node) for node in NODES if node != drained)
    assert "ALERT only" in others or "later" in others


@pytest.mark.parametrize("reason", ["bad fan, ask Anna", "Action:Replace"])
def test_what_an_operator_or_hyperpod_has_taken_is_left_alone(twin: Twin, reason: str) -> None:
    state = "FAIL" if reason.startswith("Action:") else "DRAIN"
    twin.run(f"scontrol update NodeName=n3 State={state} Reason='{reason}'")
    before = twin.state("n3")
    fewer_gpus(twin, "n3")
    breaks(twin, "n3", 79)
    program(twin, "n3")
    twin.wait(lambda: "which is not ours" in log(twin, "n3"), "the loop to see it")
    assert twin.state("n3") == before


def test_on_hyperpod_the_node_fails_with_the_words_that_it_acts_on(twin: Twin) -> None:
    tell(twin, "n2", node_recovery="automatic")
    job = job_on(twin, "--nodes=1", "--nodelist=n2")
    breaks(twin, "n2", 79)
    twin.wait(lambda: twin.state("n2").reason.startswith("Action:"), "HyperPod to be asked")
    found = twin.state("n2")
    assert found.reason in ("Action:Replace", "Action:Reboot")
    assert "FAIL" in found.states
    twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")


def test_a_dry_run_changes_nothing_and_says_what_it_would_do(twin: Twin) -> None:
    tell(twin, "n1", mode="dry-run")
    job = job_on(twin, "--nodes=1", "--nodelist=n1")
    breaks(twin, "n1", 79)
    said = "DRY RUN, would do: drain=ultracluster:xid:79"
    twin.wait(lambda: said in log(twin, "n1"), "the log to say it")
    # the next one is met in a later round
    breaks(twin, "n1", 79)
    twin.wait(lambda: log(twin, "n1").count(said) > 1, "the log to say it again")
    assert held(twin) == {}
    assert twin.job(job)["job_state"] == ["RUNNING"]


def test_a_node_comes_back_after_a_reboot_and_two_passes_and_not_before(twin: Twin) -> None:
    before = twin.on("n4", "cat /proc/sys/kernel/random/boot_id").stdout
    tell(twin, "n4", orchestrator="pcs")
    fewer_gpus(twin, "n4")
    found_by_program(twin, "n4")
    assert list(held(twin)) == ["n4"]
    # It has no job, so Slurm reboots it at once; with that the fault is gone, as all of /run is.
    twin.wait(lambda: not held(twin), "the node to be given back")
    assert twin.on("n4", "cat /proc/sys/kernel/random/boot_id").stdout != before
    comment = twin.run("scontrol --oneliner show node n4").stdout
    assert re.search(r"Comment=\"?ultracluster .*by=gpu_count:missing.* resumed=\d+", comment)
    assert "its checks passed" in log(twin, "n4")


def test_after_a_failed_job_the_node_is_looked_at(twin: Twin) -> None:
    fails = "while [ ! -e fail ]; do sleep 0.1; done; exit 7"
    job = job_on(twin, "--nodes=1", "--nodelist=n3", "--no-requeue", script=fails)
    fewer_gpus(twin, "n3")
    twin.run("touch /home/alice/fail")
    twin.wait(lambda: held(twin), "the node to be drained")
    assert held(twin) == {"n3": "ultracluster:gpu_count:missing"}
    assert twin.job(job)["job_state"] == ["FAILED"]
