"""An app of another team: no context of ours, an own stack, a VPC that it made or imported."""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import App, CfnResource, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match, Template
from constructs import IConstruct

from ultracluster.guard import Figure

HOME = Environment(account="123456789012", region="us-east-1")


def foreign_stack(*, env: Environment | None = None, name: str = "research") -> Stack:
    """A stack in an app of its own; without `env` account and Region are tokens."""
    return Stack(App(analytics_reporting=False), name, env=env)


def imported_vpc(stack: Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        vpc_cidr_block="10.0.0.0/16",
        availability_zones=["us-east-1a", "us-east-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0", "rtb-0123456789abcdef1"],
    )


def group(stack: Stack, name: str = "Clients", group_id: str = "sg-0123456789abcdef0") -> ec2.ISecurityGroup:
    """A security group that someone else made."""
    return ec2.SecurityGroup.from_security_group_id(stack, name, group_id, allow_all_outbound=False)


def template(stack: Stack) -> dict[str, Any]:
    return cast("dict[str, Any]", Template.from_stack(stack).to_json())


def resources(stack: Stack, kind: str) -> dict[str, dict[str, Any]]:
    """Those of one type, by logical id."""
    found = template(stack).get("Resources", {})
    return {name: one for name, one in found.items() if one["Type"] == kind}


def rules(stack: Stack) -> set[tuple[str, str, str, str, int | None, int | None]]:
    """Rules between groups as (direction, group, other group, protocol, from port, to port)."""
    found: list[tuple[str, str, str, str, int | None, int | None]] = []
    for direction, other in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        for one in resources(stack, f"AWS::EC2::SecurityGroup{direction}").values():
            told = one["Properties"]
            if other in told:
                found.append(
                    (
                        direction.lower(), _short(told["GroupId"]), _short(told[other]), told["IpProtocol"],
                        told.get("FromPort"), told.get("ToPort"),
                    )
                )  # fmt: skip
    assert len(found) == len(set(found)), "EC2 refuses the same rule twice"
    return set(found)


def _short(group_id: Any) -> str:
    return group_id if isinstance(group_id, str) else next(iter(group_id.values()))[0]


def figures(hints: dict[str, Any]) -> dict[str, Any]:
    """Types of arguments as the models write them: these take no number that is only known at deploy."""
    return {name: int if hint == Figure else hint for name, hint in hints.items()}


def both_ways(
    client: str, server: str, *ports: tuple[str, int | None, int | None]
) -> set[tuple[str, str, str, str, int | None, int | None]]:
    """What lets two groups open connections to each other."""
    return {
        (direction, one, other, *port)
        for one, other in ((client, server), (server, client))
        for direction in ("ingress", "egress")
        for port in ports
    }


def refusal(stack: Stack) -> str:
    """What the CDK's validation says of an app; empty where it synthesises."""
    app = stack.node.root
    assert isinstance(app, App)
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
        return str(error)
    return ""


def warnings(stack: Stack) -> list[str]:
    """Annotations of severity warning, without those of the CDK."""
    found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    return [text for one in found if "ultracluster:" in (text := str(one.entry.data))]


def named(construct: IConstruct, kind: str) -> list[str]:
    """Logical ids of the resources below a construct."""
    stack = Stack.of(construct)
    return [
        stack.resolve(child.logical_id)
        for child in construct.node.find_all()
        if isinstance(child, CfnResource) and child.cfn_resource_type == kind
    ]
