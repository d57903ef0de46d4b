"""Rules of security groups: moto's CloudFormation has no outbound ones. Unverified: error codes."""

from __future__ import annotations

from typing import Any, ClassVar

from botocore import xform_name

from emulated_account import api_model
from emulated_account.adapter import Adapter
from emulated_account.refusal import ApiError


class SecurityGroupRule(Adapter):
    way: ClassVar[str]
    # Per other end: the property that names it, and where the API has it.
    ends: ClassVar[dict[str, tuple[str, str]]]

    def create(self) -> None:
        if sum(name in self.properties for name in self.ends) != 1:
            raise ApiError(
                "InvalidParameterValue", f"Exactly one of {', '.join(self.ends)} must be specified"
            )
        protocol, ports = (
            self.properties["IpProtocol"],
            [self.properties.get(key) for key in ("FromPort", "ToPort")],
        )
        if protocol in ("tcp", "udp", "6", "17") and (None in ports or int(ports[0]) > int(ports[1])):  # type: ignore[arg-type]
            raise ApiError(
                "InvalidParameterValue",
                f"Invalid value for portRange. Must specify both from and to ports with {protocol}",
            )
        client = self.place.client("ec2")
        group = self.properties["GroupId"]
        other = next(
            (
                self.properties[name]
                for name in self.ends
                if name.endswith("SecurityGroupId") and name in self.properties
            ),
            group,
        )
        client.describe_security_groups(GroupIds=sorted({group, other}))
        self._prepare(client, group)
        rules = self._call("Authorize")["SecurityGroupRules"]
        self.physical_resource_id = self.attributes["Id"] = rules[0]["SecurityGroupRuleId"]

    def _prepare(self, client: Any, group: str) -> None:
        """What the first rule of a group changes."""

    def update(self, properties: dict[str, Any]) -> None:
        """Only the description can change in place."""

    def remove(self) -> None:
        self._call("Revoke")

    def _call(self, verb: str) -> dict[str, Any]:
        own = self.properties
        permission = {key: own[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in own}
        note = {"Description": own["Description"]} if "Description" in own else {}
        source = next(name for name in self.ends if name in own)
        ranges, name = self.ends[source]
        permission[ranges] = [{name: own[source]} | note]
        operation = f"{verb}SecurityGroup{self.way}"
        request = api_model.judge(
            "ec2", operation, {"GroupId": own["GroupId"], "IpPermissions": [permission]}
        )
        return getattr(self.place.client("ec2"), xform_name(operation))(**request)


RANGES = {"CidrIp": ("IpRanges", "CidrIp"), "CidrIpv6": ("Ipv6Ranges", "CidrIpv6")}


class SecurityGroupEgress(SecurityGroupRule):
    resource_type = "AWS::EC2::SecurityGroupEgress"
    judged_by = "ec2:AuthorizeSecurityGroupEgress"
    way = "Egress"
    # Rules that are not the default one.
    own: ClassVar[set[str]] = set()

    def create(self) -> None:
        super().create()
        self.own.add(self.physical_resource_id)

    def _prepare(self, client: Any, group: str) -> None:
        """The rule that lets everything out, which a new group has, goes with the first rule of a template.

        Source: aws/aws-cdk#987 (2018), and samples of AWS that add the same rule again.
        """
        found = client.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])
        default = [
            one["SecurityGroupRuleId"]
            for one in found["SecurityGroupRules"]
            if one["IsEgress"] and one["IpProtocol"] == "-1" and one.get("CidrIpv4") == "0.0.0.0/0"
        ]
        if gone := [one for one in default if one not in self.own]:
            client.revoke_security_group_egress(GroupId=group, SecurityGroupRuleIds=gone)

    ends: ClassVar = RANGES | {
        "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
        "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    }


class SecurityGroupIngress(SecurityGroupRule):
    resource_type = "AWS::EC2::SecurityGroupIngress"
    judged_by = "ec2:AuthorizeSecurityGroupIngress"
    way = "Ingress"
    ends: ClassVar = RANGES | {
        "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
        "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    }
