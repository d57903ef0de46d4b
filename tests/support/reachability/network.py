"""May one open a connection to another? Egress rules of the one, ingress rules of the other, and a route."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from iam_proof.resolved import Resolved

from reachability.groups import ALL, NOWHERE, Rule, Traffic, groups_of
from reachability.places import UNDERSTOOD, Place, places_of
from reachability.routes import EVERYWHERE, Routes
from ultracluster.config import Environment

READ = {
    "AWS::EC2::EIP", "AWS::EC2::FlowLog", "AWS::EC2::InternetGateway", "AWS::EC2::LaunchTemplate",
    "AWS::EC2::NatGateway", "AWS::EC2::PlacementGroup", "AWS::EC2::Route", "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet", "AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::VPC", "AWS::EC2::VPCEndpoint",
    "AWS::EC2::VPCGatewayAttachment",
}  # fmt: skip
"""Types of EC2 that are read here, or say nothing about who reaches whom."""
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
        self.groups = groups_of(made)
        self.routes = Routes(made)
        self.places = [self._with_group(one) for one in places_of(made, environment)]

    def _with_group(self, place: Place) -> Place:
        """What names no group gets the default one of its VPC (EC2, FSx, RDS and VPC endpoints alike)."""
        if place.groups:
            return place
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
            if self._made.properties(stack, logical)["ResourcesVpcConfig"].get("EndpointPublicAccess"):
                api = next(one for one in self.places if one.kind == "api")
                yield Opening("internet", api, Traffic("tcp", 443, 443), (f"{stack}/{logical}",))
        for stack, logical, _ in self._made.resources("AWS::RDS::DBInstance"):
            if self._made.properties(stack, logical).get("PubliclyAccessible"):
                database = next(one for one in self.places if one.kind == "database")
                yield Opening("internet", database, Traffic("tcp", 3306, 3306), (f"{stack}/{logical}",))

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
        for stack, logical, resource in _all(self._made):
            kind, told = resource["Type"], str(resource.get("Properties", {}))
            names = any(f"'{word}'" in told for word in TELLING)
            ours = kind.startswith("AWS::EC2::")
            if (ours and kind not in READ) or (names and not ours and kind not in UNDERSTOOD):
                yield f"{stack}/{logical} is of type {kind}, of which nobody here knows whom it reaches"
        for name in self.environment.node_groups:
            if not any(one.name.split(",")[0] == name for one in self.places):
                yield f"node group {name} is in no network"
        for stack, logical, _ in self._made.resources("AWS::EC2::LaunchTemplate"):
            data = self._made.properties(stack, logical)["LaunchTemplateData"]
            if any(one.get("AssociatePublicIpAddress") for one in data.get("NetworkInterfaces", [])):
                yield f"{stack}/{logical} asks for a public address"
        yield from self.routes.faults({subnet for one in self.places for subnet in one.subnets})
        for group in self.groups.values():
            if group.name.startswith("default group"):
                yield from (f"{group.name} still lets traffic in" for _ in group.ingress)
                yield from (f"{group.name} still lets traffic out" for _ in group.egress)
            for rule in group.ingress if group.ours else ():
                if self._no_place(rule.peer) == "internet":
                    yield f"{rule.resource} lets {rule.peer} in, {rule.traffic}"
            for rule in group.egress if group.ours and self.environment.network.egress == "closed" else ():
                if self._no_place(rule.peer) == "internet" and rule.peer != NOWHERE:
                    yield f"{rule.resource} lets {rule.traffic} out to {rule.peer} in a closed network"

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
