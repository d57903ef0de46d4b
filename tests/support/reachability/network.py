"""May one open a connection to another? Egress rules of the one, ingress rules of the other, and a route."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from iam_proof.resolved import Resolved

from reachability.groups import ALL, NOWHERE, Rule, Traffic, groups_of, unknown
from reachability.places import UNDERSTOOD, Place, places_of
from reachability.reading import noted
from reachability.routes import EVERYWHERE, Routes, Subnet
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.model.endpoints import made_endpoints

READ = {
    "AWS::EC2::EIP", "AWS::EC2::FlowLog", "AWS::EC2::InternetGateway", "AWS::EC2::LaunchTemplate",
    "AWS::EC2::NatGateway", "AWS::EC2::PlacementGroup", "AWS::EC2::Route", "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet", "AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::VPC", "AWS::EC2::VPCEndpoint",
    "AWS::EC2::VPCGatewayAttachment",
}  # fmt: skip
"""Types of EC2 that are read here, or say nothing about who reaches whom."""
NETWORKS = (
    "AWS::EC2::", "AWS::NetworkFirewall::", "AWS::NetworkManager::", "AWS::Route53Profiles::",
    "AWS::Route53Resolver::", "AWS::ServiceDiscovery::", "AWS::VpcLattice::",
)  # fmt: skip
"""Types that make a network, change its routes or its names."""
NAMING = {"AWS::IAM::Policy", "AWS::IAM::Role", "AWS::KMS::Key", "AWS::S3::BucketPolicy"}
"""Types that name a VPC, a subnet or a group only as a condition."""
ELSEWHERE = {"ResourceConfigurationArn", "ServiceNetworkArn", "ServiceRegion"}
"""Properties of an endpoint that lead to others than AWS, or to another Region."""
TELLING = ("SecurityGroupIds", "SecurityGroups", "SubnetId", "SubnetIds", "Subnets", "VPCSecurityGroups")
"""Properties by which a resource says that it is in a network."""
DIRECTORY = "directory"
"""Networks of the directory's servers, which a way that is not ours leads to."""
OUTSIDE = ("internet", "gateway:s3", "gateway:dynamodb")


@dataclass(frozen=True)
class Opening:
    """Something that rules and routes let pass. Ends are places, or words for what is none."""

    source: Place | str
    target: Place | str
    traffic: Traffic
    rules: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}, {self.traffic} ({', '.join(self.rules)})"


