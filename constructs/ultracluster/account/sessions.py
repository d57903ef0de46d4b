"""The session that opens a shell on one node: its target, and the environment's own session document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.account.aws import AWS_ERRORS, Account, explain
from ultracluster.account.nodes.node import Node
from ultracluster.model.login import hyperpod_target, start_session


@dataclass(frozen=True, slots=True)
class Session:
    """What `aws ssm start-session` needs."""

    target: str
    """Of Session Manager."""
    document: str
    """The environment's own session document; empty for the account's default."""
    region: str
    profile: str
    note: str = ""
    """Why the document is not named, if it should have been."""

    @property
    def command(self) -> list[str]:
        """The command, one argument each."""
        return start_session(self.target, region=self.region, document=self.document, profile=self.profile)


def open_session(
    account: Account,
    stacks: Sequence[str],
    node: Node,
    cluster_id: str | None,
    *,
    admin: bool = False,
    user_document: str = "",
) -> Session:
    """The session for a node.

    Args:
        stacks: names of the environment's stacks, in the order in which they are deployed.
        cluster_id: last part of the HyperPod cluster's ARN; none for an instance of the account.
        admin: as the image's user, who may sudo.
        user_document: name of the document of one user, as whom the session is.
    """
    target = hyperpod_target(cluster_id, node.group, node.id) if cluster_id else node.id
    if user_document:
        return Session(target, user_document, account.region, account.profile)
    document, note = session_document(account, stacks, admin=admin)
    return Session(target, document, account.region, account.profile, note)


def session_document(account: Account, stacks: Sequence[str], *, admin: bool = False) -> tuple[str, str]:
    """Name of people's or of administrators' session document among the stacks, or nothing and why."""
    cloudformation = account.client("cloudformation")
    for stack in reversed(stacks):
        try:
            pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
            for page in pages:
                for resource in page["StackResourceSummaries"]:
                    if (
                        resource["ResourceType"] == "AWS::SSM::Document"
                        and resource.get("PhysicalResourceId")
                        and "UserSession" not in resource["LogicalResourceId"]
                        and ("AdminSession" in resource["LogicalResourceId"]) == admin
                    ):
                        return str(resource["PhysicalResourceId"]), ""
        except AWS_ERRORS as error:
            why = f"the session document of {stack} is not known ({explain(error)})"
            return "", f"{why}; the default one is used, whose user may sudo unless it was changed"
    if admin:
        return "", "no session document of administrators is deployed: deploy the environment first"
    return "", (
        "no session document is deployed; the account's default one is used, which logs in as ssm-user, who "
        "may sudo, unless it was changed. Deploy the environment to have one"
    )


def ready(node: Node) -> str:
    """Return why no session can be opened now; empty if it can."""
    if not node.id:
        return f"{node.name} has no instance yet ({node.status})"
    if node.status in ("ShuttingDown", "NotFound", "shutting-down", "terminated", "stopped", "stopping"):
        return f"{node.name} is {node.status}"
    return ""
