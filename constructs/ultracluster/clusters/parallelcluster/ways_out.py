"""What the security group of a ParallelCluster's nodes does not let out by itself.

ParallelCluster adds nothing to a group that it did not make.
"""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.config.parallelcluster import ParallelCluster


def ways_out(
    scope: Construct, settings: ParallelCluster, *, security_group_id: str, vpc_cidr: str
) -> list[ec2.CfnSecurityGroupEgress]:
    """Let nodes reach the file system that the head node shares from, and the directory of users.

    Args:
        scope: where the rules live.
        settings: of ParallelCluster.
        security_group_id: of the nodes.
        vpc_cidr: IPv4 network in which ParallelCluster makes an EFS.
    """
    rules: list[tuple[str, str, int, str]] = []
    if settings.head_storage == "efs":
        rules.append(("HeadStorage", vpc_cidr, 2049, "EFS that ParallelCluster makes"))
    directory = settings.directory_service
    for number, cidr in enumerate(directory.server_networks if directory else ()):
        rules += [(f"Directory{number}P{port}", cidr, port, "Directory") for port in (389, 636)]
    return [
        ec2.CfnSecurityGroupEgress(
            scope,
            name,
            group_id=security_group_id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            cidr_ip=cidr,
            description=description,
        )
        for name, cidr, port, description in rules
    ]


__all__ = ["ways_out"]
