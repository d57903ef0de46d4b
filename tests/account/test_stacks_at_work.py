"""Which stacks are at work, by CloudFormation's states."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hyperpod_service import account, answer, refusal

from ultracluster.account.aws import AccountError
from ultracluster.account.stacks_at_work import stacks_at_work

BORN, CHANGED = datetime(2026, 11, 1, 8, 0, tzinfo=UTC), datetime(2026, 11, 22, 18, 20, tzinfo=UTC)


def test_states_that_are_at_work() -> None:
    states = {
        "a": "UPDATE_IN_PROGRESS", "b": "CREATE_COMPLETE", "c": "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "d": "REVIEW_IN_PROGRESS", "e": "UPDATE_ROLLBACK_FAILED", "f": "CREATE_IN_PROGRESS",
    }  # fmt: skip

    def describe(asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["StackName"]
        if name not in states:
            raise refusal("ValidationError", f"Stack with id {name} does not exist")
        changed = {} if name == "f" else {"LastUpdatedTime": CHANGED}
        stack = {"StackName": name, "StackStatus": states[name], "CreationTime": BORN, **changed}
        return {"Stacks": [stack]}

    aws_account = account()
    answer(aws_account.client("cloudformation"), "DescribeStacks", describe)

    assert [str(one) for one in stacks_at_work(aws_account, [*states, "gone"])] == [
        "a is UPDATE_IN_PROGRESS since 2026-11-22 18:20 UTC",
        "c is UPDATE_COMPLETE_CLEANUP_IN_PROGRESS since 2026-11-22 18:20 UTC",
        "f is CREATE_IN_PROGRESS since 2026-11-01 08:00 UTC",
    ]


def test_a_refusal_is_an_error() -> None:
    def refuse(asked: dict[str, Any]) -> dict[str, Any]:
        raise refusal("AccessDenied", "not yours")

    aws_account = account()
    answer(aws_account.client("cloudformation"), "DescribeStacks", refuse)
    with pytest.raises(AccountError, match="access denied"):
        stacks_at_work(aws_account, ["dev-network"])
