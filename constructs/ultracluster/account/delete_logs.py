"""The deletion of a log group that was retained: a right that nobody but who deploys has to have."""

from __future__ import annotations

from ultracluster.account.aws import Account, existing, plain_errors


def delete_logs(account: Account, name: str) -> None:
    """Delete a log group with everything in it.

    Raises:
        AccountError: CloudWatch Logs refuses.
    """
    logs = account.client("logs")
    with plain_errors():
        existing(lambda: logs.delete_log_group(logGroupName=name), "ResourceNotFoundException")
