"""The end of a lease: what cannot finish does not start, the right jobs get a signal and are queued again.

The minutes of a lease are its own, so times are made short by the end that AWS tells, and by the document.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines

BLOCK = "cr-0123456789abcdef0"
PROGRAM = "/opt/ultracluster/scripts/files/lease_end.py /root/lease.json"
RESERVATION = "ultracluster_lease_train"
# Its batch script writes when the signal comes, as one that writes a checkpoint does
CHECKPOINTS = """#!/bin/bash
#SBATCH --comment=ultracluster:signal=USR1
trap 'echo saved >>saved.$SLURM_JOB_ID' USR1
sleep 600 &
until wait; [ $? -le 128 ]; do :; done
"""
SLEEPS = "#!/bin/bash\nsleep 600\n"


@pytest.fixture(scope="module")
def twin(machines: Machines) -> Twin:
    """n1, n2 and n3 are of a Capacity Block; n4 is not."""
    return machines().fresh()


@pytest.fixture(autouse=True)
def clean(twin: Twin) -> Iterator[None]:
    twin.run("mkdir -p /etc/ultracluster; echo REGION=us-east-1 >/etc/ultracluster/pull")
    twin.run("rm -f /var/lib/ultracluster/lease_end.json")
    yield
    twin.run("squeue --noheader --format=%A | xargs --no-run-if-empty scancel; rm -f /home/alice/saved.*")
    twin.run(f"scontrol delete ReservationName={RESERVATION}", check=False)
    twin.wait(lambda: twin.up() == 4, "idle nodes")


def lease(twin: Twin, minutes: float, *, signal: int = 15, stop: int = 5, there: bool = True) -> str:
    """AWS takes the nodes in so many minutes; what the program says now."""
    # half an hour before the end of the block
    end = datetime.fromtimestamp(time.time() + 60 * (minutes + 30), UTC)
    answer = {"CapacityReservations": [{"State": "active", "EndDate": end.isoformat(timespec="seconds")}]}
    twin.put("ctl", "/usr/local/bin/aws", f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n", 0o755)
    block = {
        "group": "train", "partition": "gpu", "kind": "capacity-block", "id": BLOCK,
        "reclaimed_minutes": 30, "nodes": {"pattern": "n[1-3]"},
    }  # fmt: skip
    document = {"signal_minutes": signal, "stop_minutes": stop, "leases": [block] if there else []}
    twin.put("ctl", "/root/lease.json", json.dumps(document))
    # AWS is asked again at once
    twin.run("rm -f /var/lib/ultracluster/asked; f=/var/lib/ultracluster/lease_end.json; "
             "[ ! -e $f ] || sed -i 's/\"asked\": [0-9.]*/\"asked\": 0/' $f")  # fmt: skip
    return twin.run(PROGRAM).stdout


def states(twin: Twin, job: int) -> list[str]:
    return list(twin.job(job)["job_state"])


def test_what_cannot_finish_does_not_start_and_what_can_does(twin: Twin) -> None:
    said = lease(twin, 60)
    assert f"{RESERVATION}: from " in said
    assert "train (3 nodes) until 20" in said

    long = twin.submit(SLEEPS, "--time=120", "--nodelist=n1")
    short = twin.submit(SLEEPS, "--time=30", "--nodelist=n2")
    elsewhere = twin.submit(SLEEPS, "--time=120", "--nodelist=n4")

    twin.wait(lambda: states(twin, short) == states(twin, elsewhere) == ["RUNNING"], "the two that may")
    twin.wait(lambda: twin.job(long)["state_reason"] == "ReqNodeNotAvail", "the reason")
    assert states(twin, long) == ["PENDING"]
    # a second look changes nothing
    assert lease(twin, 60).count("\n") == 1


def test_a_job_without_a_limit_or_with_checkpoints_starts_all_the_same(twin: Twin) -> None:
    lease(twin, 60)
    endless = twin.submit(SLEEPS, "--nodelist=n1")
    saves = twin.submit(CHECKPOINTS, "--time=3-00:00:00", "--nodelist=n2", user="bob")
    for job in (endless, saves):
        twin.wait(lambda job=job: twin.job(job)["state_reason"] == "ReqNodeNotAvail", "the reason")
    assert states(twin, endless) == states(twin, saves) == ["PENDING"]

    lease(twin, 60)

    twin.wait(lambda: states(twin, endless) == states(twin, saves) == ["RUNNING"], "both to run")
    lease(twin, 60)
    # until the nodes go, not until the reservation begins
    assert {twin.job(job)["time_limit"]["number"] for job in (endless, saves)} <= {70, 71}


def test_the_right_jobs_are_signalled_and_put_back(twin: Twin) -> None:
    saves = twin.submit(CHECKPOINTS, "--nodelist=n1")
    plain = twin.submit(SLEEPS, "--nodelist=n2", user="bob")
    fixed = twin.submit(SLEEPS, "--nodelist=n3", "--no-requeue")
    elsewhere = twin.submit(CHECKPOINTS, "--nodelist=n4")
    jobs = [saves, plain, fixed, elsewhere]
    twin.wait(lambda: all(states(twin, job) == ["RUNNING"] for job in jobs), "the jobs to run")

    # 14 minutes before the nodes go: only a signal, once, and only to who asked for it
    lease(twin, 14)
    said = lease(twin, 14)
    twin.wait(lambda: twin.run(f"cat /home/alice/saved.{saves}", check=False).stdout, "a checkpoint")
    assert twin.run("cat /home/alice/saved.*").stdout == "saved\n"
    assert "USR1" not in said
    assert all(states(twin, job) == ["RUNNING"] for job in jobs)

    # 4 minutes before: what may go back into the queue does
    said = lease(twin, 4)
    assert f"job {fixed} cannot be put back into the queue" in said
    twin.wait(lambda: states(twin, saves) == states(twin, plain) == ["PENDING"], "both to wait")
    assert states(twin, fixed) == states(twin, elsewhere) == ["RUNNING"]
    assert "n[1-3]" in twin.run("scontrol show reservation").stdout
    assert {"MAINTENANCE"} & twin.state("n1").states

    # the block is extended: its nodes take them again, with the limits that they had
    lease(twin, 24 * 60)
    lease(twin, 24 * 60)
    twin.run(f"scontrol update JobId={saves},{plain} StartTime=now")
    twin.wait(lambda: states(twin, saves) == states(twin, plain) == ["RUNNING"], "both to run again")


def test_a_lease_that_is_gone_leaves_no_reservation(twin: Twin) -> None:
    lease(twin, 60)
    assert RESERVATION in twin.run("scontrol show reservation").stdout
    twin.run("scontrol create reservation ReservationName=theirs StartTime=now+1hour Duration=5 Users=root "
             "Nodes=n4")  # fmt: skip
    try:
        said = lease(twin, 60, there=False)

        assert f"{RESERVATION}: its lease is gone" in said
        shown = twin.run("scontrol show reservation").stdout
        assert RESERVATION not in shown
        assert "theirs" in shown
    finally:
        twin.run("scontrol delete ReservationName=theirs")


def test_without_an_answer_of_aws_what_was_known_holds(twin: Twin) -> None:
    lease(twin, 60)
    before = twin.run("scontrol show reservation").stdout
    twin.put("ctl", "/usr/local/bin/aws", "#!/bin/sh\necho 'AccessDenied: no' >&2; exit 254\n", 0o755)
    twin.run('sed -i \'s/"asked": [0-9.]*/"asked": 0/\' /var/lib/ultracluster/lease_end.json')

    done = twin.run(PROGRAM, check=False)

    assert done.returncode == 1
    assert "train: aws ec2 describe-capacity-reservations: AccessDenied: no" in done.stdout
    assert twin.run("scontrol show reservation").stdout == before
