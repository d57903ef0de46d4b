"""Deletions that moto's CloudFormation leaves out: the calls that delete, to moto's own API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulated_account.adapter import Place

Own = dict[str, Any]


def _endpoint(_: Own, one: Any) -> Own:
    # Moto's endpoints have no type where the template leaves it out, and then cannot be deleted.
    one.vpc_endpoint_type = one.vpc_endpoint_type or "Gateway"
    return {"VpcEndpointIds": [one.id]}


# Per type: service and call, and the request made of the properties and moto's object.
CALLS: dict[str, tuple[str, str, Callable[[Own, Any], Own]]] = {
    "AWS::EC2::EIP": ("ec2", "release_address", lambda _, one: {"AllocationId": one.allocation_id}),
    "AWS::EC2::FlowLog": ("ec2", "delete_flow_logs", lambda _, one: {"FlowLogIds": [one.id]}),
    "AWS::EC2::InternetGateway": (
        "ec2",
        "delete_internet_gateway",
        lambda _, one: {"InternetGatewayId": one.id},
    ),
    "AWS::IAM::ManagedPolicy": ("iam", "delete_policy", lambda _, one: {"PolicyArn": one.arn}),
    "AWS::EC2::NatGateway": ("ec2", "delete_nat_gateway", lambda _, one: {"NatGatewayId": one.id}),
    "AWS::EC2::VPCEndpoint": ("ec2", "delete_vpc_endpoints", _endpoint),
}


def delete(place: Place, definition: Own, resource: Any) -> bool:
    """Whether a row deleted the resource."""
    kind, own = definition["Type"], definition.get("Properties", {})
    if kind == "AWS::EC2::VPCGatewayAttachment" and "InternetGatewayId" in own:
        gateway = own["InternetGatewayId"]
        place.client("ec2").detach_internet_gateway(InternetGatewayId=gateway, VpcId=own["VpcId"])
        return True
    if kind not in CALLS:
        return False
    service, call, request = CALLS[kind]
    getattr(place.client(service), call)(**request(own, resource))
    return True
