"""Rules between groups: of objects, of several groups on each side."""

from __future__ import annotations

from typing import Any

import jsii
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from foreign import both_ways, group, resources, rules

from ultracluster import Admission
from ultracluster.network.admission import LUSTRE, MYSQL

ONE, TWO, SERVER = "sg-0000000000000000a", "sg-0000000000000000b", "sg-0000000000000000c"


@jsii.implements(ec2.IConnectable)
class Cluster(Construct):
    """Something in two groups."""

    def __init__(self, scope: Construct) -> None:
        super().__init__(scope, "Cluster")
        stack = Stack.of(self)
        self.groups = [group(stack, "One", ONE), group(stack, "Two", TWO)]

    @property
    def connections(self) -> ec2.Connections:
        return ec2.Connections(security_groups=self.groups)


def test_all_groups_of_a_client_are_admitted(stack: Stack) -> None:
    cluster: Any = Cluster(stack)

    made = Admission(
        stack, "Mounts", clients=cluster, servers=group(stack, "Server", SERVER), traffic=LUSTRE, mutual=True
    )

    ports = (("tcp", 988, 988), ("tcp", 1018, 1023))
    assert rules(stack) == both_ways(ONE, SERVER, *ports) | both_ways(TWO, SERVER, *ports)
    assert len(made.rules) == 16


def test_a_group_admits_itself_once(stack: Stack) -> None:
    itself = group(stack, "Server", SERVER)

    Admission(stack, "Itself", clients=itself, servers=itself, traffic=LUSTRE, mutual=True)

    assert len(rules(stack)) == 4


def test_without_mutual_servers_only_answer(stack: Stack) -> None:
    Admission(
        stack, "Sql", clients=group(stack, "One", ONE), servers=group(stack, "Server", SERVER), traffic=MYSQL
    )

    (ingress,) = resources(stack, "AWS::EC2::SecurityGroupIngress").values()
    assert ingress["Properties"]["GroupId"] == SERVER and len(rules(stack)) == 2
