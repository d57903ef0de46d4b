"""Rules on: Kubernetes on EKS. Node groups: system nodes, images, quotas."""

from __future__ import annotations

from ultracluster.catalog.eks import ami_type, node_group_limits
from ultracluster.config.kubernetes import Eks
from ultracluster.config.network import Network
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.remedy import Remedy, anywhere, ask, beside, inside, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.eks.network import free_service_network
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS

EKS_ONLY = frozenset[OrchestratorKind]({"eks"})


@EKS.error(
    21,
    "EKS User Guide, Manage CoreDNS for DNS in Amazon EKS clusters; awslabs/ml-container-creator#297",
)
def system_group_exists(cluster: Cluster) -> Breaches:
    """The cluster has at least one system node."""
    if not any(group.settings.count for group in cluster.with_role("system").values()):
        yield at("node_groups").breach(
            "no group of role `system` has a node: CoreDNS, storage drivers and operators have nowhere to "
            "run, because nodes with accelerators are reserved for jobs, and the deployment would wait until "
            "it fails.",
            _system_nodes(cluster),
        )


@EKS.warning(22, "EKS Best Practices Guide, Reliability: applications")
def system_group_size(group: Group) -> Breaches:
    """System groups have two or more on-demand nodes without accelerators."""
    if group.role != "system":
        return
    if group.settings.count == 1:
        yield at("count").breach("with one node, DNS and operators stop whenever it is replaced.", write(2))
    if group.type and group.type.accelerator:
        accelerator = group.type.accelerator
        yield at("instance_type").breach(
            f"{group.type.name} has {accelerator.count} x {accelerator.name}, which DNS and operators do not "
            "use.",
            write("m5.2xlarge"),
        )
    if group.capacity.kind != "on-demand":
        yield at("capacity").breach(
            f"AWS may end nodes from {group.capacity.kind} at any time, and DNS and operators with them.",
            write({"kind": "on-demand"}),
        )


@EKS.error(27, "EKS API reference, Nodegroup (amiType): no Neuron image for Arm", kinds=EKS_ONLY)
def image_for_type(group: Group) -> Breaches:
    """EKS has an image for the instance type."""
    kind = group.type
    if kind and not group.settings.image and ami_type(kind) is None:
        yield at("instance_type").breach(
            f"EKS has no Amazon Linux 2023 image with the driver of {kind.name} ({kind.architecture}).",
            ask("fact", "image: ami-... of your own, or a type for which EKS has one"),
        )


@EKS.error(28, "awslabs/amazon-eks-ami, nodeadm: NodeConfig (cluster.cidr)", kinds=EKS_ONLY)
def own_image_needs_service_cidr(group: Group, settings: Eks, network: Network) -> Breaches:
    """A group with an image of your own requires service_cidr."""
    image = group.settings.image
    if image and not group.by_karpenter and not settings.service_cidr:
        yield at("image").breach(
            f"EKS does not configure nodes on {image}: to join they must know the network of services, and "
            "without orchestrator.service_cidr EKS chooses it.",
            anywhere({("orchestrator", "service_cidr"): free_service_network(network)}),
        )


@EKS.warning(
    29,
    "Amazon EKS service quotas: managed node groups per cluster, nodes per managed node group",
    by_hand="aws service-quotas list-service-quotas --service-code eks --query 'Quotas[].[QuotaName,Value]'",
    kinds=EKS_ONLY,
)
def default_quotas(cluster: Cluster) -> Breaches:
    """The cluster is within EKS's default quotas."""
    groups, nodes = node_group_limits()
    managed = {name: group for name, group in cluster.groups.items() if not group.by_karpenter}
    if len(managed) > groups:
        yield at("node_groups").breach(
            f"there are {len(managed)} groups; by default a cluster may have {groups}.",
            ask("decision", f"use {groups} or fewer, or have AWS raise the quota"),
        )
    for name, group in managed.items():
        if group.most_nodes > nodes:
            elastic, count = bool(group.settings.max_count), min(group.settings.count, nodes)
            yield at("node_groups", name, "max_count" if elastic else "count").breach(
                f"the group may have {group.most_nodes} nodes; by default a managed node group may have "
                f"{nodes}.",
                (write(nodes) & beside(count=count) if elastic else write(nodes)).noting(
                    f"put the others in {-(-group.most_nodes // nodes) - 1} more groups; or have AWS raise "
                    "the quota"
                ),
            )


def _system_nodes(cluster: Cluster) -> Remedy:
    for name in cluster.with_role("system"):
        return anywhere({("node_groups", name, "count"): 2})
    name = next(name for name in ("system", "addons", "system-nodes") if name not in cluster.groups)
    return inside(**{name: {"role": "system", "instance_type": "m5.2xlarge", "count": 2}})
