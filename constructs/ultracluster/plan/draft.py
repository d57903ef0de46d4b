"""A first environment file from a few wishes, sized by guidelines; each default with its reason."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import Any, assert_never, cast, get_args

from ruamel.yaml import YAML

from ultracluster.catalog import InstanceType, instance_type, regions
from ultracluster.catalog.address_ranges import free_block
from ultracluster.catalog.eks import node_group_limits
from ultracluster.catalog.guidelines import Guideline, guideline
from ultracluster.catalog.pcs import pcs_image_parameter
from ultracluster.config import InvalidEnvironmentError, parse
from ultracluster.config.capacity import STAND_IN
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.source import Source
from ultracluster.model import TRAITS, Traits, resolve
from ultracluster.model.addresses import LARGEST_PREFIX, address_budget
from ultracluster.plan.draft_place import (
    capacity_for,
    general_type,
    second_zone,
    zone_for,
)
from ultracluster.plan.draft_storage import Site, storage
from ultracluster.rules.network.ranges import FULL
from ultracluster.rules.zones import in_local_zone, zone_behind
from ultracluster.software import newest_release

ORCHESTRATORS: tuple[OrchestratorKind, ...] = get_args(OrchestratorKind)
_WIDTH = 106
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/:._+=@-]*[A-Za-z0-9]")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a cluster is to be; `completed` chooses what is left empty."""

    name: str = "train"
    region: str
    orchestrator: OrchestratorKind
    instance_type: str
    """Of the compute nodes, as EC2 writes it."""
    nodes: int
    zone_id: str = ""
    capacity: str = ""
    """One of `CAPACITIES`."""
    capacity_id: str = ""
    """Id of the reservation or block, or ARN of the plan; a stand-in with a comment where it is empty."""
    lustre_tib: float | None = None
    """TiB of Lustre, 1.2 TiB are 1200 GiB; 0 is none; by default what the guidelines say."""
    image: str = ""
    """AMI of the nodes; PCS's own by default."""
    admin: str = ""
    """ARN of the role that may use Kubernetes."""
    release: str = ""
    """Software release; the newest for the orchestrator's nodes by default."""
    protect: bool = False
    """Retain data, refuse to delete stacks."""
    type_reason: str = ""
    """Why it is this type and so many of it; empty where they were asked for as such."""
    zone_reason: str = "as asked for"
    capacity_reason: str = "as asked for"

    @property
    def traits(self) -> Traits:
        return TRAITS[self.orchestrator]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What the file's head tells to run."""

    plan: str
    preflight: str
    saved_as: str = ""
    """Where the file must lie for it; empty where it does."""


def completed(wishes: Wishes) -> Wishes:
    """With zone, capacity and release chosen where they are left out.

    Raises:
        NoZoneError: no zone can be chosen.
    """
    changes: dict[str, str] = {}
    if not wishes.zone_id:
        zone = zone_for(wishes.region, wishes.instance_type, wishes.orchestrator)
        changes |= {"zone_id": zone.value, "zone_reason": zone.reason}
    if not wishes.capacity:
        capacity = capacity_for(wishes.orchestrator, wishes.instance_type, wishes.nodes, wishes.region)
        changes |= {"capacity": capacity.value, "capacity_reason": capacity.reason}
    if not wishes.release:
        changes["release"] = newest_release(wishes.traits.software_family).release
    return replace(wishes, **changes)


def draft(wishes: Wishes, commands: Commands | None = None) -> str:
    """The environment file as YAML. Whether it may be deployed, the rules say.

    `commands`: what plans the file and what asks the account for it; by default for one named as itself.

    Raises:
        NoZoneError: no zone can be chosen.
    """
    wishes = completed(wishes)
    text = _text(wishes, commands)
    if wishes.nodes > _SMALL and _is_too_narrow(text):
        return _text(wishes, commands, str(free_block((IPv4Network(VPC),), LARGEST_PREFIX)))
    return text


_SMALL = 128
"""Nodes that always fit the first half of a VPC: no known type takes more than 100 addresses."""
VPC = "10.0.0.0/16"


def _is_too_narrow(text: str) -> bool:
    """Return whether the nodes of a draft fill too much of the usual subnet."""
    try:
        found = parse(Source("the new file", data=cast("Any", YAML(typ="safe")).load(text)))
    except InvalidEnvironmentError:
        return False  # the rules say why
    return address_budget(resolve(found.environment)).share >= FULL


