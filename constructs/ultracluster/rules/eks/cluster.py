"""Rules on: Kubernetes on EKS. The control plane: release, network, people, charts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from ipaddress import IPv4Network

from ultracluster.catalog import region
from ultracluster.catalog.eks import charts, refused_zones
from ultracluster.config import Environment
from ultracluster.config.kubernetes import PublicEndpoint
from ultracluster.config.remedy import anywhere, ask, beside, drop, inside, rename, write
from ultracluster.model.types import every_type_of
from ultracluster.rules.eks.groups import free_service_network, settings
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import in_local_zone, not_a_zone_of, unknown_zone
from ultracluster.rules.sets import EKS

CREATE = "EKS API reference, CreateCluster"
VPC_GUIDE = "EKS User Guide, View Amazon EKS networking requirements for VPC and subnets"
_ZONE = ("orchestrator", "second_zone_id")
_SUBNETS = ("orchestrator", "control_plane_subnet_ids")
PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


@EKS.rule(
    2, "error", "The control plane has subnets in two zones", source=f"{CREATE} (subnetIds); {VPC_GUIDE}"
)
def two_zones(environment: Environment) -> Iterator[Breach]:
    orchestrator, network = settings(environment), environment.network
    others = _other_zones(environment)
    if network.vpc is None:
        if orchestrator.control_plane_subnet_ids:
            yield Breach(
                _SUBNETS,
                "these subnets exist, and the VPC is made: a subnet cannot be used in another VPC.",
                drop(),
            )
        if orchestrator.second_zone_id is None:
            yield Breach(
                ("orchestrator",),
                "EKS refuses a control plane in one zone. Nodes and file systems stay in "
                f"{network.zone_id}; two small subnets are made for the control plane's interfaces.",
                inside(second_zone_id=others[0])
                if others
                else ask("fact", "second_zone_id: another zone of the Region"),
            )
        elif orchestrator.second_zone_id == network.zone_id:
            yield Breach(
                _ZONE,
                f"`{network.zone_id}` is network.zone_id, too: EKS refuses a control plane in one zone.",
                write(*others) if others else ask("fact", "another zone of the Region"),
            )
        return
    if orchestrator.second_zone_id:
        yield Breach(
            _ZONE,
            f"no subnet is made for the control plane in {network.vpc.id}, which exists.",
            drop().noting("control_plane_subnet_ids: [subnet-..., subnet-...] names what is used"),
        )
    if len(orchestrator.control_plane_subnet_ids) < 2:
        yield Breach(
            (
                "orchestrator",
                *(("control_plane_subnet_ids",) if orchestrator.control_plane_subnet_ids else ()),
            ),
            f"{network.vpc.id} exists, and EKS wants subnets of it in two zones or more for the control "
            "plane, each with 6 free addresses (16 advised), and with a way to AWS for what applies charts.",
            ask("fact", "control_plane_subnet_ids: [subnet-..., subnet-...], private and in two zones"),
        )


@EKS.rule(
    17,
    "error",
    "EKS takes the control plane's zones",
    source=f"{VPC_GUIDE}: use1-az3, usw1-az2 and cac1-az3 are refused; Launch low-latency EKS clusters with "
    "AWS Local Zones",
    date="2026-11-22",
)
def zone_refused(environment: Environment) -> Iterator[Breach]:
    network = environment.network
    if network.vpc is not None:
        return  # its subnets are where they are: preflight looks
    home, second = region(environment.region), settings(environment).second_zone_id
    for path, zone in ((("network", "zone_id"), network.zone_id), (_ZONE, second)):
        if not zone or not home or not_a_zone_of(home, zone, path):
            continue
        if zone in refused_zones():
            why = f"EKS takes no subnet of {zone} for a control plane"
        elif in_local_zone(home, zone):
            why = f"{zone} is a Local or Wavelength Zone, where EKS takes no subnet for a control plane"
        else:
            continue
        others = _other_zones(environment)
        nodes = path == ("network", "zone_id")
        yield Breach(
            path,
            f"{why}" + (", and one is made for it beside the nodes." if nodes else "."),
            (write(*others) if others else ask("fact", "another zone of the Region")).noting(
                "or nodes there in a network.vpc with control_plane_subnet_ids in two other zones"
                if nodes
                else ""
            ),
        )


@EKS.rule(3, "error", "The second zone is a zone of the Region", source="EC2 User Guide, zone IDs")
def second_zone_in_region(environment: Environment) -> Iterator[Breach]:
    home, zone = region(environment.region), settings(environment).second_zone_id
    if (
        home
        and zone
        and (breach := not_a_zone_of(home, zone, _ZONE, {*refused_zones(), environment.network.zone_id}))
    ):
        yield breach


@EKS.rule(
    4,
    "warning",
    "The second zone is among the zones seen in the Region",
    source="EC2 DescribeInstanceTypeOfferings as moto 5.2.5 ships it",
    by_hand="aws ec2 describe-availability-zones --region <region> "
    "--query 'AvailabilityZones[].[ZoneName,ZoneId]'",
)
def second_zone_known(environment: Environment) -> Iterator[Breach]:
    home, zone = region(environment.region), settings(environment).second_zone_id
    if (
        home
        and zone
        and (breach := unknown_zone(home, zone, _ZONE, {*refused_zones(), environment.network.zone_id}))
    ):
        yield breach


@EKS.rule(
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
        yield Breach(
            ("orchestrator", "service_cidr"), f"{text}: {why}", write(free_service_network(environment))
        )


@EKS.rule(
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
                anywhere({("orchestrator", "endpoint"): {"kind": "private"}}).noting(
                    "or the /32 of your VPN's exit"
                ),
            )


@EKS.rule(
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
            ask("fact", "admins: [arn:aws:iam::<account>:role/<role>]"),
        )


@EKS.rule(
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
            drop(),
        )


@EKS.rule(
    9,
    "error",
    "A closed network has copies of the charts",
    source="catalog/charts.json: makers' public repositories",
)
def closed_charts(environment: Environment) -> Iterator[Breach]:
    if environment.network.egress != "closed" or not _charts_asked(environment):
        return
    if not settings(environment).chart_repository:
        yield Breach(
            ("orchestrator",),
            "egress is `closed`, and charts come from public repositories, which are not reached: device "
            "plugins would not be installed, and the deployment would fail.",
            ask(
                "fact",
                "chart_repository: oci://<account>.dkr.ecr.<region>.amazonaws.com/<prefix> with copies of "
                "the charts, and chart_values with where copies of their images are",
            ),
        )


@EKS.rule(
    10, "error", "Values are given to charts that exist", source="this configuration: catalog/charts.json"
)
def chart_names(environment: Environment) -> Iterator[Breach]:
    for name in settings(environment).chart_values:
        if name not in charts():
            near = difflib.get_close_matches(name, list(charts()), n=1)
            yield Breach(
                ("orchestrator", "chart_values", name),
                f"there is no chart `{name}`: these values would be given to nothing.",
                rename(near[0]) if near else drop().noting(f"the charts are {', '.join(charts())}"),
            )


@EKS.rule(
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
            beside(jobset=True),
        )


@EKS.rule(
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
            ask("fact", "mpi_operator_image: <account>.dkr.ecr.<region>.amazonaws.com/<copy>:<tag>"),
        )


def _charts_asked(environment: Environment) -> bool:
    """Whether any Helm chart is installed: device plugins, a scheduler, what jobs ask for, Karpenter."""
    orchestrator = settings(environment)
    types = [
        known
        for group in environment.groups("compute").values()
        for known in every_type_of(environment, group)
        if known
    ]
    makers = {known.accelerator.manufacturer for known in types if known.accelerator}
    return any(
        (
            any(known.efa_interfaces != 0 for known in types),
            "AWS" in makers,
            "NVIDIA" in makers and orchestrator.gpu_plugin != "none",
            orchestrator.scheduler != "none",
            orchestrator.jobset,
            orchestrator.leader_worker_set,
            orchestrator.kubeflow_trainer,
            getattr(orchestrator, "karpenter", None),
        )
    )


def _other_zones(environment: Environment) -> list[str]:
    home = region(environment.region)
    taken = (environment.network.zone_id, settings(environment).second_zone_id, *refused_zones())
    zones = home.zone_ids if home else ()
    return [zone for zone in zones if zone not in taken and home and not in_local_zone(home, zone)][:2]
