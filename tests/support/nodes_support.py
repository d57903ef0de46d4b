"""Accounts, ids and a command to run for tests of nodes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.nodes import hyperpod_wait as node_wait
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Answer
from ultracluster.cli.main import app
from ultracluster.cli.terminal import PART
from ultracluster.config import Environment, load
from ultracluster.jobs import on_nodes as jobs

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"


def node_id(number: int) -> str:
    return f"i-{number:017x}"


class Slurm:
    """A shell with a node of a cluster on which nothing runs, unless told otherwise.

    Attributes:
        jobs: number, user, name and address of each place where a job runs.
        error: why no node can be asked.
        closed: addresses of nodes that take no new job.
        opened: addresses of nodes that were closed and take jobs again.
    """

    def __init__(self) -> None:
        self.jobs: list[tuple[str, str, str, str]] = []
        self.error = ""
        self.closed: set[str] = set()
        self.opened: list[str] = []

    def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
        if self.error:
            raise AccountError(self.error)
        if "state=drain" in script:
            asked = re.search(r"asked='?([^'\n]*)", script)
            addresses = [word for word in asked[1].split() if "." in word] if asked else []
            self.closed.update(addresses)
            lines = [f"closed|{address}|{address}" for address in addresses]
            return {node.id: Answer("\n".join(lines), 0) for node in nodes}
        if "state=resume" in script:
            names = re.search(r"for name in (.*); do", script)
            self.opened += names[1].split() if names else []
            self.closed -= set(self.opened)
            return {node.id: Answer("", 0) for node in nodes}
        lines = [
            f"node|{address}|{address}\njob|{address}|{number}|{user}|{name}"
            for number, user, name, address in self.jobs
        ]
        return {node.id: Answer("\n".join(lines), 0) for node in nodes}


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """What answers instead of slurmctld when jobs are asked about."""
    made = Slurm()
    monkeypatch.setattr(jobs, "shell_of", lambda fleet: made)
    return made


def copied(folder: Path, name: str = "dev") -> Path:
    """A shipped environment in a folder of its own, in which a ledger may be written."""
    return Path(shutil.copy(DEV.with_name(f"{name}.yaml"), folder))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, slurm: Slurm, tmp_path: Path) -> Callable[..., Any]:
    """Runs `ultracluster nodes ...` against an account; waiting takes no time."""

    wait = node_wait.wait
    file = copied(tmp_path)

    def invoke(made: Account, *words: str, answers: str | None = None) -> Any:
        monkeypatch.setattr(aws, "Account", lambda **_: made)
        ticks = iter(range(0, 1_000_000, 60))
        monkeypatch.setattr(
            node_wait, "wait",
            lambda *a, **k: wait(*a, **k, sleep=lambda _: None, clock=lambda: float(next(ticks))),
        )  # fmt: skip
        monkeypatch.setenv(PART, "1")  # nobody asks for the account
        return CliRunner().invoke(app, ["nodes", words[0], str(file), *words[1:]], input=answers)

    return invoke


def other(kind: str) -> Environment:
    """The example of an orchestrator, under another name."""
    file = {"parallelcluster": "parallelcluster-p5", "pcs": "pcs-p6-b200", "eks": "eks-p5en"}[kind]
    return load(DEV.with_name(f"{file}.yaml")).environment.model_copy(update={"name": "hpc"})
