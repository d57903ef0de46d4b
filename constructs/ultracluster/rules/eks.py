"""Rules on: Kubernetes on EKS. The control plane: release, network, people, charts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from ipaddress import IPv4Network

from ultracluster.catalog import region
from ultracluster.catalog.eks import charts, kubernetes_releases
from ultracluster.config import Environment
from ultracluster.config.kubernetes import PublicEndpoint
from ultracluster.rules import eks_karpenter, eks_pods, eks_sharing
from ultracluster.rules.eks_groups import RULES, settings
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment import in_local_zone, not_a_zone_of, unknown_zone

__all__ = ["RULES"]

CREATE = "EKS API reference, CreateCluster"
VPC_GUIDE = "EKS User Guide, View Amazon EKS networking requirements for VPC and subnets"
_ZONE = ("orchestrator", "second_zone_id")
_SUBNETS = ("orchestrator", "control_plane_subnet_ids")
PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


@RULES.rule(
    1,
    "error",
    "Every add-on and node image is known for the Kubernetes release",
    source="the catalogue: eks_addons.json; Kubernetes version skew policy; SageMaker Developer Guide",
    by_hand="aws eks describe-cluster-versions --query 'clusterVersions[].[clusterVersion,versionStatus]'",
)
def release_known(environment: Environment) -> Iterator[Breach]:
    wanted, known = settings(environment).kubernetes_version, kubernetes_releases()
    if wanted not in known:
        near = known[0] if _minor(wanted) < _minor(known[0]) else known[-1]
        why = (
            "no image is pinned, and its security group has no EFA rules"
            if _minor(wanted) < _minor(known[0])
            else "its add-ons are not pinned, and the kubectl that deploys charts may not speak to it"
        )
        yield Breach(
            ("orchestrator", "kubernetes_version"),
            f"add-ons, node images and kubectl have {known[0]} to {known[-1]} in common; for {wanted} {why}.",
            f'"{near}"',
        )


@RULES.rule(
    2, "error", "The control plane has subnets in two zones", source=f"{CREATE} (subnetIds); {VPC_GUIDE}"
)
def two_zones(environment: Environment) -> Iterator[Breach]:
    orchestrator, network = settings(environment), environment.network
    others = " or ".join(_other_zones(environment)) or "another zone of the Region"
    if network.vpc is None:
        if orchestrator.control_plane_subnet_ids:
            yield Breach(
                _SUBNETS,
                "these subnets exist, and the VPC is made: a subnet cannot be used in another VPC.",
                f"remove control_plane_subnet_ids, and second_zone_id: {others}",
            )
        if orchestrator.second_zone_id is None:
            yield Breach(
                ("orchestrator",),
                "EKS refuses a control plane in one zone. Nodes and file systems stay in "
                f"{network.zone_id}; two small subnets are made for the control plane's interfaces.",
                f"second_zone_id: {others}",
            )
        elif orchestrator.second_zone_id == network.zone_id:
            yield Breach(
                _ZONE,
                f"`{network.zone_id}` is network.zone_id, too: EKS refuses a control plane in one zone.",
                others,
            )
        return
    if orchestrator.second_zone_id:
        yield Breach(
            _ZONE,
            f"no subnet is made for the control plane in {network.vpc.id}, which exists.",
            "remove second_zone_id, and control_plane_subnet_ids: [subnet-..., subnet-...]",
        )
    if len(orchestrator.control_plane_subnet_ids) < 2:
        yield Breach(
            (
                "orchestrator",
                *(("control_plane_subnet_ids",) if orchestrator.control_plane_subnet_ids else ()),
            ),
            f"{network.vpc.id} exists, and EKS wants subnets of it in two zones or more for the control "
            "plane, each with 6 free addresses (16 advised), and with a way to AWS for what applies charts.",
            "control_plane_subnet_ids: [subnet-..., subnet-...], private and in two zones",
        )


@RULES.rule(3, "error", "The second zone is a zone of the Region", source="EC2 User Guide, zone IDs")
def second_zone_in_region(environment: Environment) -> Iterator[Breach]:
    home, zone = region(environment.region), settings(environment).second_zone_id
    if home and zone and (breach := not_a_zone_of(home, zone, _ZONE)):
        yield breach


@RULES.rule(
    4,
    "warning",
    "The second zone is among the zones seen in the Region",
    source="EC2 DescribeInstanceTypeOfferings as moto 5.2.5 ships it",
    by_hand="aws ec2 describe-availability-zones --region <region> "
    "--query 'AvailabilityZones[].[ZoneName,ZoneId]'",
)
def second_zone_known(environment: Environment) -> Iterator[Breach]:
    home, zone = region(environment.region), settings(environment).second_zone_id
    if home and zone and (breach := unknown_zone(home, zone, _ZONE)):
        yield breach


@RULES.rule(
    5,
    "error",
    "The network of services is private, of a size that EKS takes, and outside the VPC",
    source="EKS API reference, KubernetesNetworkConfigRequest (serviceIpv4Cidr)",
)
def service_network(environment: Environment) -> Iterator[Breach]:
    text = settings(environment).service_cidr
    if text is None:
        return
    wanted, network = IPv4Network(text), environment.network
    vpc = IPv4Network(network.vpc.cidr if network.vpc else network.cidr)
    why = ""
    if not 12 <= wanted.prefixlen <= 24:
        why = f"a /{wanted.prefixlen} is outside EKS's range of /12 to /24."
    elif not any(wanted.subnet_of(private) for private in PRIVATE):
        why = "it is outside 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16."
    elif wanted.overlaps(vpc):
        why = f"it overlaps the VPC ({vpc}): pods could not tell a service from a host."
    if why:
        free = next(one for one in ("172.20.0.0/16", "10.100.0.0/16") if not IPv4Network(one).overlaps(vpc))
        yield Breach(("orchestrator", "service_cidr"), f"{text}: {why}", free)


@RULES.rule(
    6,
    "warning",
    "The Kubernetes API is not open to the internet",
    source="EKS User Guide, Cluster API server endpoint",
)
def open_endpoint(environment: Environment) -> Iterator[Breach]:
    endpoint = settings(environment).endpoint
    if not isinstance(endpoint, PublicEndpoint):
        return
    for index, cidr in enumerate(endpoint.cidrs):
        if IPv4Network(cidr).prefixlen < 16:
            yield Breach(
                ("orchestrator", "endpoint", "cidrs", index),
                f"{cidr} lets {IPv4Network(cidr).num_addresses} addresses of the internet knock at the "
                "Kubernetes API; only IAM stands behind it.",
                "the /32 of your VPN's exit, or endpoint: {kind: private}",
            )


@RULES.rule(
    7,
    "warning",
    "Somebody may use the cluster",
    source="EKS User Guide, Grant IAM users access with access entries",
)
def nobody(environment: Environment) -> Iterator[Breach]:
    if not settings(environment).admins:
        yield Breach(
            ("orchestrator",),
            "nobody has an access entry: who deploys gets none either, so kubectl would answer Unauthorized.",
            "admins: [arn:aws:iam::<account>:role/<role>]",
        )


@RULES.rule(
    8,
    "error",
    "Kubernetes has no Slurm accounting",
    source="this configuration: accounting_database is Slurm's",
)
def no_accounting(environment: Environment) -> Iterator[Breach]:
    if environment.storage.accounting_database:
        yield Breach(
            ("storage", "accounting_database"),
            "it keeps Slurm's accounting, and there is no Slurm here: nothing would ever use it.",
            "remove accounting_database",
        )


@RULES.rule(
    9,
    "error",
    "A closed network has copies of the charts",
    source="catalog/charts.json: makers' public repositories",
)
def closed_charts(environment: Environment) -> Iterator[Breach]:
    if environment.network.egress == "closed" and not settings(environment).chart_repository:
        yield Breach(
            ("orchestrator",),
            "egress is `closed`, and charts come from public repositories, which are not reached: device "
            "plugins would not be installed, and the deployment would fail.",
            "chart_repository: oci://<account>.dkr.ecr.<region>.amazonaws.com/<prefix> with copies of the "
            "charts, and chart_values with where copies of their images are",
        )


@RULES.rule(
    10, "error", "Values are given to charts that exist", source="this configuration: catalog/charts.json"
)
def chart_names(environment: Environment) -> Iterator[Breach]:
    for name in settings(environment).chart_values:
        if name not in charts():
            near = difflib.get_close_matches(name, list(charts()), n=1)
            yield Breach(
                ("orchestrator", "chart_values", name),
                f"there is no chart `{name}`: these values would be given to nothing.",
                near[0] if near else f"one of {', '.join(charts())}",
            )


@RULES.rule(
    11,
    "error",
    "Kubeflow Trainer has JobSet",
    source="kubeflow/trainer, charts/kubeflow-trainer (jobset.install)",
)
def trainer_needs_jobset(environment: Environment) -> Iterator[Breach]:
    orchestrator = settings(environment)
    if orchestrator.kubeflow_trainer and not orchestrator.jobset:
        yield Breach(
            ("orchestrator", "kubeflow_trainer"),
            "Trainer makes a JobSet of each job, and JobSet is off.",
            "jobset: true",
        )


@RULES.rule(
    12,
    "warning",
    "A release out of standard support is meant",
    source="EKS User Guide, Understand the Kubernetes version lifecycle on EKS",
)
def extended_support(environment: Environment) -> Iterator[Breach]:
    orchestrator = settings(environment)
    if orchestrator.support == "extended":
        yield Breach(
            ("orchestrator", "support"),
            "with `extended` the control plane is never upgraded by itself, and costs more per hour once "
            f"{orchestrator.kubernetes_version} has left standard support.",
            "standard",
        )


@RULES.rule(
    13,
    "error",
    "A closed network has a copy of the MPI operator",
    source="catalog/mpi_operator.json: its maker's public image",
    date="2026-11-21",
)
def closed_mpi_operator(environment: Environment) -> Iterator[Breach]:
    orchestrator = settings(environment)
    if (
        orchestrator.mpi_operator
        and not orchestrator.mpi_operator_image
        and (environment.network.egress == "closed")
    ):
        yield Breach(
            ("orchestrator", "mpi_operator"),
            "egress is `closed`, and the operator's image comes from a public registry, out of reach.",
            "mpi_operator_image: <account>.dkr.ecr.<region>.amazonaws.com/<copy>:<tag>",
        )


RULES.include(eks_karpenter.RULES, eks_pods.RULES, eks_sharing.RULES)


def _minor(release: str) -> int:
    return int(release.partition(".")[2])


def _other_zones(environment: Environment) -> list[str]:
    home = region(environment.region)
    zones = [zone for zone in home.zone_ids if not in_local_zone(home, zone)] if home else []
    return [zone for zone in zones if zone != environment.network.zone_id][:2]
