"""A node group that Karpenter launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.catalog import InstanceType
from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.eks.scripts import NodeScripts
from ultracluster.clusters.placement import ClusterPlacementGroup
from ultracluster.config.capacity import Reservation
from ultracluster.config.nodes import NodeGroup
from ultracluster.kubernetes.karpenter import node_class, node_pool
from ultracluster.model.capacity import decide, placement_for


class EksKarpenterGroup(Construct):
    """A class and a pool of nodes for a group; Karpenter must be installed already.

    In a stack that is deleted before Karpenter's: its controller must be there to end the nodes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kubectl: Kubectl,
        name: str,
        group: NodeGroup,
        instance_type: InstanceType,
        kubernetes_version: str,
        instance_profile: str,
        subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        key: kms.IKey,
        idle_minutes: int,
        scripts: NodeScripts | None = None,
        tags: Mapping[str, str] | None = None,
        image_date: str | None = None,
    ) -> None:
        """Add class and pool.

        Args:
            kubectl: the way into the cluster.
            name: of the group, as label `ultracluster/node-group`.
            group: type, count, capacity, labels, taints.
            instance_type: from the catalogue.
            kubernetes_version: of the cluster.
            instance_profile: name of `EksKarpenter.instance_profile`.
            subnet: the one subnet.
            security_groups: on every interface.
            key: encrypts root volumes.
            idle_minutes: that a node is empty before it is ended.
            scripts: run before a node joins; `EksKarpenter.node_role` must be able to read them.
            tags: of instances and volumes, besides `Name`.
            image_date: of EKS's image, `20261012`; by default the one that this package pins.

        Raises:
            ValueError: an UltraServer, a capacity that cannot be had, or what `node_class` refuses.
        """
        super().__init__(scope, construct_id)
        if instance_type.ultraserver:
            raise ValueError(f"{instance_type.name} is no type for Karpenter; make it a managed node group")
        placement = self._placement(group, instance_type)
        self.pool = kubectl.add_manifest(
            f"Pool-{name}",
            node_class(
                name,
                group,
                instance_type,
                kubernetes_version=kubernetes_version,
                instance_profile=instance_profile,
                subnet_id=subnet.subnet_id,
                security_group_ids=[security_group.security_group_id for security_group in security_groups],
                key_arn=key.key_arn,
                placement_group=placement,
                user_data=scripts.user_data(name) if scripts else None,
                tags={**(tags or {}), "Name": f"{Stack.of(self).stack_name}/{name}"},
                image_date=image_date,
            ),
            node_pool(name, group, instance_type, idle_minutes=idle_minutes),
        )

    def _placement(self, group: NodeGroup, instance_type: InstanceType) -> str | None:
        capacity = group.capacity
        reserved = capacity.placement_group if isinstance(capacity, Reservation) else None
        kind = placement_for(
            capacity,
            instance_type=instance_type,
            orchestrator="eks",
            reserved_in_group=bool(reserved),
            declined=group.placement_group == "none",
        ).kind
        decision = decide(capacity, orchestrator="eks", placement=kind, instance_type=instance_type)
        if decision.severity == "error":
            raise ValueError(decision.message)
        if kind != "cluster":
            return reserved
        return ClusterPlacementGroup(self, "PlacementGroup").placement_group_name
