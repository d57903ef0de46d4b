"""Whether what a construct was given is where the construct is."""

from __future__ import annotations

from aws_cdk import IResource, Stack, Token
from aws_cdk.aws_ec2 import ISubnet
from constructs import Construct

from ultracluster.guard.judging import refuse, warn


def same_region(scope: Construct, **resources: IResource | None) -> None:
    """An error at `scope` for each resource of another Region: AWS looks for it in that of the stack.

    Nothing is said where one of the two Regions is known only at deploy.

    Args:
        scope: the construct.
        resources: what it was given, by the name of the argument.
    """
    here = Stack.of(scope).region
    for name, resource in resources.items():
        if resource is None:
            continue
        there = resource.env.region
        if there != here and not Token.is_unresolved(here) and not Token.is_unresolved(there):
            refuse(
                scope,
                f"{name}: it is of Region {there}, and this stack of {here}, where AWS looks for it. "
                f"Instead: one of {here}, or a stack with env=cdk.Environment(region={there!r})",
            )


def same_zone(scope: Construct, here: ISubnet, **subnets: ISubnet) -> None:
    """A warning at `scope` for each subnet in another zone than the nodes'.

    EFA does not leave a zone, so what is there is reached over TCP (EC2 User Guide, "Elastic Fabric Adapter
    for AI/ML and HPC workloads").

    Args:
        scope: the construct.
        here: of the nodes.
        subnets: of what they reach over EFA, by the name of the argument.
    """
    zone = here.availability_zone
    for name, subnet in subnets.items():
        there = subnet.availability_zone
        if there != zone and not Token.is_unresolved(zone) and not Token.is_unresolved(there):
            warn(
                scope,
                f"efa-zone-{name}",
                f"{name}: it is in zone {there}, and the nodes in {zone}; EFA does not leave a zone, so they "
                "reach it over TCP. "
                f"Instead: one with a subnet in {zone}, or nodes in a subnet in {there}",
            )
