"""docs/tutorials/first-job-slurm.md on a real Slurm: each command of a job, as the page has it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import ROOT
from slurm_twin.configuration import CONTROLLER
from slurm_twin.laptop import Laptop
from slurm_twin.pytorch import give_pytorch, why_not
from slurm_twin.twin import Twin
from tutorials.page import FOLDER, Page, Step, differs, read

from tests.slurm_twin.conftest import running

PAGE = FOLDER / "first-job-slurm.md"


@pytest.fixture(scope="module")
def page() -> Page:
    return read(PAGE)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Twin]:
    if why_not():
        pytest.skip(why_not())
    for twin in running(Twin(nodes=2, gpus=1, gpu_type="l4", host=True)):
        give_pytorch(twin)
        yield twin


@pytest.fixture(scope="module")
def laptop(cluster: Twin, page: Page, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A clone of the repository, as far as the page needs it."""
    folder = tmp_path_factory.mktemp("first")
    file = next(block.file for block in page.blocks if block.file)
    environment = folder / Path(file[0]).name
    environment.write_text(file[1])
    shutil.copytree(ROOT / "examples", folder / "examples")
    with Laptop(cluster, folder, environment, {"first-cluster-as-alice": "alice"}) as made:
        yield made


def test_the_first_job_trains_is_killed_and_goes_on(page: Page, laptop: Laptop, cluster: Twin) -> None:
    steps = [step for block in page.blocks if block.answers == "test_first_job" for step in block.steps]
    assert sum("job submit" in step.command for step in steps) == 3
    for step in steps:
        if "pkill" in step.command:
            cluster.wait(lambda: saved(cluster) >= 1, "a checkpoint")
        if "job logs first 3" in step.command:
            cluster.wait(lambda: "from step" in said(cluster), "it to go on")
            assert "from step 0\n" not in said(cluster)
        expect(step, run(step, laptop, cluster))
        if "pkill" in step.command:
            cluster.wait(lambda: cluster.job(2)["job_state"] == ["FAILED"], "the job to fail")


def said(cluster: Twin) -> str:
    """By the job that goes on."""
    return cluster.run("cat /home/alice/ultracluster-jobs/long-*/long-3.out", check=False).stdout


def saved(cluster: Twin) -> int:
    """Checkpoints of the job that is killed."""
    return cluster.run("ls /home/alice/long", check=False).stdout.count(".pt\n")


def run(step: Step, laptop: Laptop, cluster: Twin) -> str:
    """What the command prints: on the laptop, or in a session on the node where people log in."""
    if not step.command.startswith("ultracluster "):
        return cluster.on(CONTROLLER, step.command, "alice", check=False).stdout
    return laptop.shell(["bash", "-c", f"{step.command} 2>&1"]).stdout


def expect(step: Step, printed: str) -> None:
    assert step.output is not None
    assert not (wrong := differs(step.output, printed)), f"{PAGE.name}:{step.line}: {wrong}"
