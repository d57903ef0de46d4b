"""How fast Slurm's own part is, at a size that fits this machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from slurm_twin.twin import Twin

MEMORY_MIB = 20 * 1024
"""What all nodes together may take."""
NODE_MIB = 15
"""slurmd takes 11.5 when it starts and up to 15 once it has run a job's step."""
JOBS = 200


@dataclass(frozen=True)
class Figures:
    """Seconds, but for the first."""

    nodes: int
    up: float
    gang: float
    """From the submission of a job over all nodes to its start on them."""
    step: float
    """A step of one task on each node, there and back."""
    jobs: float
    """From the submission of `JOBS` jobs of one node to the end of the last."""


def most(nodes: int) -> int:
    """As many as the memory holds."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) // 1024
    return min(nodes, (min(MEMORY_MIB, int(free * 0.9)) - 1024) // NODE_MIB)


def figures(nodes: int) -> Figures:
    """Of a twin whose nodes share one namespace and have no prolog."""
    start = time.monotonic()
    with Twin(nodes, own=False) as twin:
        up = time.monotonic() - start
        start = time.monotonic()
        job = twin.submit("#!/bin/bash\nexec sleep 600\n", f"--nodes={nodes}", "--gpus-per-node=8")
        twin.wait(lambda: twin.job(job)["job_state"] == ["RUNNING"], "the gang to start")
        gang = time.monotonic() - start
        start = time.monotonic()
        done = twin.run(f"srun --jobid={job} --overlap hostname | wc -l", "alice", seconds=300)
        assert int(done.stdout) == nodes, done.stdout
        step = time.monotonic() - start
        twin.run(f"scancel {job}")
        twin.wait(lambda: twin.up() == nodes, "all nodes to be idle again")
        start = time.monotonic()
        twin.run(
            f"for i in $(seq {JOBS}); do sbatch -Q -N1 -o /dev/null --wrap=true; done", "alice", seconds=300
        )
        twin.wait(lambda: not twin.run("squeue --noheader").stdout.strip(), "all jobs to end")
        return Figures(nodes, up, gang, step, time.monotonic() - start)


def measure(wanted: int) -> None:
    nodes = most(wanted)
    if nodes < wanted:
        print(f"{wanted} nodes do not fit {MEMORY_MIB // 1024} GiB or what is free: {nodes} do", flush=True)
    found = figures(nodes)
    print(f"Slurm with {found.nodes} nodes on one machine, no prolog:")
    print(f"  {found.up:7.1f} s  until all nodes are idle")
    print(f"  {found.gang:7.1f} s  from the submission of a job over all nodes to its start")
    print(f"  {found.step:7.1f} s  one step of it, a task on each node, there and back")
    print(f"  {found.jobs:7.1f} s  {JOBS} jobs of one node, from the first submission to the last end")
