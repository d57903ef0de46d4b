"""Batch scripts held against the cluster: what is said, and what is not."""

from __future__ import annotations

import pytest
from project import ROOT

from ultracluster.config import load
from ultracluster.jobs.scripts.script_notes import script_notes
from ultracluster.model import resolve

PROD = resolve(load(ROOT / "environments" / "prod.yaml").environment)
TRAINIUM = resolve(load(ROOT / "environments" / "trainium.yaml").environment)
PARTITION = next(iter(PROD.partitions))
MOST = sum(group.most_nodes for group in PROD.partitions[PARTITION].values())


def script(*lines: str) -> str:
    return "\n".join(["#!/bin/bash", *lines, ""])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("#SBATCH --partition=nosuch", f"this environment has {PARTITION}"),
        ("#SBATCH -p nosuch", "--partition=nosuch"),
        (f"#SBATCH --nodes={MOST + 1}", f"have {MOST} nodes at most"),
        (f"#SBATCH -N{MOST + 1}", f"--nodes={MOST + 1}"),
        (f"#SBATCH -N {MOST + 1} -p {PARTITION}", f"--nodes={MOST + 1}"),
        ("#SBATCH --gpus-per-node=16", "no node of its partitions has more than 8"),
        ("#SBATCH --gpus-per-node h200:16", "--gpus-per-node=h200:16"),
        ("#SBATCH --gres=gpu:9", "--gres=gpu:9"),
        (f"#SBATCH --gpus={MOST * 8 + 1}", f"its partitions have {MOST * 8} at most"),
        (f"#SBATCH -G h200:{MOST * 8 + 1}", f"--gpus=h200:{MOST * 8 + 1}"),
        ("#SBATCH --output=/fsx9/x/%j.out", "Below /fsx or /home it stays"),
        ('#SBATCH -e "/tmp/err"', "is on each node's own disk"),
        ("export NCCL_SOCKET_IFNAME=eth0", "line 2: NCCL_SOCKET_IFNAME is better left out"),
        ("NCCL_PROTO=simple srun a", "NCCL_PROTO"),
        ("srun all_reduce_perf \\  # sizes", "line 2: something stands after the `\\`"),
    ],
)
def test_what_the_cluster_has_otherwise(line: str, says: str) -> None:
    (note,) = script_notes(PROD, script(line))
    assert says in note


@pytest.mark.parametrize(
    "line",
    [
        f"#SBATCH --nodes={MOST} --gpus-per-node=8 --partition={PARTITION}",
        "#SBATCH --nodes=1-2 --gres=gpu:8,license:1",
        "#SBATCH --output=/fsx/logs/%x-%j.out --error=logs/%j.err",
        "#SBATCH --exclusive --requeue",
        f"#SBATCH --gpus={MOST * 8}",
        "export NCCL_SOCKET_IFNAME=^docker,lo",
        "# export NCCL_ALGO=Ring",
        "##SBATCH --partition=nosuch",
        "srun a \\",
        'echo "a \\ b"',
        "export NCCL_DEBUG=INFO",
    ],
)
def test_nothing_is_said_of_what_works(line: str) -> None:
    assert script_notes(PROD, script(line)) == ()


def test_options_after_the_first_command_are_none() -> None:
    assert script_notes(PROD, script("srun a", "#SBATCH --partition=nosuch")) == ()


def test_trainium_needs_what_gpus_do_without() -> None:
    text = script("export FI_PROVIDER=efa FI_EFA_USE_DEVICE_RDMA=1")

    assert script_notes(TRAINIUM, text) == ()
    assert len(script_notes(PROD, text)) == 2
