"""The log group of an EKS control plane that stays when its environment goes, and stops the next deploy.

EKS writes to `/aws/eks/<name>/cluster` and to no other name. With `protect: true` the group is retained, and
CloudFormation does not create a log group that exists: the stack `<environment>-foundation` fails with
`AlreadyExists`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.account.aws import Account, plain_errors
from ultracluster.account.stack_outputs import existing_stacks


@dataclass(frozen=True, slots=True)
class RetainedLogs:
    """A log group that exists, and whether anything is in it."""

    name: str
    megabytes: float
    empty: bool
    """It has no stream: nothing was ever written."""

    def __str__(self) -> str:
        """`/aws/eks/prod/cluster (12.3 MB)`."""
        return f"{self.name} ({'empty' if self.empty else f'{self.megabytes:,.1f} MB'})"


def control_plane_group(cluster_name: str) -> str:
    """The name of the group that EKS writes to."""
    return f"/aws/eks/{cluster_name}/cluster"


def retained_logs(account: Account, name: str) -> RetainedLogs | None:
    """A log group by its name; None where there is none.

    Raises:
        AccountError: CloudWatch Logs cannot be asked.
    """
    logs = account.client("logs")
    with plain_errors():
        groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        group = next((group for group in groups if group["logGroupName"] == name), None)
        if group is None:
            return None
        streams = logs.describe_log_streams(logGroupName=name, limit=1)["logStreams"]
    return RetainedLogs(name, group.get("storedBytes", 0) / 1e6, empty=not streams)


def stack_exists(account: Account, name: str) -> bool:
    """Return whether CloudFormation has a stack of this name.

    Raises:
        AccountError: CloudFormation cannot be asked.
    """
    return any(existing_stacks(account, [name]))
