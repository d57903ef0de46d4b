"""What lets nodes ask a directory of people: its password, and the way to its servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.model import Cluster
from ultracluster.model.directory import directory_of


class ReadsPassword(Protocol):
    """Rights of nodes."""

    def grant_read_directory_password(self, secret_arn: str, key_arn: str | None = None) -> None: ...


def let_ask_directory(
    scope: Construct,
    cluster: Cluster,
    *,
    rights: Iterable[ReadsPassword],
    security_groups: Sequence[ec2.ISecurityGroup],
) -> list[ec2.CfnSecurityGroupEgress]:
    """Add what is missing where the environment names a directory; the rules, which nodes wait for.

    Args:
        scope: where the rules live.
        rights: of all nodes: each of them asks.
        security_groups: of the nodes; the first one gets the rules.
    """
    directory = directory_of(cluster)
    if directory is None:
        return []
    for role_rights in rights:
        role_rights.grant_read_directory_password(directory.password_secret_arn, directory.password_key_arn)
    return [
        ec2.CfnSecurityGroupEgress(
            scope,
            f"Directory{number}P{port}",
            group_id=security_groups[0].security_group_id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            cidr_ip=network,
            description="Directory of users",
        )
        for number, network in enumerate(directory.server_networks)
        for port in directory.ports
    ]
