"""What `ultracluster cost --by` reads of a real accounting database: shared nodes, arrays, starts, names."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from rules_support import changed, environment_data, loaded
from slurm_twin.configuration import CONTROLLER
from slurm_twin.laptop import login_shell

from tests.slurm_twin.conftest import Machines
from ultracluster.jobs.queue.person_session import PersonSession
from ultracluster.jobs.queue.slurm_queue import SlurmQueue
from ultracluster.model import resolve
from ultracluster.plan.usage import Records

DEV = resolve(
    loaded(
        changed(
            environment_data("dev"),
            {"node_groups.gpu.instance_type": "p5.48xlarge", "node_groups.gpu.count": 4},
        )
    ).environment
)
FORGED = "a\n999|999|bob|2002||gpu|COMPLETED|1|2|cpu=8|n1|$(id);x"


def test_hours_of_real_jobs(machines: Machines) -> None:
    twin = machines().fresh({"SchedulerParameters": "requeue_delay=1"})
    since = datetime.fromtimestamp(int(twin.run("date +%s").stdout), UTC)
    shared = twin.submit("#!/bin/bash\nsleep 1", "--gres=gpu:2", "--cpus-per-task=1", "--mem=100")
    array = twin.submit("#!/bin/bash\ntrue", "--array=1-3", "--cpus-per-task=8", "--mem=100", user="bob")
    named = twin.submit("#!/bin/bash\ntrue", f"--job-name={FORGED}", "--mem=100")
    again = twin.submit("#!/bin/bash\nsleep 600", "--nodes=2", "--exclusive", "--requeue", user="bob")
    twin.wait(lambda: twin.job(again)["job_state"] == ["RUNNING"], "the job to run")
    twin.run(f"scontrol requeue {again}")
    held = twin.submit("#!/bin/bash\ntrue", "--hold")

    def ask() -> Records:
        session = PersonSession(login_shell(twin, "alice"), user="alice")
        queue = SlurmQueue(session, CONTROLLER)
        try:
            return queue.records(DEV, since, since + timedelta(days=1))
        finally:
            queue.close()

    twin.wait(
        lambda: twin.job(again)["job_state"] == ["RUNNING"] and twin.job(again)["restart_cnt"] == 1,
        "its second start",
    )
    ended = f"squeue --noheader --states=PENDING,RUNNING,COMPLETING --jobs={shared},{array},{named}"
    twin.wait(lambda: not twin.run(ended).stdout.strip(), "the others to end")
    counts = {str(shared): 1, str(array): 3, str(named): 1, str(again): 2}

    def recorded() -> bool:
        """slurmctld tells slurmdbd when it has time."""
        runs = [one for one in ask().runs if one.start >= since.timestamp()]
        return len(runs) == sum(counts.values()) and sum(one.end is None for one in runs) == 1

    twin.wait(recorded, "the accounting")
    found = ask()
    runs = [one for one in found.runs if one.start >= since.timestamp()]
    assert abs(found.now - time.time()) < 60
    by_job = {one: [run for run in runs if run.job == one] for one in {run.job for run in runs}}
    assert {one: len(those) for one, those in by_job.items()} == counts and str(held) not in by_job
    (part,) = by_job[str(shared)]
    assert (part.user, part.share, part.accelerators) == ("alice", pytest.approx(0.25), 0.25)
    assert part.end is not None and 1 <= part.end - part.start < 120
    assert {run.share for run in by_job[str(array)]} == {1.0}
    first, second = sorted(by_job[str(again)], key=lambda run: run.start)
    assert first.end is not None and second.end is None and len(second.nodes) == 2
    assert first.attempt != second.attempt and (second.share, second.accelerators) == (1.0, 1.0)
    (odd,) = by_job[str(named)]
    assert odd.user == "alice" and "999" not in by_job
    assert set(found.groups.values()) == {"gpu"}
    twin.run(f"scancel {again} {held}")
