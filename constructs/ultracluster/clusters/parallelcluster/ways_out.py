"""What the security group of a ParallelCluster's nodes lets neither out nor in by itself.

ParallelCluster adds nothing to a group that it did not make.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.network.admission import NOWHERE


def ways_out(
    scope: Construct, settings: ParallelCluster, *, security_group_id: str, vpc_cidrs: Sequence[str]
) -> list[ec2.CfnSecurityGroupEgress]:
    """Let nodes reach the file system that the head node shares from, and the directory of users.

    Args:
        scope: where the rules live.
        settings: of ParallelCluster.
        security_group_id: of the nodes.
        vpc_cidrs: IPv4 networks in which ParallelCluster makes an EFS.
    """
    rules: list[tuple[str, str, int, str]] = []
    if settings.head_storage == "efs":
        rules += [
            (f"HeadStorage{number or ''}", cidr, 2049, "EFS that ParallelCluster makes")
            for number, cidr in enumerate(vpc_cidrs)
        ]
    directory = settings.directory_service
    for number, cidr in enumerate(directory.server_networks if directory else ()):
        ports = directory.ports if directory else ()
        rules += [(f"Directory{number}P{port}", cidr, port, "Directory") for port in ports]
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


SSH = 22
"""Port of login nodes and of the load balancer of a pool."""


def ssh_groups(
    scope: Construct, settings: ParallelCluster, *, vpc_id: str, cluster_name: str
) -> dict[str, ec2.CfnSecurityGroup]:
    """A security group for each login pool that people reach by SSH from networks of theirs.

    The pool's nodes and its load balancer have it beside the nodes' own, which admits nobody from outside.

    Args:
        scope: where they live.
        settings: of ParallelCluster.
        vpc_id: of the nodes.
        cluster_name: whose pools they are.
    """
    return {
        pool: ec2.CfnSecurityGroup(
            scope,
            f"Ssh{pool.title().replace('-', '')}",
            vpc_id=vpc_id,
            group_description=f"SSH to the login pool {pool} of {cluster_name}",
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp",
                    from_port=SSH,
                    to_port=SSH,
                    cidr_ip=cidr,
                    description=f"SSH from {cidr}",
                )
                for cidr in networks
            ],
            # what leaves is the business of the nodes' own group; without a rule EC2 lets everything out
            security_group_egress=[NOWHERE],
        )
        for pool, networks in settings.ssh_pools.items()
    }
