"""Waiting for nodes: in time, and through a lost permission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyperpod_service import HyperPod, account, node, refusal
from nodes_support import node_id

from ultracluster.account.nodes import hyperpod_wait as node_wait


def test_a_node_that_fails_while_waiting_is_told(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)

    def replaced() -> None:
        service.nodes[1] = node(40, status="Failure")

    service.later = [replaced]
    result = run(aws_account, "replace", node_id(16), "--yes")
    assert result.exit_code == 3
    assert f"{node_id(40)} has failed, and HyperPod does not retry by itself" in result.output


def test_waiting_ends_in_time_and_survives_a_lost_permission(run: Callable[..., Any]) -> None:
    aws_account = account()
    HyperPod(aws_account)
    result = run(aws_account, "replace", node_id(16), "--yes", "--timeout", "5")
    assert result.exit_code == 3 and f"still under way: {node_id(16)} is still there" in result.output
    aws_account = account()
    service = HyperPod(aws_account)
    service.later = [lambda: service.raising.update(ListClusterNodes=refusal("ExpiredTokenException"))]
    result = run(aws_account, "replace", node_id(16), "--yes")
    assert result.exit_code == 3
    assert "the request is still running in AWS: the credentials have expired" in result.output


def test_a_reboot_is_believed_only_after_it_has_shown() -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    seen: list[node_wait.Seen] = []
    times = iter([0.0, 0.0, 60.0, 120.0, 180.0, 240.0])
    service.later = [lambda: service.status(16, "Pending"), lambda: service.status(16, "Running")]
    last = node_wait.wait(
        aws_account,
        "dev",
        groups={"gpu"},
        settle=180,
        report=seen.append,
        sleep=lambda _: None,
        clock=lambda: next(times),
    )
    assert [one.ready for one in seen] == [8, 7, 8] and last.busy == ()
