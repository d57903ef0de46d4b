"""The group of EFA nodes: rules within it, both ways with another group, and what waits for them."""

from __future__ import annotations

import pytest
from aws_cdk import CfnResource, Stack
from aws_cdk import aws_ec2 as ec2
from foreign import both_ways, foreign_stack, group, imported_vpc, resources, rules

from ultracluster import EfaSecurityGroup, IEfaSecurityGroup

ALL = ("-1", None, None)
OTHER = "sg-0123456789abcdef0"


def own(stack: Stack) -> str:
    (name,) = resources(stack, "AWS::EC2::SecurityGroup")
    return name


@pytest.mark.parametrize("asked_by", ["from", "to", "other", "explicit"])
def test_efa_with_another_group_goes_both_ways(stack: Stack, asked_by: str) -> None:
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=imported_vpc(stack))
    other = group(stack)

    match asked_by:
        case "from":
            nodes.connections.allow_default_port_from(other)
        case "to":
            nodes.connections.allow_to(other, ec2.Port.all_traffic())
        case "other":
            other.connections.allow_to_default_port(nodes)
        case _:
            other.connections.allow_from(nodes, ec2.Port.all_traffic())

    mine = own(stack)
    within = {("ingress", mine, mine, *ALL), ("egress", mine, mine, *ALL)}
    assert rules(stack) == within | both_ways(mine, OTHER, ALL)


def test_two_groups_of_nodes(stack: Stack) -> None:
    vpc = imported_vpc(stack)
    one, other = EfaSecurityGroup(stack, "One", vpc=vpc), EfaSecurityGroup(stack, "Other", vpc=vpc)

    one.connections.allow_default_port_from(other)
    other.connections.allow_default_port_from(one)

    names = sorted(resources(stack, "AWS::EC2::SecurityGroup"))
    assert len(rules(stack)) == 2 + 2 + 4 and both_ways(names[0], names[1], ALL) < rules(stack)


def test_a_single_port_is_opened_one_way(stack: Stack) -> None:
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=imported_vpc(stack))

    nodes.connections.allow_from(group(stack), ec2.Port.tcp(22))

    mine = own(stack)
    port = ("tcp", 22, 22)
    assert {one for one in rules(stack) if one[3] == "tcp"} == {
        ("ingress", mine, OTHER, *port),
        ("egress", OTHER, mine, *port),
    }


def test_within_itself_nothing_is_added(stack: Stack) -> None:
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=imported_vpc(stack))

    nodes.connections.allow_default_port_internally()
    nodes.connections.allow_default_port_from(nodes)

    assert len(rules(stack)) == 2


def test_what_depends_on_the_group_waits_for_its_rules(stack: Stack) -> None:
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=imported_vpc(stack))
    cluster = CfnResource(stack, "Cluster", type="AWS::SageMaker::Cluster")
    cluster.node.add_dependency(nodes.security_group)
    nodes.connections.allow_default_port_from(group(stack))

    (found,) = resources(stack, "AWS::SageMaker::Cluster").values()
    waits = set(found["DependsOn"])
    assert {stack.resolve(rule.logical_id) for rule in nodes.self_rules} < waits
    # those that are added later, too
    assert len(waits) == 4


def test_a_group_made_elsewhere_has_its_rules(stack: Stack) -> None:
    nodes: IEfaSecurityGroup = EfaSecurityGroup.from_security_group(stack, "Nodes", group(stack))

    nodes.connections.allow_default_port_from(group(stack, "More", "sg-0000000000000000b"))

    assert nodes.self_rules == () and rules(stack) == both_ways(OTHER, "sg-0000000000000000b", ALL)


def test_rules_are_added_to_a_group_of_the_user() -> None:
    stack = foreign_stack()
    mine = ec2.SecurityGroup(stack, "Mine", vpc=imported_vpc(stack), allow_all_outbound=False)
    nodes = EfaSecurityGroup.from_security_group(stack, "Nodes", mine, self_rules=True)  # type: ignore[arg-type]
    CfnResource(stack, "Cluster", type="AWS::SageMaker::Cluster").node.add_dependency(nodes.security_group)

    name = own(stack)
    assert rules(stack) == {("ingress", name, name, *ALL), ("egress", name, name, *ALL)}
    (found,) = resources(stack, "AWS::SageMaker::Cluster").values()
    assert len(found["DependsOn"]) == 3


def test_dual_stack_nodes_reach_the_web_by_either_family(stack: Stack) -> None:
    EfaSecurityGroup(stack, "Nodes", vpc=imported_vpc(stack), ipv6=True)

    (group,) = resources(stack, "AWS::EC2::SecurityGroup").values()
    out = {
        (one.get("CidrIp") or one.get("CidrIpv6"), one["FromPort"])
        for one in group["Properties"]["SecurityGroupEgress"]
    }
    assert out == {(family, port) for family in ("0.0.0.0/0", "::/0") for port in (80, 443)}