def _text(wishes: Wishes, commands: Commands | None, node_cidr: str = "") -> str:
    type_ = instance_type(wishes.instance_type)
    sizes = guideline(wishes.nodes)
    site = Site(
        region=wishes.region, zone_id=wishes.zone_id, orchestrator=wishes.orchestrator,
        instance_type=wishes.instance_type, nodes=wishes.nodes, lustre_tib=wishes.lustre_tib,
    )  # fmt: skip
    lines = [
        *_head(wishes, type_, commands or _commands(f"{wishes.name}.yaml")),
        "",
        *_network(wishes, node_cidr),
        "",
        *storage(site, type_, sizes),
        "",
        *_orchestrator(wishes, type_),
        "",
        *_groups(wishes, type_, sizes),
        "",
        "software:",
        f'  release: "{wishes.release}"{"":<5}# the newest for nodes of {wishes.orchestrator}',
    ]
    return "\n".join(_without_doubles(lines)) + "\n"


def _commands(file: str) -> Commands:
    return Commands(plan=f"ultracluster plan {file}", preflight=f"ultracluster preflight {file}")


def _head(wishes: Wishes, instance_type: InstanceType | None, commands: Commands) -> Iterator[str]:
    accelerator = instance_type.accelerator if instance_type else None
    what = f"{accelerator.count * wishes.nodes:,} x {accelerator.name}, " if accelerator else ""
    yield f"# {what}{wishes.nodes} x {wishes.instance_type} under {wishes.orchestrator}."
    if wishes.type_reason:
        yield from _comment(f"{wishes.type_reason}.", "")
    if commands.saved_as:
        yield f"# Save it as {commands.saved_as}; then"
    yield f"# What it will be and need: {commands.plan}"
    yield f"# Whether the account can have it: {commands.preflight}"
    yield f"name: {_scalar(wishes.name)}"
    yield '# account: "111122223333"        # by default that of the credentials that deploy'
    yield f"region: {_scalar(wishes.region)}"
    protected = "protect: true" if wishes.protect else "# protect: true"
    yield f"{protected:<33}# in production: retain data, refuse to delete stacks"


def _network(wishes: Wishes, node_cidr: str) -> Iterator[str]:
    yield "network:"
    yield from _comment(f"The zone: {wishes.zone_reason}.", "  ")
    yield "  # A reservation, block or plan has a zone of its own, and that is the one to take."
    yield f"  zone_id: {_scalar(wishes.zone_id)}"
    if parent := _parent_zone(wishes):
        yield "  further_zones:"
        yield f"    {parent}:{'':<{26 - len(parent)}}# NAT gateway and what a Local Zone may not have"
        yield "      cidr: 10.0.128.0/20"
    if node_cidr:
        yield f"  cidr: {VPC:<25}# NAT, database and control plane"
        yield f"  node_cidr: {node_cidr:<20}# a second block of the VPC, for nodes; it cannot change later"
    else:
        yield f"  # cidr: {VPC:<23}# nodes get its first half; it cannot change later"
    yield "  # egress: closed               # no route to the internet; needs a mirror of the software"


def _parent_zone(wishes: Wishes) -> str | None:
    """The zone of the Region for head, login and system nodes where the cluster is in a Local Zone."""
    home = regions().get(wishes.region)
    if home is None or not in_local_zone(home, wishes.zone_id):
        return None
    return zone_behind(home, wishes.zone_id)


def _orchestrator(wishes: Wishes, instance_type: InstanceType | None) -> Iterator[str]:
    yield "orchestrator:"
    yield f"  kind: {wishes.orchestrator}"
    match wishes.orchestrator:
        case "hyperpod-slurm" | "pcs":
            pass
        case "parallelcluster":
            if wishes.capacity == "capacity-block":
                yield "  scaledown_minutes: -1          # nodes of a block stay"
            if instance_type and instance_type.ultraserver:
                yield "  deploy_with: pcluster          # `ultracluster export parallelcluster` writes it"
        case "eks" | "hyperpod-eks":
            yield from _control_plane(wishes)
        case _ as never:
            assert_never(never)


def _control_plane(wishes: Wishes) -> Iterator[str]:
    if zone := second_zone(wishes.region, wishes.zone_id):
        yield from _comment(f"EKS requires its control plane in two zones; {zone.reason}.", "  ")
        yield f"  second_zone_id: {zone.value}"
    yield "  admins:                        # only they can use the cluster: who deploys it cannot"
    if wishes.admin:
        yield f"    - {_scalar(wishes.admin)}"
    else:
        yield "    # the role of your platform engineers, which must exist:"
        yield "    - arn:aws:iam::111122223333:role/platform-engineers"


