"""The acceptance job on a real Slurm, with an nccl-tests that prints recorded lines."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from nccl_logs import GIB, P5EN, Log
from project import ROOT
from slurm_twin.twin import Twin
from typer.testing import CliRunner

from ultracluster.acceptance.node_tools import slurm_script
from ultracluster.catalog import instance_types
from ultracluster.cli.main import app

TYPE = "p5en.48xlarge"
SLOW = 250.0
# The first rank prints what was recorded for the nodes of its step; the others have nothing to say.
PERF = """#!/bin/bash
[[ $SLURM_PROCID == 0 ]] || exit 0
cat "/shared/logs/$(scontrol show hostnames "$SLURM_STEP_NODELIST" | paste -s -d ,)"
"""
FI_INFO = """#!/bin/bash
for device in /opt/efa/sys/class/infiniband/*; do
  printf 'provider: efa\\n    fabric: efa\\n    domain: %s-rdm\\n' "${device##*/}"
done
"""
HOST = """
root=/opt/efa
rm -rf $root
mkdir -p $root/{proc/self,dev/infiniband,sys/bus/pci/drivers/efa,sys/module/{efa,ib_uverbs,ib_core}}
echo 'Max locked memory         unlimited            unlimited            bytes' >$root/proc/self/limits
for ((index = 0; index < COUNT; index++)); do
  mkdir -p $root/sys/class/infiniband/rdmap$index/device
  ln -s ../../../../bus/pci/drivers/efa $root/sys/class/infiniband/rdmap$index/device/driver
done
"""


@pytest.fixture(scope="module")
def fabric(small: Twin) -> Twin:
    """Nodes with all devices, and nccl-tests that each finds on its PATH."""
    small.run("mkdir -p /shared/logs && chmod 777 /shared/logs")
    for node in small.nodes:
        small.put(node, "/usr/local/bin/all_reduce_perf", PERF, 0o755)
        small.put(node, "/usr/local/bin/fi_info", FI_INFO, 0o755)
        devices(small, node, 16)
    return small


@pytest.fixture(autouse=True)
def recorded(fabric: Twin) -> None:
    """Lines of a healthy fabric."""
    record(fabric)


def devices(twin: Twin, node: str, count: int) -> None:
    twin.on(node, HOST.replace("COUNT", str(count)))


def record(twin: Twin, *, slow: str = "", nics: dict[str, int] | None = None) -> None:
    """What nccl-tests prints on one node, on each two and on all; a pair with the slow node is slow."""

    def text(nodes: list[str], figures: dict[int, float]) -> str:
        least = min((nics or {}).get(node, 16) for node in nodes)
        provider = f"Selected provider is efa, fabric is efa-direct (found {least} nics)"
        return Log(hosts=nodes, figures=figures, provider=provider).text()

    logs = {node: text([node], {16 * GIB: 482.0}) for node in twin.nodes}
    for index, one in enumerate(twin.nodes):
        for other in twin.nodes[index + 1 :]:
            busbw = SLOW if slow in (one, other) else 365.0
            logs[f"{one},{other}"] = text([one, other], {4 * GIB: busbw})
    logs[",".join(twin.nodes)] = text(twin.nodes, dict(P5EN))
    for name, log in logs.items():
        (twin.work / "shared/shared/logs" / name).write_text(log)


def judged(twin: Twin, script: str, tmp_path: Path, nodes: int = 4) -> tuple[int, str]:
    """The job, and what `acceptance` says of its logs: the exit code and the text."""
    variables = {
        "ACCEPTANCE_TYPE": TYPE, "ACCEPTANCE_MPI": "none", "ACCEPTANCE_OUTPUT": "/shared/out",
        "ULTRACLUSTER_ROOT": "/opt/efa", "ULTRACLUSTER_EFA_PAUSE": "0",
    }  # fmt: skip
    twin.run("rm -rf /shared/out")
    export = ",".join(["ALL", *(f"{name}={value}" for name, value in variables.items())])
    job = twin.submit(script, f"--nodes={nodes}", f"--export={export}", "--output=/shared/job.out")
    twin.wait(lambda: twin.job(job)["job_state"][0] in ("COMPLETED", "FAILED"), "the job")
    printed = twin.run("cat /shared/job.out").stdout
    assert twin.job(job)["exit_code"]["return_code"]["number"] == 3, printed  # no `ultracluster` there
    folder = tmp_path / "logs"
    folder.mkdir()
    for file in (twin.work / "shared/shared/out").iterdir():
        (folder / file.name).write_text(file.read_text())
    done = CliRunner().invoke(app, ["acceptance", str(folder), "--type", TYPE, "--nodes", str(nodes)])
    return done.exit_code, f"{done.output}\n{printed}"


def test_a_healthy_fabric_passes_with_the_reports_of_its_nodes(fabric: Twin, tmp_path: Path) -> None:
    code, text = judged(fabric, slurm_script(instance_types()[TYPE]), tmp_path)

    assert code == 0, text
    assert "verify/fabric.sh passed on 4 nodes" in text
    assert "no slow node: slowest of 4 pairs 365.00 GB/s" in text
    left = fabric.on(fabric.nodes[0], "ls -d /tmp/tmp.* 2>/dev/null", check=False).stdout
    assert not left, "the tools are gone with the job"


def test_a_slow_node_and_one_without_an_interface_are_named(fabric: Twin, tmp_path: Path) -> None:
    slow, short = fabric.nodes[2], fabric.nodes[1]
    record(fabric, slow=slow, nics={short: 15})
    devices(fabric, short, 15)
    try:
        code, text = judged(fabric, slurm_script(instance_types()[TYPE]), tmp_path)
    finally:
        devices(fabric, short, 16)

    assert code == 1, text
    assert f"slow: {slow} 250.00 GB/s, others 365.00" in text
    assert f"{short}: devices: 15 EFA devices, expected 16" in text
    assert "15 EFA interfaces found, expected 16" in text


def test_without_reports_of_the_nodes_nothing_passes(fabric: Twin, tmp_path: Path) -> None:
    """The script as it lies in the repository, put alone into a home."""
    script = (ROOT / "lifecycle_scripts/acceptance/nccl_tests.sbatch").read_text()
    fabric.run("printf 'NVIDIA\\n%.0s' 1 2 3 4 5 6 7 8 >/shared/gpus")
    smi = f"#!/bin/bash\n[[ $1 != *memory* ]] && cat {shlex.quote('/shared/gpus')} || echo 143771\n"
    fabric.put(fabric.nodes[0], "/usr/local/bin/nvidia-smi", smi, 0o755)
    code, text = judged(fabric, script, tmp_path)

    assert code == 3, text
    assert "NOT JUDGED: no reports of verify/fabric.sh" in text
    assert "the nodes themselves are not looked at" in text
