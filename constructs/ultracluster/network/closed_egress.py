"""The way out of nodes in a network without internet: VPC endpoints, and the prefix lists of gateways."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.network.admission import groups_of
from ultracluster.security.acknowledgements import acknowledge
from ultracluster.security.sdk_calls import SdkCalls

HTTPS = 443
_ID = "PrefixLists.0.PrefixListId"


class ClosedEgress(Construct):
    """Rules of security groups that let HTTPS out to endpoints and gateways, and nothing to 0.0.0.0/0.

    A gateway's addresses are AWS's public ones, which a prefix list holds. Its id differs between Regions:
    the deploy asks for it, by a function that is in no VPC and needs no way out of this one.

    Attributes:
        rules: the rules, for dependencies.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        clients: ec2.IConnectable,
        networks: Sequence[str],
        endpoint_group_id: str | None = None,
        gateways: Sequence[str] = ("s3",),
        key: kms.IKey | None = None,
    ) -> None:
        """Add the rules to all groups of the clients.

        Args:
            clients: a security group, or what is in some.
            networks: IPv4 networks of the interface endpoints, if their group is not known.
            endpoint_group_id: the group of the interface endpoints, where it is known.
            gateways: services with a gateway endpoint: `s3`, `dynamodb`.
            key: encrypts the log of the calls that look for prefix lists; by default a `ClusterKey`.
        """
        super().__init__(scope, construct_id)
        self.rules: list[ec2.CfnSecurityGroupEgress] = []
        lists = {service: self._prefix_list(service, key) for service in gateways}
        for number, group_id in enumerate(groups_of(clients), start=1):
            suffix = "" if number == 1 else str(number)
            to_endpoints = [{"destination_security_group_id": endpoint_group_id}] if endpoint_group_id else []
            for place, to in enumerate(to_endpoints or [{"cidr_ip": network} for network in networks]):
                name = f"Endpoints{suffix}" + (f"Network{place}" if place else "")
                self._rule(name, group_id, "HTTPS to VPC endpoints", to)
            for service, list_id in lists.items():
                to_list = {"destination_prefix_list_id": list_id}
                self._rule(f"Gateway-{service}{suffix}", group_id, f"HTTPS to {service}", to_list)

    def _rule(self, name: str, group_id: str, description: str, to: dict[str, str]) -> None:
        rule = ec2.CfnSecurityGroupEgress(
            self, name, group_id=group_id, ip_protocol="tcp", from_port=HTTPS, to_port=HTTPS,
            description=f"Ultracluster: {description}", **to,
        )  # fmt: skip
        self.rules.append(rule)

    def _prefix_list(self, service: str, key: kms.IKey | None) -> str:
        name = f"com.amazonaws.{Stack.of(self).region}.{service}"
        calls = SdkCalls.of(self, key=key)
        call = calls.add(
            self,
            f"PrefixList-{service}",
            may=("ec2:DescribeManagedPrefixLists", "*"),
            sid="FindPrefixLists",
            always=cr.AwsSdkCall(
                service="EC2",
                action="describeManagedPrefixLists",
                parameters={"Filters": [{"Name": "prefix-list-name", "Values": [name]}]},
                output_paths=[_ID],
                physical_resource_id=cr.PhysicalResourceId.of(f"prefix-list-{service}"),
            ),
        )
        acknowledge(
            calls,
            {"AwsSolutions-IAM5[Resource::*]": "DescribeManagedPrefixLists knows no resources (Service "
             "Authorization Reference, Amazon EC2)."},
        )  # fmt: skip
        return call.get_response_field(_ID)
