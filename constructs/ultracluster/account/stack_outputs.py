"""What deployed CloudFormation stacks give out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, message


def stack_outputs(account: Account, stacks: Iterable[str]) -> dict[str, dict[str, str]]:
    """The outputs of each stack that exists: value by name, by stack.

    Raises:
        AccountError: AWS could not be asked.
    """
    cloudformation = account.client("cloudformation")
    found: dict[str, dict[str, str]] = {}
    for name in stacks:
        try:
            answer: dict[str, Any] = cloudformation.describe_stacks(StackName=name)
        except AWS_ERRORS as error:
            # CloudFormation has no error code of its own for a stack that is not there
            if code(error) == "ValidationError" and "does not exist" in message(error):
                continue
            raise AccountError(explain(error)) from None
        outputs: list[dict[str, str]] = answer["Stacks"][0].get("Outputs", [])
        found[name] = {output["OutputKey"]: output["OutputValue"] for output in outputs}
    return found
