"""EC2 takes an instance back: its job writes a checkpoint and runs elsewhere before the instance is gone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import ROOT
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines

PORT = 8169
FOLLOW = f"""
cd /root
ULTRACLUSTER_METADATA=http://127.0.0.1:{PORT} ULTRACLUSTER_NOTICE_SECONDS=0.2 \
setsid python3 -ISBc "
import sys; sys.path.insert(0, '/opt/ultracluster/scripts/health_loop')
import interruption, slurm
interruption.follow(slurm.Slurm(), lambda: 'n1', 'parallelcluster')" >/root/notice.log 2>&1 </dev/null &
echo $! >/root/notice.pid
"""
WORKS = """#!/bin/bash
#SBATCH --comment=ultracluster:signal=USR1
trap 'echo saved >>~/saved.$SLURM_JOB_ID' USR1
sleep 600 &
until wait; [ $? -le 128 ]; do :; done
"""


@pytest.fixture(scope="module")
def twin(machines: Machines) -> Twin:
    return machines().fresh()


@pytest.fixture
def notice(twin: Twin) -> Iterator[Path]:
    """The place of the notice on n1, where metadata are served and followed."""
    place = "/root/metadata/spot.instance-action"
    twin.put("n1", "/root/instance_metadata.py", (ROOT / "tests/support/instance_metadata.py").read_text())
    twin.on("n1", f"mkdir -p /root/metadata; rm -f /run/ultracluster/health/interruption.json; cd /root;"
            f" setsid python3 instance_metadata.py /root/metadata {PORT} >/dev/null 2>&1 </dev/null &"
            " echo $! >/root/metadata.pid")  # fmt: skip
    twin.on("n1", FOLLOW)
    yield Path(place)
    twin.on("n1", f"kill $(cat /root/notice.pid /root/metadata.pid); rm -f {place}", check=False)
    twin.run("scancel --user=alice; scontrol update NodeName=n1 State=RESUME", check=False)


def tell(twin: Twin, notice: Path, seconds: float) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    twin.put("n1", str(notice), json.dumps({"action": "terminate", "time": at}))


def test_a_job_saves_and_goes_on_elsewhere_before_its_node_goes(twin: Twin, notice: Path) -> None:
    job = twin.submit(WORKS, "--nodelist=n1", "--requeue")
    twin.wait(lambda: twin.job(job)["job_state"] == ["RUNNING"], "the job to run")
    tell(twin, notice, 33)
    twin.wait(lambda: "DRAIN" in twin.state("n1").states, "the node to take no job")
    assert twin.state("n1").reason.startswith("EC2 takes this instance back at ")
    twin.wait(lambda: twin.run(f"test -e /home/alice/saved.{job}", check=False).returncode == 0, "USR1")
    twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")
    assert {node: twin.state(node).reason for node in ("n2", "n3", "n4")} == dict.fromkeys(
        ["n2", "n3", "n4"], ""
    )


def test_a_notice_that_is_withdrawn_leaves_jobs_alone(twin: Twin, notice: Path) -> None:
    job = twin.submit(WORKS, "--nodelist=n1")
    twin.wait(lambda: twin.job(job)["job_state"] == ["RUNNING"], "the job to run")
    tell(twin, notice, 120)
    twin.wait(lambda: "DRAIN" in twin.state("n1").states, "the node to take no job")
    twin.on("n1", f"rm {notice}")
    twin.wait(lambda: "DRAIN" not in twin.state("n1").states, "the node to take jobs again")
    assert twin.job(job)["restart_cnt"] == 0
    assert twin.job(job)["job_state"] == ["RUNNING"]
