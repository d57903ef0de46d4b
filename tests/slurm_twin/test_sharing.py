"""Parts of GPUs in a real Slurm: `shard`, as Gres of a PCS group counts them."""

from __future__ import annotations

import pytest
from slurm_twin.twin import Twin

from tests.slurm_twin.conftest import Machines

SHARED = {"GresTypes": "gpu,shard", "AccountingStorageTRES": "gres/gpu,gres/shard"}
PART = ("--nodelist=n1", "--ntasks=1", "--mem=100", "--cpus-per-task=1", "--oversubscribe")
SLEEPS = "#!/bin/bash\nsleep 600\n"


@pytest.fixture(scope="module")
def twin(machines: Machines) -> Twin:
    """Four nodes with eight GPUs and two parts of each."""
    return machines().fresh(SHARED, shared="shard:16")


def states(twin: Twin, jobs: list[int]) -> list[str]:
    return [twin.job(job)["job_state"][0] for job in jobs]


def used_of(twin: Twin) -> str:
    """What of n1 jobs have, GPU by GPU."""
    shown = twin.run("scontrol show node n1 --detail").stdout
    return next(line for line in shown.splitlines() if "GresUsed=" in line)


def test_parts_share_a_gpu_that_no_whole_job_has(twin: Twin) -> None:
    try:
        parts = [twin.submit(SLEEPS, *PART, "--gres=shard:2") for _ in range(7)]
        twin.wait(lambda: states(twin, parts) == ["RUNNING"] * 7, "jobs on seven GPUs")
        whole = [twin.submit(SLEEPS, *PART, "--gres=gpu:1", user="bob") for _ in range(2)]
        twin.wait(lambda: "RUNNING" in states(twin, whole), "a job on the eighth GPU")
        twin.wait(lambda: twin.job(whole[1])["state_reason"] in ("Resources", "Priority"), "one that waits")
        used = used_of(twin)
        assert f"gpu:h100:1(IDX:7),shard:h100:14({'2/2,' * 7}-/2)" in used, "the eighth GPU is no one's part"

        twin.run(f"scancel {parts[0]}")
        twin.wait(lambda: states(twin, whole) == ["RUNNING"] * 2, "the other one")
    finally:
        twin.run("scancel --user=alice; scancel --user=bob", check=False)
        twin.wait(lambda: twin.up() == len(twin.nodes), "all nodes to be idle")


def test_without_their_type_no_job_asks_for_parts(twin: Twin) -> None:
    twin.fresh({}, shared="")
    done = twin.run("sbatch --gres=shard:1 --wrap true", "alice", check=False)
    twin.fresh(SHARED, shared="shard:16")

    assert done.returncode and "Invalid generic resource" in done.stderr


def test_jobs_of_both_kinds_get_the_same_gpu(twin: Twin) -> None:
    """Why PCS098 refuses `mps` beside `shard`."""
    twin.fresh({"GresTypes": "gpu,shard,mps"}, shared="shard:16,mps:800")
    jobs = [twin.submit(SLEEPS, *PART, f"--gres={gres}") for gres in (*["shard:2"] * 7, "mps:100")]
    try:
        twin.wait(lambda: states(twin, jobs) == ["RUNNING"] * 8, "all of them")
        used = used_of(twin)
        assert "mps:h100:100(100/100," in used and "shard:h100:14(2/2," in used
    finally:
        twin.run("scancel --user=alice", check=False)
        twin.fresh(SHARED, shared="shard:16")
