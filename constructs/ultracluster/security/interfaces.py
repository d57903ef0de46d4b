"""Where roles may have network interfaces: of which subnet, of which security groups, of which VPC.

Service Authorization Reference, "Amazon EC2": creating an interface asks for the subnet and the groups; one
that exists tells where it is by the keys `ec2:Subnet` and `ec2:Vpc`. A shared subnet, group or VPC is its
owner's, who is another account (VPC User Guide, "VPC sharing"): ids are unique in all accounts, so the ARNs
leave the account open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfacePlace:
    """Where interfaces may be."""

    interfaces: str
    """All of the account: their ids are not known beforehand."""
    subnets: Sequence[str]
    groups: Sequence[str]
    vpc: str | None = None

    @classmethod
    def of(
        cls,
        scope: IConstruct,
        *,
        subnet: ec2.ISubnet | None = None,
        further_subnets: Sequence[ec2.ISubnet] = (),
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        vpc: ec2.IVpc | None = None,
    ) -> InterfacePlace:
        """What is not given may be any: of the account, and of those that share with it."""
        return cls(
            interfaces=_arn(scope, "network-interface", "*", account=None),
            subnets=[_arn(scope, "subnet", subnet.subnet_id if subnet else "*")]
            + [_arn(scope, "subnet", further_subnet.subnet_id) for further_subnet in further_subnets],
            groups=[
                _arn(scope, "security-group", security_group.security_group_id)
                for security_group in security_groups
            ]
            or [_arn(scope, "security-group", "*")],
            vpc=_arn(scope, "vpc", vpc.vpc_id) if vpc else None,
        )

    @property
    def resources(self) -> list[str]:
        """What calls about interfaces are about, besides the instance."""
        return [self.interfaces, *self.subnets, *self.groups]

    @property
    def inside(self) -> dict[str, object]:
        """Only interfaces of the place. An instance, and an interface that is about to be, have no such key:
        of the latter the subnet's ARN decides."""
        return {"ArnLikeIfExists": self._keys}

    @property
    def surely_inside(self) -> dict[str, object]:
        """The same, for calls that are always about an interface that exists."""
        return {"ArnLike": self._keys}

    @property
    def _keys(self) -> dict[str, object]:
        return {"ec2:Vpc": self.vpc} if self.vpc else {"ec2:Subnet": list(self.subnets)}


def instances(scope: IConstruct) -> str:
    """ARN of all instances, also those that HyperPod has in an account of the service."""
    return _arn(scope, "instance", "*")


def _arn(scope: IConstruct, resource: str, name: str, *, account: str | None = "*") -> str:
    return Stack.of(scope).format_arn(service="ec2", account=account, resource=resource, resource_name=name)
