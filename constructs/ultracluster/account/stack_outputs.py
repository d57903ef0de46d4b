"""Deployed CloudFormation stacks and their outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ultracluster.account.aws import Account, existing, plain_errors


def existing_stacks(account: Account, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The stacks of these names that exist, as CloudFormation describes them.

    Raises:
        AccountError: AWS could not be asked.
    """
    cloudformation = account.client("cloudformation")
    for name in names:
        with plain_errors():
            answer = existing(lambda name=name: cloudformation.describe_stacks(StackName=name))
        if answer:
            yield answer["Stacks"][0]


def stack_outputs(account: Account, stacks: Iterable[str]) -> dict[str, dict[str, str]]:
    """The outputs of each stack that exists: value by name, by stack.

    Raises:
        AccountError: AWS could not be asked.
    """
    return {
        stack["StackName"]: {
            output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])
        }
        for stack in existing_stacks(account, stacks)
    }
