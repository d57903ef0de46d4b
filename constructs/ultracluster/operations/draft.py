"""A first environment file from a few wishes, sized by the guidelines, with comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from ultracluster.catalog import InstanceType, instance_type, offered_zone_ids, region, regions
from ultracluster.catalog.eks import refused_zones
from ultracluster.catalog.fsx import lustre as lustre_deployment
from ultracluster.catalog.fsx import lustre_offer, openzfs_deployments
from ultracluster.catalog.guidelines import Guideline, checkpoint_share, general_family, guideline
from ultracluster.catalog.pcs import pcs_image_parameter
from ultracluster.catalog.sizing import lustre_write_mbps_per_tib, model_state
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM, OrchestratorKind

CAPACITIES = ("on-demand", "spot", "reservation", "capacity-block", "training-plan")
ORCHESTRATORS: tuple[OrchestratorKind, ...] = get_args(OrchestratorKind)
RESERVATION = "cr-0123456789abcdef0"
"""Stands where a reservation or block must be named and none is bought yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a cluster is to be."""

    name: str
    region: str
    zone_id: str
    orchestrator: OrchestratorKind
    instance_type: str
    """Of the compute nodes, as EC2 writes it."""
    nodes: int
    capacity: str
    """One of `CAPACITIES`."""
    capacity_id: str = ""
    """Id of the reservation or block, or ARN of the plan; a stand-in with a comment where it is empty."""
    lustre_tib: float | None = None
    """TiB of Lustre, 1.2 TiB are 1200 GiB; 0 is none; by default what the guidelines say."""
    image: str = ""
    """AMI of the nodes, which PCS asks for."""
    admin: str = ""
    """ARN of the role that may use Kubernetes."""
    release: str
    """Software release."""


def zones_for(region_name: str, type_name: str) -> tuple[str, ...]:
    """Zone ids of a Region, those first that are known to offer the type.

    Local Zones are last, whatever they offer: an account opts in to each, so that nobody but the user chooses
    one. `only_in_local_zones` says where that leaves nothing.
    """
    offered = offered_zone_ids(type_name, region_name)
    found = region(region_name)
    known = found.zone_ids if found else ()
    return tuple(sorted(dict.fromkeys((*offered, *known)), key=_is_local))


def only_in_local_zones(region_name: str, type_name: str) -> bool:
    """Whether no Availability Zone of the Region is known to have the type, and a Local Zone is."""
    offered = offered_zone_ids(type_name, region_name)
    if offered:
        return all(map(_is_local, offered))
    known = instance_type(type_name)
    places = known.capacity_block_regions if known else ()
    return bool(places) and all(place.startswith(f"{region_name}-") for place in places)


def regions_for(type_name: str) -> tuple[str, ...]:
    """Regions known to offer a type; all Regions for a type that is known in none."""
    known = instance_type(type_name)
    return (known.regions if known else ()) or tuple(regions())


def capacity_for(orchestrator: OrchestratorKind, type_name: str) -> str:
    """The capacity that is taken where none is asked for: on demand, or what the type is sold by."""
    known = instance_type(type_name)
    if known is None or not known.ultraserver:
        return "on-demand"
    return "training-plan" if orchestrator in HYPERPOD else "capacity-block"


def draft(wishes: Wishes) -> str:
    """The environment file as YAML. Whether it may be deployed, the rules say."""
    known = instance_type(wishes.instance_type)
    sizes = guideline(wishes.nodes)
    lines = [
        *_head(wishes, known),
        "",
        *_network(wishes),
        "",
        *_storage(wishes, known, sizes),
        "",
        *_orchestrator(wishes, known),
        "",
        *_groups(wishes, known, sizes),
        "",
        "software:",
        f'  release: "{wishes.release}"',
    ]
    return "\n".join(_without_doubles(lines)) + "\n"


def _head(wishes: Wishes, known: InstanceType | None) -> Iterator[str]:
    accelerator = known.accelerator if known else None
    what = f"{accelerator.count * wishes.nodes:,} x {accelerator.name}, " if accelerator else ""
    yield f"# {what}{wishes.nodes} x {wishes.instance_type} under {wishes.orchestrator}."
    yield f"# What it will be and need: ultracluster plan {wishes.name} --model 70B"
    yield f"# Whether the account can have it: ultracluster preflight {wishes.name}"
    yield f"name: {wishes.name}"
    yield '# account: "111122223333"        # by default that of the credentials that deploy'
    yield f"region: {wishes.region}"
    yield "# protect: true                  # in production: retain data, refuse to delete stacks"


def _network(wishes: Wishes) -> Iterator[str]:
    yield "network:"
    if offered := offered_zone_ids(wishes.instance_type, wishes.region):
        yield f"  # Zones known to offer {wishes.instance_type}: {', '.join(offered)}."
        yield "  # A reservation, block or plan has a zone of its own, and that is the one to take."
    else:
        yield f"  # Which zones offer {wishes.instance_type} is not known; `ultracluster preflight` asks."
    yield f"  zone_id: {wishes.zone_id}"
    yield "  # cidr: 10.0.0.0/16            # nodes get its first half; it cannot change later"
    yield "  # egress: closed               # no route to the internet; needs a mirror of the software"


def _storage(wishes: Wishes, known: InstanceType | None, sizes: Guideline) -> Iterator[str]:
    lines = [
        *_lustre(wishes, known, sizes),
        *_home(wishes, sizes),
        *_accounting(wishes, sizes),
    ]
    yield from ("storage:", *lines) if lines else ()


def _lustre(wishes: Wishes, known: InstanceType | None, sizes: Guideline) -> Iterator[str]:
    if wishes.lustre_tib == 0:
        return
    offer = lustre_offer(wishes.region, wishes.zone_id, local=_is_local(wishes.zone_id))
    sold = offer.deployments if offer else ()
    other = next((name for name in ("persistent-2-ssd", "persistent-1-ssd") if name in sold), None)
    deployment, limited = other or "persistent-2-ssd", offer.limited if offer else ()
    takes_efa = deployment == "persistent-2-ssd" and not limited and wishes.orchestrator != "eks"
    efa = bool(takes_efa and known and known.lustre_efa_client)
    wanted = _checkpoint_mbps(wishes, known, sizes)
    tib = sizes.lustre_tib if wishes.lustre_tib is None else wishes.lustre_tib
    if wishes.lustre_tib is None and known is not None and known.accelerator is None:
        tib = min(tib, 9.6)
    grows = wishes.lustre_tib is None
    capacity, tier = _smallest(deployment, tib, wanted, efa=efa, grows=grows, tiers=limited)
    written = capacity / 1000 * (lustre_write_mbps_per_tib(deployment, tier) or 0)
    yield f"  # {written:,.0f} MB/s. Wanted: {wanted:,.0f}, which writes a checkpoint in about"
    yield f"  # {sizes.checkpoint_minutes:g} minutes; `ultracluster plan --model` has the time for yours."
    if offer and other is None:
        yield f"  # AWS lists no Lustre file system for {wishes.zone_id}; `--lustre-tib 0` leaves it out."
    elif limited:
        alone = ", ".join(map(str, limited))
        yield f"  # FSx has persistent-2-ssd here with {alone} MB/s per TiB only, and over TCP."
    elif offer and deployment != "persistent-2-ssd":
        yield "  # FSx does not have persistent-2-ssd here."
    elif wishes.orchestrator == "eks" and known and known.lustre_efa_client:
        yield "  # Over TCP: with `efa: true` nodes want a release with the digest of FSx's set-up script."
    elif not efa and known and known.efa_interfaces:
        yield f"  # Over TCP: {wishes.instance_type} is no EFA client of Lustre."
    yield "  lustre:"
    yield f"    deployment: {deployment}"
    yield f"    capacity_gib: {capacity}"
    yield f"    throughput_mbps_per_tib: {tier}"
    if efa:
        yield "    efa: true                    # only at creation"
    yield "    # data_repositories:           # folders that are tied to S3"
    yield "    #   /checkpoints:"
    yield "    #     prefix: checkpoints/"
    yield "    #     export_events: [new, changed]"


def _smallest(
    deployment: str, tib: float, wanted: float, *, efa: bool, grows: bool, tiers: Sequence[int] = ()
) -> tuple[int, int]:
    """The least capacity in GiB that is at least `tib` and gives `wanted` MB/s, and its lowest tier.

    Where none does it is the greatest throughput. `grows`: more capacity may be taken for more throughput.
    `tiers`: the only ones there are, if not all.
    """
    facts = lustre_deployment(deployment)
    found: list[tuple[int, int]] = []
    for tier in facts.throughput.first if facts.throughput else ():
        if tiers and tier not in tiers:
            continue
        series = facts.capacity(tier, efa=efa)
        need = max(tib * 1000, wanted / tier * 1000 if grows else 0)
        if series is not None:
            found.append((_at_least(series.first, series.step, need), tier))
    enough = [(capacity, tier) for capacity, tier in found if capacity / 1000 * tier >= wanted]
    return min(enough) if enough else max(found, key=lambda row: row[0] * row[1])


def _at_least(first: Sequence[int], step: int | None, need: float) -> int:
    for one in first:
        if one >= need:
            return one
    return step * max(1, -(-int(need) // step)) if step else first[-1]


def _checkpoint_mbps(wishes: Wishes, known: InstanceType | None, sizes: Guideline) -> float:
    accelerator = known.accelerator if known else None
    if accelerator is None:
        return 0
    state = model_state()
    memory = accelerator.memory_gib * 2**30 * wishes.nodes * checkpoint_share()
    return memory * state.checkpoint_bytes / state.memory_bytes / 1e6 / (sizes.checkpoint_minutes * 60)


def _home(wishes: Wishes, sizes: Guideline) -> Iterator[str]:
    if wishes.orchestrator in KUBERNETES or _is_local(wishes.zone_id):
        return
    choices = [
        name
        for name in ("single-az-ha-2", "single-az-2", "single-az-1")
        if wishes.region not in openzfs_deployments()[name].regions_without
    ]
    speeds = openzfs_deployments()[choices[0]].throughput.first
    yield "  openzfs:                       # home directories; data belongs on Lustre"
    yield f"    deployment: {choices[0]}"
    yield f"    capacity_gib: {sizes.home_gib}"
    yield f"    throughput_mbps: {next(speed for speed in speeds if speed >= sizes.home_mbps)}"


def _accounting(wishes: Wishes, sizes: Guideline) -> Iterator[str]:
    second = _second_zone(wishes)
    if wishes.orchestrator not in SLURM - {"pcs"} or not sizes.accounting_database or not second:
        return
    yield "  accounting_database:           # Slurm's users, limits and history outlive the controller"
    yield "    kind: rds-mysql"
    yield f"    second_zone_id: {second}"


def _orchestrator(wishes: Wishes, known: InstanceType | None) -> Iterator[str]:
    yield "orchestrator:"
    yield f"  kind: {wishes.orchestrator}"
    if wishes.orchestrator == "parallelcluster" and wishes.capacity == "capacity-block":
        yield "  scaledown_minutes: -1          # nodes of a block stay"
    if wishes.orchestrator == "parallelcluster" and known and known.ultraserver:
        yield "  deploy_with: pcluster          # `ultracluster render parallelcluster` writes its file"
    if wishes.orchestrator in KUBERNETES:
        if zone := _second_zone(wishes):
            yield f"  second_zone_id: {zone:<15}# EKS wants its control plane in two zones"
        yield "  admins:                        # nobody else can use the cluster, not even who deploys it"
        if wishes.admin:
            yield f"    - {wishes.admin}"
        else:
            yield "    # the role of your platform engineers, which must exist:"
            yield "    - arn:aws:iam::111122223333:role/platform-engineers"


def _groups(wishes: Wishes, known: InstanceType | None, sizes: Guideline) -> Iterator[str]:
    yield "node_groups:"
    arm = known is not None and known.architecture == "arm64"
    if arm:
        family = general_family("arm64")
    else:
        family = general_family("hyperpod" if wishes.orchestrator in HYPERPOD else "x86_64")
    if wishes.orchestrator in KUBERNETES:
        yield from _group(
            "system", "system", f"{general_family('hyperpod')}.2xlarge", sizes.system_nodes, wishes
        )
    else:
        if wishes.orchestrator != "pcs":
            yield from _group("controller", "controller", f"{family}.{sizes.controller}", 1, wishes)
        yield from _group("login", "login", f"{family}.{sizes.login}", sizes.login_nodes, wishes)
    yield from _group("train", "compute", wishes.instance_type, wishes.nodes, wishes)
    if wishes.orchestrator in SLURM:
        yield "    partition: train"
    if wishes.orchestrator in HYPERPOD:
        yield f"    # min_count: {wishes.nodes:<19}# all nodes or none"
        yield "    # two hours of tests before the first job:"
        yield "    # deep_health_checks: [instance-stress, instance-connectivity]"
    yield from _capacity(wishes)


def _group(name: str, role: str, kind: str, count: int, wishes: Wishes) -> Iterator[str]:
    yield f"  {name}:"
    yield f"    role: {role}"
    yield f"    instance_type: {kind}"
    yield f"    count: {count}"
    if wishes.orchestrator == "pcs":
        yield f"    image: {wishes.image or _pcs_image(kind)}"


def _pcs_image(kind: str) -> str:
    """AWS's own image for PCS: the parameter is read when the group is made."""
    known = instance_type(kind)
    return pcs_image_parameter((known.architecture if known else "") or "x86_64")


