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


# Per type: the call of EC2, and its request made of the properties and moto's object.
CALLS: dict[str, tuple[str, Callable[[Own, Any], Own]]] = {
    "AWS::EC2::EIP": ("release_address", lambda _, one: {"AllocationId": one.allocation_id}),
    "AWS::EC2::FlowLog": ("delete_flow_logs", lambda _, one: {"FlowLogIds": [one.id]}),
    "AWS::EC2::InternetGateway": (
        "delete_internet_gateway",
        lambda _, one: {"InternetGatewayId": one.id},
    ),
    "AWS::EC2::NatGateway": ("delete_nat_gateway", lambda _, one: {"NatGatewayId": one.id}),
    "AWS::EC2::VPCEndpoint": ("delete_vpc_endpoints", _endpoint),
}


def delete(place: Place, definition: Own, resource: Any) -> bool:
    """Whether a row deleted the resource."""
    kind, own = definition["Type"], definition.get("Properties", {})
    client = place.client("ec2")
    if kind == "AWS::EC2::VPCGatewayAttachment" and "InternetGatewayId" in own:
        gateway = own["InternetGatewayId"]
        client.detach_internet_gateway(InternetGatewayId=gateway, VpcId=own["VpcId"])
        return True
    if kind not in CALLS:
        return False
    call, request = CALLS[kind]
    getattr(client, call)(**request(own, resource))
    return True
