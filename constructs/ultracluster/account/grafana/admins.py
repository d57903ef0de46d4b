"""Who may administer a Grafana workspace whose people come from IAM Identity Center."""

from __future__ import annotations

from typing import Any, Literal

from ultracluster.account.aws import Account, AccountError, plain_errors
from ultracluster.account.grafana.workspace import Workspace
from ultracluster.model.cluster import Cluster
from ultracluster.model.observability import observability_of

Person = tuple[Literal["SSO_USER", "SSO_GROUP"], str]
"""Kind and id in IAM Identity Center."""


def missing_admins(account: Account, cluster: Cluster, workspace: Workspace) -> list[Person]:
    """Users and groups of the environment that are no administrators yet.

    None with SAML: there roles of the identity provider decide, which the deploy told Grafana. Administrators
    that the environment does not name stay.

    Raises:
        AccountError: AWS could not be asked.
    """
    settings = observability_of(cluster)
    if settings is None or settings.grafana is None or "AWS_SSO" not in workspace.authentication:
        return []
    named: list[Person] = [
        *(("SSO_USER", str(admin)) for admin in settings.grafana.admins),
        *(("SSO_GROUP", str(group)) for group in settings.grafana.admin_groups),
    ]
    if not named:
        return []
    grafana = account.client("grafana")
    with plain_errors():
        pages: list[dict[str, Any]] = list(
            grafana.get_paginator("list_permissions").paginate(workspaceId=workspace.id)
        )
    there = {
        (permission["user"]["type"], permission["user"]["id"])
        for page in pages
        for permission in page["permissions"]
        if permission["role"] == "ADMIN"
    }
    return [one for one in named if one not in there]


def admit(account: Account, workspace: Workspace, person: Person) -> None:
    """Make one an administrator.

    Raises:
        AccountError: AWS refused, or could not be asked.
    """
    kind, identity = person
    grafana = account.client("grafana")
    with plain_errors():
        answer: dict[str, Any] = grafana.update_permissions(
            workspaceId=workspace.id,
            updateInstructionBatch=[
                {"action": "ADD", "role": "ADMIN", "users": [{"id": identity, "type": kind}]}
            ],
        )
    if errors := answer.get("errors"):
        raise AccountError(
            f"AWS did not make {identity} an administrator of {workspace.id}: {errors[0]['message']}"
        )
