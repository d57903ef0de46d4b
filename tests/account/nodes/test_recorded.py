"""Requests that cannot be undone: one at a time, recorded, and settled after a lost answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from hyperpod_service import HyperPod, account
from nodes_support import Slurm, node_id

from ultracluster.cli import node_settle
from ultracluster.project.ledger import exclusive

LOST = ReadTimeoutError(endpoint_url="https://api.sagemaker")


@pytest.fixture
def ledger(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """The lines of the environment's ledger."""
    file = tmp_path / "dev.ledger.jsonl"
    return lambda: [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize("action", ["replace", "delete"])
def test_nodes_that_aws_took_are_in_the_ledger(
    run: Callable[..., Any], ledger: Callable[[], list[dict[str, Any]]], action: str
) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.failing = {node_id(17): "its state changed"}
    ended = run(aws_account, action, node_id(16), node_id(17), "--yes", "--no-wait")
    assert ended.exit_code == 1
    (line,) = ledger()
    assert (line["action"], line["id"], line["account"]) == (f"nodes {action}", node_id(16), "111122223333")


def test_a_reboot_leaves_no_line(run: Callable[..., Any], ledger: Callable[[], list[dict[str, Any]]]) -> None:
    aws_account = account()
    HyperPod(aws_account)
    assert run(aws_account, "reboot", node_id(16), "--yes", "--no-wait").exit_code == 0
    assert ledger() == []


def test_a_lost_answer_stops_the_next_request_until_it_is_settled(
    run: Callable[..., Any],
    slurm: Slurm,
    ledger: Callable[[], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.raising["BatchReplaceClusterNodes"] = LOST
    lost = run(aws_account, "replace", node_id(16), node_id(17), "--yes", "--json")
    assert lost.exit_code == 3 and "dev.yaml --settle" in lost.stderr
    assert {outcome["result"] for outcome in json.loads(lost.stdout)["outcomes"]} == {"unknown"}
    service.raising.clear()

    again = run(aws_account, "replace", node_id(18), "--yes")
    assert again.exit_code == 2 and not service.asked
    assert "`nodes replace` of " in again.output and "ended without an answer" in again.output

    early = run(aws_account, "list", "--settle")
    assert early.exit_code == 3 and "not shown yet, ask again at" in early.output
    service.nodes = [node for node in service.nodes if node["InstanceId"] != node_id(16)]
    monkeypatch.setattr(node_settle, "VISIBLE", timedelta(0))
    settled = run(aws_account, "list", "--settle")
    assert settled.exit_code == 1 and f"{node_id(17)}: still there, not taken" in settled.output
    assert [line["id"] for line in ledger()] == [node_id(16)]

    nothing = run(aws_account, "list", "--settle")
    assert nothing.exit_code == 2 and "there is nothing to settle" in nothing.output
    assert run(aws_account, "replace", node_id(18), "--yes", "--no-wait").exit_code == 0


def test_a_request_that_aws_refuses_opens_the_nodes_again(
    run: Callable[..., Any], slurm: Slurm, ledger: Callable[[], list[dict[str, Any]]]
) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.failing = {node_id(16): "no"}
    assert run(aws_account, "replace", node_id(16), "--yes").exit_code == 1
    assert slurm.opened == ["10.1.0.16"] and not slurm.closed and ledger() == []
    # nobody knows whether it is taken: it stays closed
    service.raising["BatchReplaceClusterNodes"] = LOST
    assert run(aws_account, "replace", node_id(17), "--yes").exit_code == 3
    assert slurm.closed == {"10.1.0.17"}


def test_two_at_once_are_one(run: Callable[..., Any], tmp_path: Path) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    with exclusive(tmp_path / "dev.yaml", "nodes delete"):
        second = run(aws_account, "replace", node_id(16), "--yes")
    assert second.exit_code == 2 and not service.asked
    assert "`nodes delete` (process" in second.output and "is at work" in second.output
