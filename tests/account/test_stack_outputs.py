"""What deployed stacks give out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hyperpod_service import account, answer, refusal

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.stack_outputs import stack_outputs

STACK = {
    "StackName": "dev-network",
    "CreationTime": datetime(2026, 11, 22, tzinfo=UTC),
    "StackStatus": "CREATE_COMPLETE",
}


@pytest.fixture
def deployed() -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], Account]:
    def with_answer(describe: Callable[[dict[str, Any]], dict[str, Any]]) -> Account:
        aws_account = account()
        answer(aws_account.client("cloudformation"), "DescribeStacks", describe)
        return aws_account

    return with_answer


def test_outputs_of_the_stacks_that_exist(deployed: Any) -> None:
    def describe(request: dict[str, Any]) -> dict[str, Any]:
        if request["StackName"] == "dev-cluster":
            raise refusal("ValidationError", "Stack with id dev-cluster does not exist")
        return {"Stacks": [{**STACK, "Outputs": [{"OutputKey": "Vpc", "OutputValue": "vpc-1"}]}]}

    found = stack_outputs(deployed(describe), ["dev-network", "dev-cluster"])
    assert found == {"dev-network": {"Vpc": "vpc-1"}}


def test_a_stack_without_outputs_is_there(deployed: Any) -> None:
    assert stack_outputs(deployed(lambda _: {"Stacks": [STACK]}), ["dev-network"]) == {"dev-network": {}}


def test_a_refusal_is_an_error_in_words(deployed: Any) -> None:
    def describe(request: dict[str, Any]) -> dict[str, Any]:
        raise refusal("AccessDenied", "not authorized to perform cloudformation:DescribeStacks")

    with pytest.raises(AccountError, match="DescribeStacks"):
        stack_outputs(deployed(describe), ["dev-network"])
