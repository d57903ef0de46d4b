"""Rules on: which file systems FSx sells where."""

from __future__ import annotations

from ultracluster.catalog import Region
from ultracluster.catalog.fsx import (
    LustreOffer,
    alternatives,
    lustre_offer,
    openzfs,
    openzfs_deployments,
)
from ultracluster.config.lustre import LustreFacts, NewLustre
from ultracluster.config.network import Network
from ultracluster.config.remedy import Remedy, ask, beside, drop, either, write
from ultracluster.config.storage import NewOpenZfs, Persistent2SsdLustre
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.lustre_changes import other_deployment, other_tiers, without_efa
from ultracluster.rules.sets import FSX
from ultracluster.rules.sources import CFN_LINT
from ultracluster.rules.zones import in_local_zone


def offer_at(home: Region, network: Network) -> LustreOffer | None:
    """The Lustre file systems that are sold in the zone of the nodes; None where nothing is known to lack."""
    zone_id = network.zone_id
    return lustre_offer(home.name, zone_id, local=in_local_zone(home, zone_id))


@FSX.warning(
    33,
    "FSx for Lustre User Guide, Deployment type availability",
    by_hand="aws ec2 describe-availability-zones --all-availability-zones  (the zone's city)",
)
def deployment_offered(settings: NewLustre, facts: LustreFacts, home: Region, network: Network) -> Breaches:
    """FSx for Lustre has the deployment in the Region and zone."""
    offer = offer_at(home, network)
    if offer is None or settings.deployment == "scratch-1":
        return
    where = network.zone_id if in_local_zone(home, network.zone_id) else home.name
    if settings.deployment not in offer.deployments:
        yield at("deployment").breach(
            f"AWS does not list {settings.deployment} for {where}: the storage stack would fail.",
            either(*(other_deployment(settings, one) for one in offer.deployments))
            if offer.deployments
            else ask("fact", "a zone that the guide lists, or acknowledge if it lists the city of this one"),
        )
    elif isinstance(settings, Persistent2SsdLustre) and offer.limited:
        tiers = alternatives([str(tier) for tier in offer.limited])
        if settings.throughput_mbps_per_tib not in offer.limited:
            yield at("throughput_mbps_per_tib").breach(
                f"{where} has {settings.deployment} with {tiers} MB/s per TiB, not "
                f"{settings.throughput_mbps_per_tib}: the storage stack would fail.",
                other_tiers(facts, offer.limited),
            )
        if settings.efa:
            yield at("efa").breach(
                f"{where} has {settings.deployment} without EFA: the storage stack would fail.",
                without_efa(facts),
            )


@FSX.warning(
    34,
    f"{CFN_LINT}: CloudFormation schemas by Region, AWS::FSx::FileSystem",
    by_hand="aws fsx describe-file-systems --region <region>",
)
def region_has_fsx(settings: NewLustre | NewOpenZfs, home: Region) -> Breaches:
    """FSx is offered in the Region."""
    if home.fsx is False:
        yield at().breach(
            f"CloudFormation was not seen to have AWS::FSx::FileSystem in {home.name}. If that "
            "still holds, the storage stack fails. The table may be behind AWS.",
            ask(
                "action",
                f"check with: aws fsx describe-file-systems --region {home.name}; or choose another Region",
            ),
        )


@FSX.warning(
    42,
    "FSx for OpenZFS User Guide: Availability by AWS Region; awslabs/awsome-distributed-ai#1097",
)
def openzfs_offered(settings: NewOpenZfs, home: Region) -> Breaches:
    """FSx for OpenZFS has the deployment in the Region."""
    if home.name not in openzfs(settings.deployment).regions_without:
        return
    others = [
        other.name for other in openzfs_deployments().values() if home.name not in other.regions_without
    ]
    # a standby stays a standby where there is a choice
    others.sort(key=lambda name: ("-ha-" in name) != ("-ha-" in settings.deployment))
    yield at("deployment").breach(
        f"AWS's table shows {home.name} without {openzfs(settings.deployment).api_type}: FSx "
        "refuses it as not available in the zone.",
        either(*(_other_openzfs(settings, one) for one in others))
        if others
        else ask("decision", "another Region"),
    )


@FSX.warning(
    43,
    "FSx for OpenZFS User Guide: Availability by AWS Region (Regions alone)",
    "2026-11-27",
    by_hand="aws fsx create-file-system in a subnet of the zone",
)
def openzfs_in_local_zone(settings: NewOpenZfs, home: Region, network: Network) -> Breaches:
    """Home directories are in a zone that FSx for OpenZFS is known to have."""
    if in_local_zone(home, network.zone_id):
        yield at().breach(
            f"no page of AWS says whether {network.zone_id} has FSx for OpenZFS: if it has none, the storage "
            "stack fails.",
            drop().noting("or name an existing OpenZFS; or acknowledge that AWS has it in this zone"),
        )


def _other_openzfs(settings: NewOpenZfs, name: str) -> Remedy:
    values = openzfs(name).throughput
    if settings.throughput_mbps in values:
        return write(name)
    return beside(deployment=name, throughput_mbps=values.neighbours(settings.throughput_mbps)[-1])
