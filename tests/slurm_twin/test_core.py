"""A cluster goes on: through a reload, a killed controller, and plugins and scripts that are not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slurm_twin.twin import Twin

LONG = "#!/bin/bash\nsrun sleep 300\n"
WITHOUT = "optional not_there.so\ninclude /etc/slurm/none.d/*\noptional auto_resume.so\n"
PROLOG = "#!/bin/bash\nfor one in /opt/twin/prolog.d/*; do [ ! -x $one ] || $one; done\n"


@pytest.fixture(autouse=True)
def no_jobs_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails leaves nothing to the next one."""
    yield
    if "small" in request.fixturenames:
        small: Twin = request.getfixturevalue("small")
        small.run("scancel --user=alice; scancel --user=bob")
        small.wait(lambda: small.up() == len(small.nodes), "all nodes to be idle again")


def started(twin: Twin, job: int) -> None:
    """Until a step runs: slurmctld calls a job running before its nodes know of it."""
    twin.wait(lambda: ".0" in twin.run(f"squeue --noheader --steps --job={job} --format=%i").stdout)
    nodes = twin.run(f"scontrol show hostnames $(squeue --noheader --job={job} --format=%N)").stdout.split()
    for one in nodes:
        twin.wait(lambda one=one: tasks(twin, one), f"a task on {one}")


def tasks(twin: Twin, node: str) -> list[str]:
    """Processes of jobs on a node."""
    return twin.on(node, "pgrep --exact --euid alice,bob sleep", check=False).stdout.split()


def submit_both(twin: Twin) -> list[int]:
    """One job that runs on two nodes, and one that waits for three."""
    jobs = [
        twin.submit(LONG, "--nodes=2", "--gpus-per-node=8"),
        twin.submit(LONG, "--nodes=3", "--gpus-per-node=8", user="bob"),
    ]
    twin.wait(lambda: states(twin, jobs) == ["RUNNING", "PENDING"], "one job to run and one to wait")
    started(twin, jobs[0])
    return jobs


def states(twin: Twin, jobs: list[int]) -> list[str]:
    return [twin.job(job)["job_state"][0] for job in jobs]


def test_a_reload_loses_no_job(small: Twin) -> None:
    jobs = submit_both(small)
    before = {job: small.job(job)["start_time"] for job in jobs[:1]}

    small.configure({"KillWait": "7"})
    small.reconfigure()

    assert "KillWait                = 7 sec" in small.run("scontrol show config").stdout
    assert states(small, jobs) == ["RUNNING", "PENDING"]
    assert {job: small.job(job)["start_time"] for job in jobs[:1]} == before
    assert small.job(jobs[0])["restart_cnt"] == 0
    assert tasks(small, small.job(jobs[0])["batch_host"])


def test_a_killed_controller_loses_no_job(small: Twin) -> None:
    jobs = submit_both(small)
    # which saves them at once: by itself slurmctld writes each five seconds what has changed
    small.reconfigure()

    small.kill("slurmctld")
    assert small.run("scontrol ping", check=False).returncode != 0
    small.start("slurmctld")

    assert states(small, jobs) == ["RUNNING", "PENDING"]
    assert small.job(jobs[0])["restart_cnt"] == 0
    small.run(f"scancel {jobs[0]}")
    small.wait(lambda: states(small, jobs) == ["CANCELLED", "RUNNING"], "the waiting job to start")


def test_a_killed_slurmd_keeps_its_job(small: Twin) -> None:
    job = small.submit(LONG, "--nodes=4")
    started(small, job)

    before = tasks(small, "n2")
    small.kill("slurmd", "n2")
    small.start("slurmd", "n2")

    assert states(small, [job]) == ["RUNNING"]
    assert tasks(small, "n2") == before


def test_a_job_of_a_node_that_is_replaced_is_requeued(small: Twin) -> None:
    job = small.submit(LONG, "--nodes=4", "--requeue")
    started(small, job)

    small.replace("n3")

    small.wait(lambda: small.job(job)["restart_cnt"] == 1, "the job to be requeued")


def test_srun_knows_auto_resume_and_sbatch_does_not(small: Twin) -> None:
    assert small.run("srun --auto-resume=1 --nodes=4 hostname", "alice").stdout.split().__len__() == 4
    refused = small.run("srun --auto-resume=yes hostname", "alice", check=False)
    assert refused.returncode != 0 and "0 or 1, not yes" in refused.stderr
    unknown = small.run("sbatch --auto-resume=1 --wrap=true", "alice", check=False)
    assert "unrecognized option '--auto-resume=1'" in unknown.stderr


def test_devices_of_others_are_not_open_to_a_job(small: Twin) -> None:
    """Nobody answers at these devices: whoever may open one is told so, the others that they may not."""
    if small.cgroups.mode == "disabled":
        pytest.skip("no control groups here")
    script = "for gpu in 0 1 2 3 4 5 6 7; do (: </dev/nvidia$gpu) 2>&1; done; true"
    said = small.run(f"srun --gpus=3 bash -c {script!r}", "alice").stdout.splitlines()
    assert sum("No such device or address" in line for line in said) == 3
    assert sum("Operation not permitted" in line for line in said) == 5


def test_what_is_optional_and_missing_stops_nothing(small: Twin) -> None:
    """A plugin, its folder, and what a prolog would run."""
    for node in small.nodes:
        small.put(node, "/opt/twin/prolog", PROLOG, 0o755)
    small.fresh({"Prolog": "/opt/twin/prolog", "PrologFlags": "Alloc"}, plugstack=WITHOUT)

    done = small.run("srun --nodes=4 --auto-resume=1 hostname", "alice")
    assert sorted(done.stdout.split()) == small.nodes
    job = small.submit("#!/bin/bash\nsrun true\n", "--nodes=2")
    small.wait(lambda: states(small, [job]) == ["COMPLETED"], "a batch job")
    assert {small.state(node).reason for node in small.nodes} == {""}