def _groups(wishes: Wishes, instance_type: InstanceType | None, sizes: Guideline) -> Iterator[str]:
    yield "node_groups:"
    arm = instance_type is not None and instance_type.architecture == "arm64"
    hyperpod = wishes.traits.hyperpod

    zone = _parent_zone(wishes) or wishes.zone_id

    def general(size: str) -> str:
        return general_type(size, wishes.region, zone, hyperpod=hyperpod, arm=arm)

    if wishes.traits.kubernetes:
        # EC2's own node group, on HyperPod, too; its add-ons are there for both architectures
        kind = general_type("2xlarge", wishes.region, zone, hyperpod=False, system=True)
        yield from _group("system", "system", kind, sizes.system_nodes, wishes, "the add-ons of Kubernetes")
    else:
        if "controller" in wishes.traits.roles:
            yield from _group("controller", "controller", general(sizes.controller), 1, wishes, "slurmctld")
        yield from _group("login", "login", general(sizes.login), sizes.login_nodes, wishes, "people log in")
    parts = _compute_groups(wishes)
    for name, count in parts.items():
        why = (
            f"EKS has {node_group_limits()[1]} nodes in a group" if len(parts) > 1 and name == "train" else ""
        )
        yield from _group(name, "compute", wishes.instance_type, count, wishes, why)
        if wishes.traits.slurm:
            yield "    partition: train"
        if wishes.traits.hyperpod:
            yield f"    # min_count: {wishes.nodes:<19}# all nodes or none"
            yield "    # two hours of tests before the first job:"
            yield "    # deep_health_checks: [instance-stress, instance-connectivity]"
        yield from _capacity(wishes)


def _compute_groups(wishes: Wishes) -> dict[str, int]:
    """Names of the compute groups with their nodes: several where a managed node group of EKS holds fewer."""
    most = node_group_limits()[1] if wishes.orchestrator == "eks" else wishes.nodes
    number = math.ceil(wishes.nodes / most)
    each, more = divmod(wishes.nodes, number)
    return {f"train{place + 1 if place else ''}": each + (place < more) for place in range(number)}


def _group(name: str, role: str, kind: str, count: int, wishes: Wishes, why: str = "") -> Iterator[str]:
    yield f"  {name}:{'':<{30 - len(name)}}# {why}" if why else f"  {name}:"
    yield f"    role: {role}"
    yield f"    instance_type: {_scalar(kind)}"
    yield f"    count: {count}"
    if role != "compute" and (parent := _parent_zone(wishes)):
        yield f"    zone_id: {parent}"
    if wishes.traits.names_images:
        yield f"    image: {_scalar(wishes.image or _pcs_image(kind))}"


def _pcs_image(kind: str) -> str:
    """AWS's own image for PCS: the parameter is read when the group is made."""
    type_ = instance_type(kind)
    return pcs_image_parameter((type_.architecture if type_ else "") or "x86_64")


def _capacity(wishes: Wishes) -> Iterator[str]:
    yield "    capacity:"
    yield from _comment(f"{_first_large(wishes.capacity_reason)}.", "      ")
    yield f"      kind: {wishes.capacity}"
    if wishes.capacity in ("reservation", "capacity-block"):
        yield f"      id: {_scalar(wishes.capacity_id or STAND_IN)}" + _stands_in(
            wishes.capacity_id, "id of yours"
        )
    if wishes.capacity == "capacity-block" and wishes.traits.until_block:
        yield f"      # Until the block begins: count: 0 and max_count: {wishes.nodes} above."
    if wishes.capacity == "training-plan":
        plan = f"arn:aws:sagemaker:{wishes.region}:111122223333:training-plan/{wishes.name}"
        yield f"      arn: {_scalar(wishes.capacity_id or plan)}" + _stands_in(
            wishes.capacity_id, "ARN of yours"
        )


def _scalar(text: str) -> str:
    """In quotes where YAML would read anything but the text."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text)


def _stands_in(given: str, what: str) -> str:
    return "" if given else f"  # stands in for the {what}"


def _comment(text: str, indent: str) -> Iterator[str]:
    """A sentence as lines of a comment."""
    for line in textwrap.wrap(text, _WIDTH - len(indent) - 2, break_long_words=False):
        yield f"{indent}# {line}"


def _first_large(text: str) -> str:
    return text[:1].upper() + text[1:]


def _without_doubles(lines: list[str]) -> Iterator[str]:
    """A part that is empty leaves one blank line, not two."""
    for number, line in enumerate(lines):
        if line or (number and lines[number - 1]):
            yield line


__all__ = ["ORCHESTRATORS", "Commands", "Wishes", "completed", "draft"]
