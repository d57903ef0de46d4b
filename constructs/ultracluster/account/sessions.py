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


def open_session(account: Account, stacks: Sequence[str], node: Node, cluster_id: str | None) -> Session:
    """The session for a node.

    Args:
        stacks: names of the environment's stacks, in the order in which they are deployed.
        cluster_id: last part of the HyperPod cluster's ARN; none for an instance of the account.
    """
    target = hyperpod_target(cluster_id, node.group, node.id) if cluster_id else node.id
    document, note = session_document(account, stacks)
    return Session(target, document, account.region, account.profile, note)


def session_document(account: Account, stacks: Sequence[str]) -> tuple[str, str]:
    """Name of the session document among the environment's stacks, or nothing and why."""
    cloudformation = account.client("cloudformation")
    for stack in reversed(stacks):
        try:
            pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
            for page in pages:
                for resource in page["StackResourceSummaries"]:
                    if resource["ResourceType"] == "AWS::SSM::Document" and resource.get(
                        "PhysicalResourceId"
                    ):
                        return str(resource["PhysicalResourceId"]), ""
        except AWS_ERRORS as error:
            return (
                "",
                f"the session document of {stack} is not known ({explain(error)}); the default one is used",
            )
    return "", ""


def ready(node: Node) -> str:
    """Why no session can be opened now; empty if it can."""
    if not node.id:
        return f"{node.name} has no instance yet ({node.status})"
    if node.status in ("ShuttingDown", "NotFound", "shutting-down", "terminated", "stopped", "stopping"):
        return f"{node.name} is {node.status}"
    return ""