def _capacity(wishes: Wishes) -> Iterator[str]:
    if wishes.capacity == "on-demand":
        return
    yield "    capacity:"
    yield f"      kind: {wishes.capacity}"
    if wishes.capacity in ("reservation", "capacity-block"):
        yield f"      id: {wishes.capacity_id or RESERVATION}" + _stands_in(wishes.capacity_id, "id of yours")
    if wishes.capacity == "training-plan":
        plan = f"arn:aws:sagemaker:{wishes.region}:111122223333:training-plan/{wishes.name}"
        yield f"      arn: {wishes.capacity_id or plan}" + _stands_in(wishes.capacity_id, "ARN of yours")


def _stands_in(given: str, what: str) -> str:
    return "" if given else f"  # stands in for the {what}"


def _second_zone(wishes: Wishes) -> str | None:
    """Another zone of the Region that is no Local Zone."""
    found = region(wishes.region)
    known = found.zone_ids if found else ()
    taken = (wishes.zone_id, *refused_zones())
    return next((zone for zone in known if zone not in taken and not _is_local(zone)), None)


def _is_local(zone_id: str) -> bool:
    """Whether it is the id of a Local or Wavelength Zone: use1-dfw2-az1, not use1-az1."""
    return re.fullmatch(r"[a-z0-9]+-az\d+", zone_id) is None


def _without_doubles(lines: list[str]) -> Iterator[str]:
    """A part that is empty leaves one blank line, not two."""
    for number, line in enumerate(lines):
        if line or (number and lines[number - 1]):
            yield line


__all__ = [
    "CAPACITIES",
    "ORCHESTRATORS",
    "RESERVATION",
    "Wishes",
    "capacity_for",
    "draft",
    "only_in_local_zones",
    "regions_for",
    "zones_for",
]
