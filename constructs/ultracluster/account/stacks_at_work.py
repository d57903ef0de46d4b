"""Which stacks of an environment CloudFormation is working on: a deploy that meets another one is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain, message

_NOT_AT_WORK = "REVIEW_IN_PROGRESS"
"""A change set was made for a stack that is not there yet, and nobody executes it (CloudFormation User Guide,
"Stack status codes")."""


@dataclass(frozen=True, slots=True)
class StackAtWork:
    """A stack that CloudFormation changes now."""

    name: str
    status: str
    since: datetime | None

    def __str__(self) -> str:
        """`dev-cluster is UPDATE_IN_PROGRESS since 2026-11-22 18:20 UTC`."""
        since = f" since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        return f"{self.name} is {self.status}{since}"


def stacks_at_work(account: Account, names: Iterable[str]) -> list[StackAtWork]:
    """The stacks, of these names, that are being created, updated, rolled back or deleted.

    Raises:
        AccountError: CloudFormation cannot be asked.
    """
    cloudformation = account.client("cloudformation")
    found: list[StackAtWork] = []
    for name in names:
        try:
            answer: dict[str, Any] = cloudformation.describe_stacks(StackName=name)
        except AWS_ERRORS as error:
            if code(error) == "ValidationError" and "does not exist" in message(error):
                continue
            raise AccountError(explain(error)) from None
        stack: dict[str, Any] = answer["Stacks"][0]
        status = str(stack["StackStatus"])
        if status.endswith("_IN_PROGRESS") and status != _NOT_AT_WORK:
            times = [stack.get(key) for key in ("DeletionTime", "LastUpdatedTime", "CreationTime")]
            since = next((one for one in times if isinstance(one, datetime)), None)
            found.append(StackAtWork(name, status, since))
    return found
