"""The storage of a first environment file: Lustre sized for checkpoints, homes, Slurm's accounting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ultracluster.catalog import InstanceType, is_local_zone
from ultracluster.catalog.fsx import LustreOffer, limits, lustre_offer, openzfs_deployments
from ultracluster.catalog.guidelines import Guideline
from ultracluster.catalog.sizing import lustre_write_mbps_per_tib
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import TRAITS
from ultracluster.model.checkpoints import GIB_PER_TIB, checkpoint_gb, likely_parameters, smallest_lustre
from ultracluster.plan.draft_place import second_zone
from ultracluster.rules.storage.lustre_efa import fitting_interfaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What storage depends on."""

    region: str
    zone_id: str
    orchestrator: OrchestratorKind
    instance_type: str
    nodes: int
    lustre_tib: float | None


def storage(site: Site, instance_type: InstanceType | None, sizes: Guideline) -> Iterator[str]:
    """The lines of `storage:`, with comments; none where there is nothing to store on."""
    lines = [*_lustre(site, instance_type, sizes), *_home(site, sizes), *_accounting(site, sizes)]
    if any(not line.lstrip().startswith("#") for line in lines):
        yield "storage:"
        yield from lines
    else:
        yield from (line.removeprefix("  ") for line in lines)


def _lustre(site: Site, instance_type: InstanceType | None, sizes: Guideline) -> Iterator[str]:
    if site.lustre_tib == 0:
        return
    offer = lustre_offer(site.region, site.zone_id, local=is_local_zone(site.zone_id))
    sold = offer.deployments if offer else ()
    other = next((name for name in ("persistent-2-ssd", "persistent-1-ssd") if name in sold), None)
    if offer and other is None and site.lustre_tib is None:
        yield f"  # No Lustre: AWS lists no such file system for {site.zone_id}."
        return
    deployment, limited = other or "persistent-2-ssd", offer.limited if offer else ()
    takes_efa = deployment == "persistent-2-ssd" and not limited
    # each client has one connection at least
    takes_efa = takes_efa and site.nodes <= limits().efa_connections
    efa = bool(takes_efa and instance_type and instance_type.lustre_efa_client)
    required = _checkpoint_mbps(site, instance_type, sizes)
    tib = sizes.lustre_tib if site.lustre_tib is None else site.lustre_tib
    if site.lustre_tib is None and instance_type is not None and instance_type.accelerator is None:
        tib = min(tib, 9.6)
    grows = site.lustre_tib is None
    capacity, tier = smallest_lustre(
        deployment, tib * GIB_PER_TIB, required, efa=efa, grows=grows, tiers=limited
    )
    written = capacity / GIB_PER_TIB * (lustre_write_mbps_per_tib(deployment, tier) or 0)
    yield f"  # {written:,.0f} MB/s. Required: {required:,.0f}, which writes a checkpoint in about"
    yield f"  # {sizes.checkpoint_minutes:g} minutes; `ultracluster plan --model` has the time for yours."
    yield from _why(site, instance_type, deployment, efa, offer)
    yield "  lustre:"
    yield f"    deployment: {deployment}"
    yield f"    capacity_gib: {capacity}"
    yield f"    throughput_mbps_per_tib: {tier}"
    if efa:
        yield "    efa: true                    # only at creation"
        each, most = (
            instance_type.lustre_efa_interfaces or 0 if instance_type else 0,
            limits().efa_connections,
        )
        if site.nodes * each > most:
            number = fitting_interfaces(site.nodes)
            yield f"    efa_interfaces_per_client: {number} # of {each}: {most} connections for all nodes"
    yield "    # data_repositories:           # folders that are tied to S3"
    yield "    #   /checkpoints:"
    yield "    #     prefix: checkpoints/"
    yield "    #     export_events: [new, changed]"


def _why(
    site: Site, instance_type: InstanceType | None, deployment: str, efa: bool, offer: LustreOffer | None
) -> Iterator[str]:
    """Why it is this deployment, and whether it is reached over EFA."""
    if offer and deployment not in offer.deployments:
        yield f"  # AWS lists no Lustre file system for {site.zone_id}; `--lustre-tib 0` leaves it out."
    elif offer and offer.limited:
        only = ", ".join(map(str, offer.limited))
        yield f"  # FSx has persistent-2-ssd here with {only} MB/s per TiB only, and over TCP."
    elif deployment != "persistent-2-ssd":
        yield "  # persistent-1-ssd: FSx does not have persistent-2-ssd here."
    elif instance_type and instance_type.lustre_efa_client and site.nodes > limits().efa_connections:
        most = limits().efa_connections
        yield f"  # Over TCP: a file system takes {most} EFA connections, each node at least one."
    elif efa:
        yield f"  # Over EFA, which {site.instance_type} takes; TCP ends at 100 Gbit/s a node."
    elif instance_type and instance_type.least_efa_interfaces:
        yield f"  # Over TCP: {site.instance_type} is not an EFA client of Lustre."


def _checkpoint_mbps(site: Site, instance_type: InstanceType | None, sizes: Guideline) -> float:
    """MB/s that write the checkpoint of a likely model in the time of the guideline."""
    accelerator = instance_type.accelerator if instance_type else None
    if accelerator is None:
        return 0
    written_gb = checkpoint_gb(likely_parameters(accelerator.memory_gib * site.nodes))
    return written_gb * 1000 / (sizes.checkpoint_minutes * 60)


def _home(site: Site, sizes: Guideline) -> Iterator[str]:
    if TRAITS[site.orchestrator].kubernetes or is_local_zone(site.zone_id):
        return
    choices = [
        name
        for name in ("single-az-ha-2", "single-az-2", "single-az-1")
        if site.region not in openzfs_deployments()[name].regions_without
    ]
    speeds = openzfs_deployments()[choices[0]].throughput.first
    yield "  openzfs:                       # home directories; data belongs on Lustre"
    yield f"    deployment: {choices[0]}"
    yield f"    capacity_gib: {sizes.home_gib}"
    yield f"    throughput_mbps: {next(speed for speed in speeds if speed >= sizes.home_mbps)}"


def _accounting(site: Site, sizes: Guideline) -> Iterator[str]:
    second = second_zone(site.region, site.zone_id)
    own_controller = "controller" in TRAITS[site.orchestrator].roles  # else its service keeps them
    if not own_controller or not sizes.accounting_database or not second:
        return
    yield "  accounting_database:           # Slurm's users, limits and history outlive the controller"
    yield "    kind: rds-mysql"
    yield f"    second_zone_id: {second.value}"
