"""Jobs on nodes, as a real slurmctld tells them, and as they are read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import slurm_nodes
from processes import until

from ultracluster.account.aws import AccountError
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Answer, command, unpack
from ultracluster.jobs.on_nodes import cordon
from ultracluster.jobs.on_nodes import slurm_jobs as slurm
from ultracluster.jobs.on_nodes.running_job import Job

pytestmark = pytest.mark.slow  # starts programs or listens

HERE = Node("i-1", "gpu", "Running", dns="ip-127-0-0-1.us-west-2.compute.internal")
NEVER = Node("i-2", "gpu", "Running", dns="ip-10-1-0-17.us-west-2.compute.internal")
UNKNOWN = Node("i-3", "gpu", "Running", dns="ip-10-1-0-18.us-west-2.compute.internal")


class Local:
    """Runs on this machine what a node would run."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables

    def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
        words = ["bash", "-c", command(script)]
        done = subprocess.run(words, env=self.variables, capture_output=True, text=True, check=False)
        return {node.id: unpack(done.stdout) for node in nodes}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """A real cluster, whose node that runs has a name of Slurm's own, as on PCS and ParallelCluster."""
    slurm_nodes.needed()
    with slurm_nodes.slurm("gpu-st-p5-1", "ip-10-1-0-17") as variables:
        yield variables


def test_jobs_of_a_real_cluster_are_found_by_address_and_by_name(cluster: dict[str, str]) -> None:
    def run(*words: str) -> str:
        return subprocess.run(words, env=cluster, capture_output=True, text=True, check=True).stdout

    shell = Local(cluster)
    nodes = [HERE, NEVER, UNKNOWN]
    none = slurm.jobs_on_slurm(nodes, HERE, shell)
    assert none.jobs == () and none.unknown == ""

    number = run("sbatch", "--parsable", "--job-name=a b|c", "--output=/dev/null", "--wrap=sleep 600").strip()
    run("sbatch", "--hold", "--output=/dev/null", "--wrap=true")
    until(lambda: "R" in run("squeue", "--noheader", "--jobs", number, "--format=%t"))
    found = slurm.jobs_on_slurm(nodes, HERE, shell)
    run("scancel", number)

    assert found.unknown == "" and found.jobs == (Job(number, "root", "a b|c", ("i-1",)),)
    assert slurm.jobs_on_slurm([NEVER], HERE, shell).jobs == ()


def test_nodes_of_a_real_cluster_are_closed_to_jobs_and_opened(cluster: dict[str, str]) -> None:
    """One that is down stays so, and one that somebody else drained meanwhile is not resumed."""

    def state() -> str:
        words = ["sinfo", "--noheader", "--nodes=gpu-st-p5-1", "--format=%T %E"]
        done = subprocess.run(words, env=cluster, capture_output=True, text=True, check=True)
        return done.stdout.strip().replace("*", "")  # for seconds after a change

    traits = SimpleNamespace(kubernetes=False, own_stack=False)
    namespace = SimpleNamespace(traits=traits)
    fleet: Any = SimpleNamespace(wanted=namespace, entrance=lambda: HERE)
    shell = Local(cluster)
    until(lambda: state().startswith("idle"))

    closed = cordon.cordon_nodes(fleet, [HERE, NEVER], shell, "replace")
    assert closed == cordon.Cordoned({"i-1": "gpu-st-p5-1"})
    assert state() == "drained operator:ultracluster-nodes-replace"
    assert cordon.cordon_nodes(fleet, [HERE], shell, "replace").names == {}, "it was closed before"
    assert cordon.uncordon_nodes(fleet, closed, shell) == "" and state().startswith("idle")

    cordon.cordon_nodes(fleet, [HERE], shell, "replace")
    subprocess.run(
        ["scontrol", "update", "nodename=gpu-st-p5-1", "state=drain", "reason=ultracluster:xid:79"],
        env=cluster, check=True,
    )  # fmt: skip
    assert cordon.uncordon_nodes(fleet, closed, shell) == "" and state() == "drained ultracluster:xid:79"
    subprocess.run(["scontrol", "update", "nodename=gpu-st-p5-1", "state=resume"], env=cluster, check=True)


def test_a_slurm_that_does_not_answer_is_not_one_without_jobs(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\necho Unable to contact slurm controller >&2\nexit 1\n")
    (tmp_path / "squeue").chmod(0o755)
    gone = Local({**cluster, "PATH": f"{tmp_path}:{cluster['PATH']}"})

    found = slurm.jobs_on_slurm([HERE], HERE, gone)

    assert found.jobs == () and "Slurm did not answer on i-1" in found.unknown
    namespace = SimpleNamespace(traits=SimpleNamespace(kubernetes=False, own_stack=False))
    fleet: Any = SimpleNamespace(wanted=namespace, entrance=lambda: HERE)
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "scontrol").chmod(0o755)
    assert "Slurm did not answer on i-1" in cordon.cordon_nodes(fleet, [HERE], gone, "replace").unknown


def test_a_job_over_nodes_is_one_job() -> None:
    text = "node|a|127.0.0.1\njob|a|7|ada|x\nnode|b|10.1.0.17\njob|b|7|ada|x\njob|b|8_1|bo|\njob|z|9|c|d\n"

    found = slurm.read(text, [HERE, NEVER])

    assert found.jobs == (Job("7", "ada", "x", ("i-1", "i-2")), Job("8_1", "bo", "", ("i-2",)))
    assert [str(job) for job in found.jobs] == ["job 7 (x) of ada on i-1, i-2", "job 8_1 of bo on i-2"]


def test_what_cannot_be_asked_is_said() -> None:
    class Refusing:
        def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
            raise AccountError("access denied: SendCommand")

    assert slurm.jobs_on_slurm([HERE], None, Refusing()).unknown.startswith("no node runs")
    assert slurm.jobs_on_slurm([HERE], HERE, Refusing()).unknown == "access denied: SendCommand"
    nameless = slurm.jobs_on_slurm([HERE, Node("i-9", "gpu", "Failure")], HERE, Refusing())
    assert "i-9 has no host name" in nameless.unknown
