"""The deletion of a log group that was retained: a right that nobody but who deploys has to have."""

from __future__ import annotations

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain


def delete_logs(account: Account, name: str) -> None:
    """Delete a log group with everything in it.

    Raises:
        AccountError: CloudWatch Logs refuses.
    """
    try:
        account.client("logs").delete_log_group(logGroupName=name)
    except AWS_ERRORS as error:
        if code(error) != "ResourceNotFoundException":
            raise AccountError(explain(error)) from None
