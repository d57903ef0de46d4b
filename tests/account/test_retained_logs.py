"""The log group that stays when an environment goes: found by its whole name, and deleted with all in it."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from hyperpod_service import account as stubbed
from hyperpod_service import answer, refusal

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.retained_logs import (
    RetainedLogs,
    control_plane_group,
    retained_logs,
    stack_exists,
)

NAME = control_plane_group("prod")


@pytest.fixture
def account(aws_account: None) -> Account:
    return Account("us-east-2")


def test_it_is_found_by_its_whole_name(account: Account) -> None:
    logs = boto3.client("logs", "us-east-2")
    logs.create_log_group(logGroupName=f"{NAME}-other")
    assert retained_logs(account, NAME) is None

    logs.create_log_group(logGroupName=NAME)
    assert retained_logs(account, NAME) == RetainedLogs(NAME, 0, empty=True)
    assert str(retained_logs(account, NAME)) == f"{NAME} (empty)"

    logs.create_log_stream(logGroupName=NAME, logStreamName="kube-apiserver")
    found = retained_logs(account, NAME)
    assert found and not found.empty


def test_a_stack_that_is_not_there(account: Account) -> None:
    assert not stack_exists(account, "prod-foundation")


@pytest.mark.parametrize(
    ("service", "operation", "ask"),
    [
        ("logs", "DescribeLogGroups", lambda made: retained_logs(made, NAME)),
        ("cloudformation", "DescribeStacks", lambda made: stack_exists(made, "prod-foundation")),
    ],
)
def test_a_refusal_is_an_error(service: str, operation: str, ask: Any) -> None:
    def refuse(_: Any) -> Any:
        raise refusal("AccessDenied", "not yours")

    made = stubbed()
    answer(made.client(service), operation, refuse)
    with pytest.raises(AccountError, match="access denied"):
        ask(made)