class NetworkOf:
    """The network that the templates of one environment make, with everybody in it."""

    def __init__(self, made: Resolved, environment: Environment) -> None:
        self.environment = environment
        self._made = made
        self.unjudged: list[str] = []
        """What could not be understood: each line is a finding."""
        self.groups = groups_of(made, self.unjudged)
        self.routes = Routes(made, self.unjudged)
        self.places: list[Place] = []
        for one in places_of(made, environment, self.unjudged):
            with noted(self.unjudged, f"{one} ({one.resource})"):
                self.places.append(self._known(one))

    def _known(self, place: Place) -> Place:
        """The place among groups and subnets; those of another's network are findings, and lead nowhere."""
        if not place.subnets:
            raise LookupError("it names no subnet")
        for one in place.subnets:
            if one not in self.routes.subnets:
                self.unjudged.append(
                    f"{place} ({place.resource}) is in subnet {one}, which no template makes"
                )
                self.routes.subnets[one] = Subnet(str(one), NOWHERE, f"the VPC of {one}", False)
        for one in place.groups:
            if not self.groups.setdefault(one, unknown(one)).known:
                self.unjudged.append(f"{place} ({place.resource}) is in {self.groups[one].name}")
        return place if place.groups else self._with_default_group(place)

    def _with_default_group(self, place: Place) -> Place:
        """What names no group gets the default one of its VPC (EC2, FSx, RDS and VPC endpoints alike)."""
        vpc = self.routes.subnets[place.subnets[0]].vpc
        (group,) = (
            self._made.attribute(stack, logical, "DefaultSecurityGroup")
            for stack, logical, _ in self._made.resources("AWS::EC2::VPC")
            if self._made.ref(stack, logical) == vpc
        )
        return Place(place.kind, place.name, (group,), place.subnets, place.resource)

    def closed(self, source: Place, target: Place, traffic: Traffic, *, efa: bool = False) -> list[str]:
        """Why `source` cannot open such a connection to `target`; empty if it can.

        Args:
            efa: as EFA requires it: all traffic by rules that name groups, and for each group of the source.
        """
        found = [
            f"subnet {a.name} and subnet {b.name} are in two VPCs"
            for a in map(self.routes.subnets.__getitem__, source.subnets)
            for b in map(self.routes.subnets.__getitem__, target.subnets)
            if a.vpc != b.vpc
        ]
        if efa:
            return found + [why for one in source.groups for why in self._without_efa(one, target)]
        if not any(rule.traffic.covers(traffic) for rule in self._out(source.groups, target)):
            found.append(
                f"no egress rule of {self._names(source.groups)} towards {self._names(target.groups)}"
            )
        if not any(rule.traffic.covers(traffic) for rule in self._in(target.groups, source)):
            found.append(f"no ingress rule of {self._names(target.groups)} for {self._names(source.groups)}")
        return found

    def _without_efa(self, group: str, target: Place) -> Iterator[str]:
        """EC2 User Guide, "Get started with EFA and MPI": a rule to 0.0.0.0/0 does not take the place of one
        that names the group."""

        def named(rules: Iterable[Rule], peers: Iterable[str]) -> bool:
            return any(rule.peer in peers and rule.traffic.protocol == ALL for rule in rules)

        # an interface that shares the group must reach it by its own rules, whatever other groups allow
        peers = (group,) if group in target.groups else target.groups
        if not named(self.groups[group].egress, peers):
            yield f"no egress rule for all traffic of {self._names([group])} to {self._names(peers)}"
        if not any(named(self.groups[one].ingress, (group,)) for one in peers):
            yield f"no ingress rule for all traffic of {self._names(peers)} from {self._names([group])}"

    def no_way_out(self, source: Place, target: str, traffic: Traffic) -> list[str]:
        """Why `source` cannot reach `internet` or the gateway of a service; empty if it can."""
        if target == DIRECTORY:
            found, peers = [], self._directory()
        else:
            routes = {self.routes.missing(subnet, target) for subnet in source.subnets}
            found, peers = sorted(why for why in routes if why), (EVERYWHERE, target)
        rules = [rule for one in source.groups for rule in self.groups[one].egress if rule.peer in peers]
        if not any(rule.traffic.covers(traffic) for rule in rules):
            found.append(f"no egress rule of {self._names(source.groups)} to {target}")
        return found

    def openings(self) -> Iterator[Opening]:
        """Everything that may pass, whoever needs it: between places, from and to what is no place."""
        for source in self.places:
            yield from self._outwards(source)
            for target in self.places:
                yield from self._between(source, target)
        for target in self.places:
            for group in target.groups:
                for rule in self.groups[group].ingress:
                    if (whence := self._no_place(rule.peer)) and not whence.startswith("gateway:"):
                        yield Opening(whence, target, rule.traffic, (rule.resource,))
        for stack, logical, _ in self._made.resources("AWS::EKS::Cluster"):
            with noted(self.unjudged, f"{stack}/{logical}"):
                if self._told(stack, logical).get("ResourcesVpcConfig", {}).get("EndpointPublicAccess", True):
                    yield Opening("internet", "api", Traffic("tcp", 443, 443), (f"{stack}/{logical}",))
        for stack, logical, _ in self._made.resources("AWS::RDS::DBInstance"):
            if self._told(stack, logical).get("PubliclyAccessible"):
                yield Opening("internet", "database", Traffic("tcp", 3306, 3306), (f"{stack}/{logical}",))

    def _between(self, source: Place, target: Place) -> Iterator[Opening]:
        found: dict[Traffic, Opening] = {}
        if self.routes.subnets[source.subnets[0]].vpc != self.routes.subnets[target.subnets[0]].vpc:
            return
        for out in self._out(source.groups, target):
            for into in self._in(target.groups, source):
                if traffic := out.traffic.common(into.traffic):
                    found.setdefault(traffic, Opening(source, target, traffic, (out.resource, into.resource)))
        for one in found:
            if not any(other != one and other.covers(one) for other in found):
                yield found[one]

    def _outwards(self, source: Place) -> Iterator[Opening]:
        for group in source.groups:
            for rule in self.groups[group].egress:
                whither = self._no_place(rule.peer)
                if whither is None or rule.peer == NOWHERE:
                    continue
                # without a way to the internet a rule to everywhere still reaches the gateways of services
                more = OUTSIDE[1:] if rule.peer == EVERYWHERE and not self._leads(source, whither) else ()
                for to in (whither, *more):
                    if to not in OUTSIDE or self._leads(source, to):
                        yield Opening(source, to, rule.traffic, (rule.resource,))

    def _leads(self, source: Place, target: str) -> bool:
        return any(self.routes.missing(subnet, target) is None for subnet in source.subnets)

    def _no_place(self, peer: str) -> str | None:
        """What a rule speaks of if it is no group of a place: `vpc`, `internet`, `gateway:s3`, a group."""
        if peer in self.groups or "/" not in peer:
            if any(peer in place.groups for place in self.places):
                return None
            return peer if peer.startswith("gateway:") else f"{self._names([peer])}, in which nobody is"
        if peer in self._directory():
            return DIRECTORY
        network = ip_network(peer)
        return "vpc" if any(_within(str(network), one) for one in self.routes.vpcs.values()) else "internet"

    def _directory(self) -> tuple[str, ...]:
        asked = self.environment.directory
        return tuple(str(one) for one in asked.server_networks) if asked else ()

    def faults(self) -> Iterator[str]:
        """What is wrong whatever anybody needs."""
        yield from self._strangers()
        for name in self.environment.node_groups:
            if not any(one.name.split(",")[0] == name for one in self.places):
                yield f"node group {name} is in no network"
        for stack, logical, _ in self._made.resources("AWS::EC2::LaunchTemplate"):
            with noted(self.unjudged, f"{stack}/{logical}"):
                data = self._told(stack, logical).get("LaunchTemplateData", {})
                if any(one.get("AssociatePublicIpAddress") for one in data.get("NetworkInterfaces", [])):
                    yield f"{stack}/{logical} asks for a public address"
        yield from self.routes.faults({subnet for one in self.places for subnet in one.subnets})
        closed = self.environment.network.egress == "closed"
        if closed:
            yield from (f"{one} is attached to a closed network" for one in self.routes.attached)
        for group in self.groups.values():
            if group.name.startswith("default group"):
                yield from (f"{group.name} still lets traffic in" for _ in group.ingress)
                yield from (f"{group.name} still lets traffic out" for _ in group.egress)
            for rule in group.ingress if group.ours else ():
                if self._no_place(rule.peer) == "internet":
                    yield f"{rule.resource} lets {rule.peer} in, {rule.traffic}"
            for rule in group.egress if group.ours and closed else ():
                if self._no_place(rule.peer) == "internet" and rule.peer != NOWHERE:
                    yield f"{rule.resource} lets {rule.traffic} out to {rule.peer} in a closed network"
        yield from dict.fromkeys(self.unjudged)

    def _strangers(self) -> Iterator[str]:
        """Resources that stand in the network or change whom it reaches, and that nothing here reads."""
        region = self.environment.region
        services = {
            f"com.amazonaws.{region}.{one.service}" for one in made_endpoints(resolve(self.environment))
        }
        network = self._network_ids()
        for stack, logical, resource in _all(self._made):
            kind, name = resource["Type"], f"{stack}/{logical}"
            told = self._told(stack, logical)
            ours = kind.startswith(NETWORKS)
            names = any(f"'{word}'" in str(told) for word in TELLING) or any(
                one in str(told) for one in network
            )
            if kind == "Custom::AWS" and re.search(r'"action":"(revokeSecurityGroup|describe)', str(told)):
                names = False  # read where groups are
            if (ours and kind not in READ) or (names and not ours and kind not in {*UNDERSTOOD, *NAMING}):
                yield f"{name} is of type {kind}, of which nobody here knows whom it reaches"
            if kind == "AWS::EC2::VPCEndpoint" and (
                told.get("ServiceName") not in services or told.keys() & ELSEWHERE
            ):
                service = told.get("ServiceName", "no service of AWS")
                yield f"{name} is an endpoint of {service} that nobody needs"

    def _network_ids(self) -> set[str]:
        """What resources of other types call the network by."""
        groups = {one for one, group in self.groups.items() if group.known}
        return {*groups, *self.routes.vpcs, *self.routes.subnets, *self.routes.tables}

    def _told(self, stack: str, logical: str) -> dict[str, Any]:
        """Its properties; those that cannot be resolved are a finding."""
        with noted(self.unjudged, f"{stack}/{logical}"):
            return self._made.properties(stack, logical)
        return {}

    def _out(self, groups: Iterable[str], target: Place) -> list[Rule]:
        return [
            rule for one in groups for rule in self.groups[one].egress if self._matches(rule.peer, target)
        ]

    def _in(self, groups: Iterable[str], source: Place) -> list[Rule]:
        return [
            rule for one in groups for rule in self.groups[one].ingress if self._matches(rule.peer, source)
        ]

    def _matches(self, peer: str, place: Place) -> bool:
        if "/" not in peer:
            return peer in place.groups
        return all(_within(self.routes.subnets[one].cidr, peer) for one in place.subnets)

    def _names(self, groups: Iterable[str]) -> str:
        return " and ".join(self.groups[one].name if one in self.groups else one for one in groups)


def _within(inner: str, outer: str) -> bool:
    a, b = ip_network(inner), ip_network(outer)
    return a.version == b.version and a.subnet_of(b)  # type: ignore[arg-type]


def _all(made: Resolved) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for stack, template in made.templates.items():
        for logical, resource in template["Resources"].items():
            yield stack, logical, resource
