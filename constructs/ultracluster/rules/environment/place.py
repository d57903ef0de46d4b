"""Rules on: the Region and the zone."""

from __future__ import annotations

from ultracluster.catalog import Region, nearest_regions
from ultracluster.catalog.eks import refused_zones
from ultracluster.catalog.zone_kinds import ZONE_WORDS, zone_kind
from ultracluster.config.findings import YamlPath
from ultracluster.config.network import Network
from ultracluster.config.remedy import ask
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.remedies import moved_to
from ultracluster.rules.sets import ENV, HYPERPOD
from ultracluster.rules.sources import BOTOCORE, CFN_LINT, MOTO
from ultracluster.rules.zones import advised_zone, in_local_zone, not_a_zone_of, unknown_zone

_ZONE_ID: YamlPath = ("zone_id",)
_LIST_ZONES = (
    "aws ec2 describe-availability-zones --all-availability-zones --region <region> "
    "--query 'AvailabilityZones[].[ZoneName,ZoneId,OptInStatus]'"
)


@ENV.error(1, f"{BOTOCORE}: partitions", by_hand="aws account list-regions")
def region_exists(cluster: Cluster) -> Breaches:
    """The Region is one that AWS has."""
    if cluster.home is None:
        near = nearest_regions(cluster.region)
        yield at("region").breach(
            f"`{cluster.region}` is not an AWS Region: no stack can be deployed to it.",
            moved_to(cluster, *(near or ["us-east-1"])),
        )


@ENV.warning(
    2,
    f"{CFN_LINT}: CloudFormation schemas by Region, AWS::SageMaker::Cluster",
    by_hand="aws sagemaker list-clusters --region <region>",
    kinds=HYPERPOD,
)
def region_has_hyperpod(home: Region) -> Breaches:
    """The Region has HyperPod."""
    if home.hyperpod is False:
        yield at().breach(
            f"CloudFormation was not seen to have AWS::SageMaker::Cluster in {home.name}. If that "
            "still holds, the cluster stack cannot be created. The table may be behind AWS.",
            ask(
                "action",
                f"check with: aws sagemaker list-clusters --region {home.name}; or choose another Region",
            ),
        )


@ENV.error(3, "EC2 User Guide: Availability Zone IDs for your AWS resources", by_hand=_LIST_ZONES)
def zone_in_region(network: Network, home: Region, cluster: Cluster | None) -> Breaches:
    """`zone_id` is the id of a zone in the Region."""
    if breach := not_a_zone_of(home, network.zone_id, _ZONE_ID, _taken(cluster)):
        yield breach


@ENV.warning(4, f"{MOTO} ships it", by_hand=_LIST_ZONES)
def zone_known(network: Network, home: Region, cluster: Cluster | None) -> Breaches:
    """`zone_id` is among the zones seen in the Region."""
    if breach := unknown_zone(home, network.zone_id, _ZONE_ID, _taken(cluster)):
        yield breach


@ENV.warning(
    5, "EC2 User Guide: Local Zones; aravneelaws/hyperpod-local-zone-quickstart", by_hand=_LIST_ZONES
)
def local_zone(network: Network, home: Region, cluster: Cluster | None) -> Breaches:
    """A Local or Wavelength Zone is chosen on purpose, and the account has opted in to it."""
    zone_id = network.zone_id
    if not_a_zone_of(home, zone_id, _ZONE_ID) or not in_local_zone(home, zone_id):
        return
    yield at(*_ZONE_ID).breach(
        f"`{zone_id}` is a {ZONE_WORDS[zone_kind(zone_id)]} of {home.name}. The account must opt in to it "
        f"before a subnet can be made there. What it lacks, rules ENV032 and ENV033 say.",
        advised_zone(home, cluster.second_zones if cluster else ()).noting("or opt in to it first"),
    )


def _taken(cluster: Cluster | None) -> tuple[str, ...]:
    """Zones that nodes cannot be sent to: the second ones, and where EKS takes no control plane."""
    if cluster is None:
        return ()
    return (*cluster.second_zones, *(refused_zones() if cluster.traits.kubernetes else ()))
