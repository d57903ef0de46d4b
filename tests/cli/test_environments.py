"""Whose account a command may change: where the file names none, a person or `--account` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from account_fixtures import keys
from hyperpod_service import HyperPod, account
from hyperpod_service import answer as answers
from nodes_support import Slurm, copied, node_id, slurm
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.cli import accounts
from ultracluster.cli.habits import HABITS
from ultracluster.cli.main import app

__all__ = ["keys", "slurm"]
OURS, OTHER = "111122223333", "444455556666"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, slurm: Slurm) -> HyperPod:
    made = account()
    monkeypatch.setattr(aws, "Account", lambda **_: made)
    answers(made.client("iam"), "ListAccountAliases", lambda asked: {"AccountAliases": ["ml-dev"]})
    return HyperPod(made)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    file = copied(tmp_path)

    def invoke(*words: str, said: str = "") -> Any:
        return CliRunner().invoke(app, ["nodes", words[0], str(file), *words[1:]], input=said)

    return invoke


def test_nothing_changes_in_an_account_that_nobody_named(service: HyperPod, run: Callable[..., Any]) -> None:
    refused = run("reboot", node_id(16), "--yes", "--no-wait")
    assert refused.exit_code == 2 and not service.asked
    assert f"names no account. These credentials belong to {OURS} (ml-dev)" in refused.stderr
    assert f"pass --account {OURS}" in refused.stderr
    named = run("reboot", node_id(16), "--yes", "--no-wait", "--account", OURS)
    assert named.exit_code == 0 and len(service.asked) == 1


def test_the_account_that_is_named_must_be_that_of_the_credentials(
    service: HyperPod, run: Callable[..., Any]
) -> None:
    wrong = run("reboot", node_id(16), "--yes", "--account", OTHER)
    assert wrong.exit_code == 2 and not service.asked
    assert f"--account is {OTHER}, and these credentials" in wrong.stderr
    no_id = run("reboot", node_id(16), "--account", "ml-dev")
    assert no_id.exit_code == 2 and "an account has 12 digits" in no_id.stderr


@pytest.mark.parametrize(("said", "done"), [("y\ny\n", True), ("n\n", False), ("", False)])
def test_a_person_is_asked_before_the_nodes_are_shown(
    service: HyperPod, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, said: str, done: bool
) -> None:
    monkeypatch.setattr(accounts, "is_terminal", lambda stream: True)
    ended = run("reboot", node_id(16), "--no-wait", said=said)
    assert f"Run `nodes reboot` in account {OURS}?" in ended.stderr and "Region us-west-2" in ended.stderr
    assert (ended.exit_code == 0) == done == bool(service.asked)


def test_reading_and_dry_runs_ask_nobody(service: HyperPod, run: Callable[..., Any]) -> None:
    assert run("list").exit_code == 0
    assert run("reboot", node_id(16), "--dry-run").exit_code == 0
    answers(service.client, "DescribeCluster", lambda asked: dict(service.cluster))
    # the option is refused where nothing is changed
    assert run("list", "--account", OURS).exit_code == 2


def test_an_alias_that_may_not_be_read_is_left_out(
    service: HyperPod, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "alias", lambda account: "")
    assert f"belong to {OURS}. Write" in run("reboot", node_id(16), "--yes").stderr


def test_each_command_that_changes_an_account_is_a_row() -> None:
    """A command whose name says that it changes something, and that waits for AWS, has `changes`."""
    verbs = {"add", "apply", "buy", "cancel", "delete", "deploy", "destroy", "reboot", "replace", "submit"}
    named = {words for words in HABITS if words.split()[-1] in verbs}
    changing = {words for words, habit in HABITS.items() if habit.changes}
    assert named <= changing
    assert changing - named == {
        "job shell", "nodes health-check", "preflight", "software update",
    }  # fmt: skip
