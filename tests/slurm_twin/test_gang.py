"""Jobs over every node of a twin."""

from __future__ import annotations

from slurm_twin.twin import Twin


def test_a_gang_of_every_node_starts_at_once(wide: Twin) -> None:
    script = "#!/bin/bash\nsrun --label bash -c 'echo $(hostname) $CUDA_VISIBLE_DEVICES $(date +%s.%N)'"

    job = wide.submit(script, "--nodes=16", "--gpus-per-node=8", "--output=/home/alice/gang.out")
    wide.wait(lambda: wide.job(job)["job_state"] == ["COMPLETED"], what="the gang to end")

    rows = [line.split()[1:] for line in wide.run("cat gang.out", user="alice").stdout.splitlines()]
    assert {host for host, _, _ in rows} == set(wide.nodes)
    assert {devices for _, devices, _ in rows} == {"0,1,2,3,4,5,6,7"}
    times = [float(time) for _, _, time in rows]
    assert max(times) - min(times) < 5
