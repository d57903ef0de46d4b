"""A token for Grafana's own API that lives for one command.

One service account per workspace, kept: it is billed as a user in each month in which it does something, and
without a token nobody can use it. Tokens count against a quota of 100 even after they have expired (Amazon
Managed Grafana User Guide, "Using service accounts", "Quotas"): each is deleted, also one that a killed
command left behind.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain, plain_errors

ACCOUNT = "ultracluster"
"""Name of the service account."""
LIFE = 600
"""Seconds after which a token is worth nothing, should the command be killed."""
PREFIX = "ultracluster-apply-"


class LeftTokenError(AccountError):
    """The token could not be deleted; it expires by itself."""


@contextmanager
def short_token(account: Account, workspace: str, *, now: datetime | None = None) -> Generator[str]:
    """A token of an administrator, deleted at the end whatever happens.

    Raises:
        AccountError: there is none to be had, or AWS could not be asked.
        LeftTokenError: what was to be done is done, and the token is still there.
    """
    grafana = account.client("grafana")
    moment = now or datetime.now(UTC)
    with plain_errors():
        holder = _holder(grafana, workspace)
        for old in _tokens(grafana, workspace, holder):
            if str(old["name"]).startswith(PREFIX) and old["expiresAt"] < moment:
                grafana.delete_workspace_service_account_token(
                    workspaceId=workspace, serviceAccountId=holder, tokenId=old["id"]
                )
        answer = grafana.create_workspace_service_account_token(
            workspaceId=workspace,
            serviceAccountId=holder,
            name=f"{PREFIX}{uuid4().hex[:12]}",
            secondsToLive=LIFE,
        )
    token: dict[str, Any] = answer["serviceAccountToken"]
    failed: AccountError | None = None
    left = ""
    try:
        yield str(token["key"])
    except AccountError as error:
        failed = error
    finally:
        try:
            grafana.delete_workspace_service_account_token(
                workspaceId=workspace, serviceAccountId=holder, tokenId=token["id"]
            )
        except AWS_ERRORS as error:
            left = (
                f"token {token['name']} of Grafana workspace {workspace} could not be deleted; it expires in "
                f"{LIFE // 60} minutes by itself, and the next `apply` deletes it: {explain(error)}"
            )
    if failed:
        raise AccountError(f"{failed}; {left}") if left else failed
    if left:
        raise LeftTokenError(left)


def _holder(grafana: Any, workspace: str) -> str:
    """Id of the service account, made where it is not there.

    Raises:
        AccountError: it has another role than one that may make data sources.
    """
    for page in grafana.get_paginator("list_workspace_service_accounts").paginate(workspaceId=workspace):
        for account in page["serviceAccounts"]:
            if account["name"] != ACCOUNT:
                continue
            if account["grafanaRole"] != "ADMIN" or account["isDisabled"] == "true":
                raise AccountError(
                    f"service account `{ACCOUNT}` of Grafana workspace {workspace} is disabled, or no "
                    "administrator: mend or delete it in Grafana, and try again"
                )
            return str(account["id"])
    answer = grafana.create_workspace_service_account(
        workspaceId=workspace, name=ACCOUNT, grafanaRole="ADMIN"
    )
    return str(answer["id"])


def _tokens(grafana: Any, workspace: str, holder: str) -> list[dict[str, Any]]:
    pages = grafana.get_paginator("list_workspace_service_account_tokens").paginate(
        workspaceId=workspace, serviceAccountId=holder
    )
    return [one for page in pages for one in page["serviceAccountTokens"]]
