"""The security group that EC2 makes with every VPC, without its rules (CIS AWS Foundations Benchmark, 5.4:
"Ensure the default security group of every VPC restricts all traffic")."""

from __future__ import annotations

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.security.sdk_calls import SdkCalls

GONE = "InvalidPermission.NotFound|InvalidGroup.NotFound"
"""Errors of EC2 that say that there is nothing to revoke: somebody has done it already."""


class EmptyDefaultGroup(Construct):
    """Revokes both rules of a new VPC's default group: all traffic in from itself, and out to everywhere.

    What is launched without a security group gets this one, and then reaches nothing. The rules are revoked
    once: nothing puts them back when this goes, and nobody else's rules are touched.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, group_id: str, key: kms.IKey | None = None
    ) -> None:
        """Revoke the rules.

        Args:
            group_id: of the default group of a VPC.
            key: encrypts the log of the calls; by default a `ClusterKey`.
        """
        super().__init__(scope, construct_id)
        itself: dict[str, Any] = {"UserIdGroupPairs": [{"GroupId": group_id}]}
        self._revoke("Ingress", group_id, itself, key)
        self._revoke("Egress", group_id, {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, key)

    def _revoke(self, way: str, group_id: str, peer: dict[str, Any], key: kms.IKey | None) -> None:
        arn = Stack.of(self).format_arn(service="ec2", resource="security-group", resource_name=group_id)
        SdkCalls.of(self, key=key).add(
            self,
            way,
            may=(f"ec2:RevokeSecurityGroup{way}", arn),
            always=cr.AwsSdkCall(
                service="EC2",
                action=f"revokeSecurityGroup{way}",
                parameters={"GroupId": group_id, "IpPermissions": [{"IpProtocol": "-1", **peer}]},
                output_paths=["Return"],
                physical_resource_id=cr.PhysicalResourceId.of(f"default-group-{way.lower()}"),
                ignore_error_codes_matching=GONE,
            ),
        )
