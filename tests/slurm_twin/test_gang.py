"""Jobs over every node of a twin."""

from __future__ import annotations

import pytest
from slurm_twin.twin import OWN_NAMESPACES, Twin

from tests.slurm_twin.conftest import running

GANG = r"""#!/bin/bash
#SBATCH --gpus-per-node=8 --output=/home/alice/gang.out
srun --label bash -c '
touch started.$(hostname)
until [ $(ls started.* | wc -l) = $SLURM_JOB_NUM_NODES ]; do sleep 0.1; done # none ends before all have begun
echo $(hostname) $CUDA_VISIBLE_DEVICES'
"""


def test_a_gang_of_every_node_starts_at_once(small: Twin) -> None:
    run(small)


@pytest.mark.deep
def test_a_gang_of_sixteen_nodes_starts_at_once() -> None:
    for twin in running(Twin(nodes=OWN_NAMESPACES)):
        run(twin)


def run(twin: Twin) -> None:
    job = twin.submit(GANG, f"--nodes={len(twin.nodes)}")
    twin.wait(lambda: twin.job(job)["job_state"] == ["COMPLETED"], "the gang to end")

    rows = [line.split()[1:] for line in twin.run("cat gang.out", user="alice").stdout.splitlines()]
    assert sorted(rows) == sorted([name, "0,1,2,3,4,5,6,7"] for name in twin.nodes)
