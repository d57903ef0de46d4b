"""Which stacks of an environment CloudFormation is working on: a deploy that meets another one is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ultracluster.account.aws import Account
from ultracluster.account.stack_outputs import existing_stacks

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
    at_work: list[StackAtWork] = []
    for stack in existing_stacks(account, names):
        status = str(stack["StackStatus"])
        if status.endswith("_IN_PROGRESS") and status != _NOT_AT_WORK:
            times = [stack.get(key) for key in ("DeletionTime", "LastUpdatedTime", "CreationTime")]
            since = next((time for time in times if isinstance(time, datetime)), None)
            at_work.append(StackAtWork(str(stack["StackName"]), status, since))
    return at_work
