"""Karpenter for EKS: its charts, and a class and a pool of nodes for each group that it launches.

Karpenter 1.14 documentation, "NodeClasses", "NodePools", "Utilizing ODCRs and Capacity Blocks". HyperPod has
a Karpenter of its own, with other classes (`ultracluster.kubernetes.hyperpod_eks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ultracluster.catalog import InstanceType
from ultracluster.catalog.eks import node_image_date
from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.config.kubernetes import Eks
from ultracluster.config.nodes import ROLE_LABEL, NodeGroup
from ultracluster.kubernetes.charts import Chart, chart
from ultracluster.kubernetes.labels import default_taints, node_labels
from ultracluster.kubernetes.tolerations import system_tolerations
from ultracluster.model import Cluster
from ultracluster.model.network_cards import network_card_plan
from ultracluster.model.root_volume import INCLUDED_MBPS, root_iops, root_throughput

NAMESPACE = "kube-system"
"""Where its requests to the Kubernetes API have priority (Karpenter documentation, "Getting Started")."""
ACCOUNT = "karpenter"
"""Service account of the controller."""
CLASSES, POOLS = "karpenter.k8s.aws/v1", "karpenter.sh/v1"

Manifest = dict[str, Any]


def karpenter_charts(cluster: Cluster, settings: Eks, *, queue: str) -> tuple[Chart, Chart]:
    """What defines Karpenter's objects, and its controller, in this order.

    The definitions are a chart of their own: those in the controller's chart are never updated by Helm.

    Args:
        cluster: whose nodes it launches.
        settings: of the cluster, with `karpenter`.
        queue: name of the queue with interruption messages.
    """
    static = any(group.settings.count for group in cluster.by_karpenter.values())
    system = sum(group.settings.count for group in cluster.with_role("system").values())
    values = {
        "nodeSelector": {"kubernetes.io/os": "linux", ROLE_LABEL: "system"},
        # each on a node of its own
        "replicas": min(2, max(1, system)),
        "serviceAccount": {"name": ACCOUNT},
        "settings": {
            "clusterName": cluster.environment.cluster_name,
            "interruptionQueue": queue,
            # price lists and IAM have no endpoint in the VPC
            "isolatedVPC": cluster.environment.network.egress == "closed",
            "featureGates": {
                # both are alpha in 1.14; pools of a fixed size need the one, and faulty nodes the other
                "staticCapacity": static,
                "nodeRepair": settings.node_repair.enabled,
            },
        },
    }
    definitions, controller = (
        chart(
            name,
            ours,
            mirror=settings.chart_repository,
            extra=settings.chart_values.get(name),
            tolerations=system_tolerations(cluster),
        )
        for name, ours in (("karpenter-crd", {}), ("karpenter", values))
    )
    return definitions, controller


def node_class(
    name: str,
    group: NodeGroup,
    instance_type: InstanceType,
    *,
    kubernetes_version: str,
    instance_profile: str,
    subnet_id: str,
    security_group_ids: Sequence[str],
    key_arn: str,
    placement_group: str | None = None,
    user_data: str | None = None,
    tags: Mapping[str, str] | None = None,
    image_date: str | None = None,
) -> Manifest:
    """How the nodes of a group are launched, as `EC2NodeClass`: as by a managed group's template.

    Args:
        name: of the group; Kubernetes' names have no capitals.
        group: capacity, image, volume.
        instance_type: from the catalogue; decides the network interfaces.
        kubernetes_version: of the cluster; EKS's image for it is pinned.
        instance_profile: name of the nodes' instance profile.
        subnet_id: the one subnet: EFA does not leave it.
        security_group_ids: on every interface; each lets everything in from, and out to, itself.
        key_arn: encrypts root volumes.
        placement_group: name of the group that nodes are launched into.
        user_data: a shell script that runs before a node joins; Karpenter adds the rest.
        tags: of instances and volumes.
        image_date: of EKS's image, `20261012`; by default the one that this package pins.

    Raises:
        ValueError: the type's network interfaces are unknown, or Karpenter cannot select the reservation.
    """
    spec: Manifest = {
        "amiFamily": "AL2023",
        "amiSelectorTerms": [_image(group, kubernetes_version, image_date)],
        "instanceProfile": instance_profile,
        "subnetSelectorTerms": [{"id": subnet_id}],
        "securityGroupSelectorTerms": [{"id": group_id} for group_id in security_group_ids],
        "networkInterfaces": [
            {"networkCardIndex": card.card, "deviceIndex": card.device, "interfaceType": card.kind}
            for card in network_card_plan(instance_type)
        ],
        "blockDeviceMappings": [_root_volume(group, instance_type, key_arn)],
        "metadataOptions": _METADATA_OPTIONS,
        "detailedMonitoring": True,
    }
    if len(spec["networkInterfaces"]) == 1:  # with several EC2 refuses the field
        spec["associatePublicIPAddress"] = False
    if reserved := _reservations(group):
        spec["capacityReservationSelectorTerms"] = [reserved]
    if placement_group:
        spec["placementGroupSelector"] = {"name": placement_group}
    if user_data:
        spec["userData"] = user_data
    if tags:
        spec["tags"] = dict(tags)
    return {"apiVersion": CLASSES, "kind": "EC2NodeClass", "metadata": {"name": name.lower()}, "spec": spec}


def _root_volume(group: NodeGroup, instance_type: InstanceType, key_arn: str) -> Manifest:
    return {
        "deviceName": "/dev/xvda",
        "rootVolume": True,
        "ebs": {
            "volumeType": "io2" if group.root_volume_iops else "gp3",
            "volumeSize": f"{group.root_volume_gib}Gi",
            **_speed(group, instance_type),
            "encrypted": True,
            "kmsKeyID": key_arn,
            "deleteOnTermination": True,
        },
    }


_METADATA_OPTIONS = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpTokens": "required",
    "httpPutResponseHopLimit": 1,
}


def node_pool(name: str, group: NodeGroup, instance_type: InstanceType, *, idle_minutes: int) -> Manifest:
    """How many nodes of a group there are and when, as `NodePool`.

    A group with a `count` is a static pool of that size. Nothing is taken away from a job: only empty nodes
    end, and neither age nor a newer image replaces a node that is in use. A node of a static pool is renewed
    when its NodeClaim is deleted.

    Args:
        name: of the group.
        group: counts, capacity, labels, taints.
        instance_type: from the catalogue.
        idle_minutes: that a node is empty before it is ended; not in a static pool.
    """
    limits = {"nodes": str(group.max_nodes)}
    if not group.count and instance_type.vcpu:
        limits["cpu"] = str(
            instance_type.vcpu * group.max_nodes
        )  # a static pool takes no other limit than nodes
    spec: Manifest = {
        "limits": limits,
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{idle_minutes}m",
            # the default is a tenth of the nodes for each reason
            "budgets": [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "100%", "reasons": ["Empty"]}],
        },
        "template": {
            "metadata": {"labels": node_labels(name, group, instance_type)},
            "spec": {
                "expireAfter": "Never",
                "nodeClassRef": {
                    "group": CLASSES.partition("/")[0],
                    "kind": "EC2NodeClass",
                    "name": name.lower(),
                },
                "requirements": _requirements(group, instance_type),
                "taints": [
                    {
                        "key": taint.key,
                        **({"value": taint.value} if taint.value else {}),
                        "effect": taint.effect,
                    }
                    for taint in default_taints(group, instance_type)
                ],
            },
        },
    }
    if group.count:
        spec["replicas"] = group.count
    return {"apiVersion": POOLS, "kind": "NodePool", "metadata": {"name": name.lower()}, "spec": spec}


def _requirements(group: NodeGroup, instance_type: InstanceType) -> list[dict[str, Any]]:
    requirements = {
        "node.kubernetes.io/instance-type": [instance_type.name],
        "kubernetes.io/arch": ["arm64" if instance_type.architecture == "arm64" else "amd64"],
        "kubernetes.io/os": ["linux"],
        "karpenter.sh/capacity-type": _capacity_types(group),
    }
    return [{"key": key, "operator": "In", "values": values} for key, values in requirements.items()]


def _capacity_types(group: NodeGroup) -> list[str]:
    match group.capacity:
        case CapacityBlock():
            return ["reserved"]
        case Reservation(id=None):
            return ["reserved", "on-demand"]  # open reservations first, as EC2 itself does it
        case Reservation():
            return ["reserved"]
        case capacity:
            return [capacity.kind]


def _reservations(group: NodeGroup) -> dict[str, str]:
    """Karpenter uses no reservation that is not selected, not even an open one."""
    match group.capacity:
        case Reservation(resource_group_arn=str(arn)):
            raise ValueError(f"Karpenter selects reservations by id, not by the resource group {arn}")
        case Reservation(id=None):
            return {"instanceMatchCriteria": "open"}
        case Reservation(id=str(one)) | CapacityBlock(id=one):
            return {"id": one}
        case _:
            return {}


def _speed(group: NodeGroup, instance_type: InstanceType) -> dict[str, int]:
    throughput = root_throughput(group, instance_type)
    if group.root_volume_iops:
        return {"iops": group.root_volume_iops}
    if throughput == INCLUDED_MBPS:
        return {}
    return {"throughput": throughput, "iops": root_iops(throughput)}


def _image(group: NodeGroup, kubernetes_version: str, image_date: str | None) -> dict[str, str]:
    """An image of one's own, or EKS's pinned release: Karpenter picks the variant with the type's driver."""
    if group.image:
        return {"id": group.image_in_template or ""}
    return {"alias": f"al2023@v{image_date or node_image_date(kubernetes_version)}"}
