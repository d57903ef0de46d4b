"""Security groups of templates, with the rules that are written into them and those that are resources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from iam_proof.resolved import Resolved

from reachability.reading import noted

ALL = "-1"
NOWHERE = "255.255.255.255/32"
"""The peer of the CDK's rule for "no egress": an address that nobody has."""
PROTOCOLS = {"6": "tcp", "17": "udp", "1": "icmp"}
PEERS = (
    "CidrIp", "CidrIpv6", "SourceSecurityGroupId", "DestinationSecurityGroupId", "SourcePrefixListId",
    "DestinationPrefixListId",
)  # fmt: skip


@dataclass(frozen=True, order=True)
class Traffic:
    """An IP protocol with a range of ports; `-1` is everything."""

    protocol: str = ALL
    first: int = 0
    last: int = 65535

    def covers(self, other: Traffic) -> bool:
        """Whether all of `other` is in it."""
        if self.protocol == ALL:
            return True
        return self.protocol == other.protocol and self.first <= other.first and other.last <= self.last

    def common(self, other: Traffic) -> Traffic | None:
        """What is in both."""
        if ALL in (self.protocol, other.protocol):
            return other if self.protocol == ALL else self
        first, last = max(self.first, other.first), min(self.last, other.last)
        return (
            Traffic(self.protocol, first, last) if self.protocol == other.protocol and first <= last else None
        )

    def __str__(self) -> str:
        if self.protocol == ALL:
            return "all traffic"
        return f"{self.protocol} {self.first}" + (f"-{self.last}" if self.last != self.first else "")


@dataclass(frozen=True)
class Rule:
    """One rule of a group. `peer` is the id of a group, a network, or `gateway:s3` for a prefix list."""

    peer: str
    traffic: Traffic
    resource: str


@dataclass
class Group:
    """A security group, and where it comes from: `stack/logical id`."""

    name: str
    ingress: list[Rule] = field(default_factory=list[Rule])
    egress: list[Rule] = field(default_factory=list[Rule])
    ours: bool = True
    """False of the group that EKS makes with a cluster: its rules are AWS's."""
    known: bool = True
    """False of a group of another's: whatever its rules are, no template shows them."""


def groups_of(made: Resolved, unjudged: list[str]) -> dict[str, Group]:
    """All groups by id: those of templates, the default groups of VPCs, and those that EKS makes."""
    lists = prefix_lists(made)
    found: dict[str, Group] = {}
    for kind, read in (
        ("AWS::EC2::SecurityGroup", _written),
        ("AWS::EC2::VPC", _default),
        ("AWS::EKS::Cluster", _of_eks),
    ):
        for stack, logical, _ in made.resources(kind):
            with noted(unjudged, f"{stack}/{logical}"):
                group_id, group = read(made, stack, logical, lists)
                found[group_id] = group
    for way in ("Ingress", "Egress"):
        for stack, logical, _ in made.resources(f"AWS::EC2::SecurityGroup{way}"):
            with noted(unjudged, f"{stack}/{logical}"):
                told, name = made.properties(stack, logical), f"{stack}/{logical}"
                group = found.setdefault(told["GroupId"], unknown(told["GroupId"]))
                (group.ingress if way == "Ingress" else group.egress).append(_rule(told, name, lists))
    return found


def unknown(group_id: str) -> Group:
    """A group that no template makes: nobody here knows its rules."""
    return Group(f"group {group_id}, which no template makes", known=False)


def _written(made: Resolved, stack: str, logical: str, lists: Mapping[str, str]) -> tuple[str, Group]:
    told, name = made.properties(stack, logical), f"{stack}/{logical}"
    # without a list EC2 adds all traffic to everywhere
    out = told.get("SecurityGroupEgress", [{"CidrIp": "0.0.0.0/0", "IpProtocol": ALL}])
    return made.attribute(stack, logical, "GroupId"), Group(
        name,
        [_rule(one, name, lists) for one in told.get("SecurityGroupIngress", [])],
        [_rule(one, name, lists) for one in out],
    )


def _default(made: Resolved, stack: str, logical: str, _: Mapping[str, str]) -> tuple[str, Group]:
    """VPC User Guide, "Default security groups for your VPCs"."""
    group_id, name = made.attribute(stack, logical, "DefaultSecurityGroup"), f"{stack}/{logical}"
    revoked, name = set(_revoked(made, group_id)), f"default group of {name}"
    return group_id, Group(
        name,
        [] if "Ingress" in revoked else [Rule(group_id, Traffic(), name)],
        [] if "Egress" in revoked else [Rule("0.0.0.0/0", Traffic(), name)],
    )


def _of_eks(made: Resolved, stack: str, logical: str, _: Mapping[str, str]) -> tuple[str, Group]:
    """EKS User Guide, "View Amazon EKS security group requirements for clusters"."""
    group_id = made.attribute(stack, logical, "ClusterSecurityGroupId")
    name = f"the group that EKS makes with {stack}/{logical}"
    itself, everywhere = Rule(group_id, Traffic(), name), Rule("0.0.0.0/0", Traffic(), name)
    return group_id, Group(name, [itself], [itself, everywhere], ours=False)


def prefix_lists(made: Resolved) -> dict[str, str]:
    """`gateway:s3` by what a template calls the id of the prefix list, for which a deploy asks by name."""
    found: dict[str, str] = {}
    for stack, logical, _ in made.resources("Custom::AWS"):
        asked = re.search(r'"com\.amazonaws\.[a-z0-9-]+\.([a-z0-9]+)"', _create(made, stack, logical))
        if asked and "describeManagedPrefixLists" in _create(made, stack, logical):
            list_id = made.attribute(stack, logical, "PrefixLists.0.PrefixListId")
            found[list_id] = f"gateway:{asked[1]}"
    return found


def _revoked(made: Resolved, group_id: str) -> Iterator[str]:
    """`Ingress` and `Egress`, as far as the deploy revokes the rule that a default group has there."""
    for stack, logical, _ in made.resources("Custom::AWS"):
        text = _create(made, stack, logical)
        if group_id not in text or "revokeSecurityGroup" not in text:
            continue
        call = json.loads(text)
        (rule,) = call["parameters"]["IpPermissions"]
        way = str(call["action"]).removeprefix("revokeSecurityGroup")
        peer = (
            {"UserIdGroupPairs": [{"GroupId": group_id}]}
            if way == "Ingress"
            else {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        )
        if call["parameters"]["GroupId"] == group_id and rule == {"IpProtocol": ALL, **peer}:
            yield way


def _create(made: Resolved, stack: str, logical: str) -> str:
    return str(made.properties(stack, logical).get("Create", ""))


def _rule(told: Mapping[str, Any], resource: str, lists: Mapping[str, str]) -> Rule:
    peer = next(str(told[key]) for key in PEERS if key in told)
    protocol = PROTOCOLS.get(str(told["IpProtocol"]), str(told["IpProtocol"]))
    if protocol == ALL or "FromPort" not in told:
        return Rule(lists.get(peer, peer), Traffic(protocol), resource)
    return Rule(
        lists.get(peer, peer), Traffic(protocol, int(told["FromPort"]), int(told["ToPort"])), resource
    )
