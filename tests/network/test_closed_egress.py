"""The narrow way out in an app of another team."""

from __future__ import annotations

import json

from aws_cdk import Stack
from foreign import refusal, resources

from ultracluster import ClusterNetwork, EfaSecurityGroup


def test_a_closed_network_lets_a_group_out_to_its_endpoints(stack: Stack) -> None:
    network = ClusterNetwork(stack, "Network", zone_id="use1-az6", egress="closed")
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=network.vpc, web_ports=())
    assert network.egress
    made = network.egress.admit("Nodes", clients=nodes)

    rules = [stack.resolve(rule.destination_security_group_id) for rule in made.rules]
    assert [stack.resolve(network.egress.endpoint_group.attr_group_id), None] == rules  # type: ignore[union-attr]
    assert "0.0.0.0/0" not in json.dumps(resources(stack, "AWS::EC2::SecurityGroup"))
    assert refusal(stack) == ""


def test_the_prefix_list_is_asked_for_by_a_function_outside_of_the_network(stack: Stack) -> None:
    network = ClusterNetwork(stack, "Network", zone_id="use1-az6", egress="closed")
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=network.vpc, web_ports=())
    assert network.egress
    network.egress.admit("Nodes", clients=nodes)

    for function in resources(stack, "AWS::Lambda::Function").values():
        assert "VpcConfig" not in function["Properties"]
    calls = [str(one["Properties"]["Create"]) for one in resources(stack, "Custom::AWS").values()]
    (asked,) = [call for call in calls if "describeManagedPrefixLists" in call]
    # the Region is that of the stack, which nobody knows yet
    assert "AWS::Region" in asked and ".s3" in asked
