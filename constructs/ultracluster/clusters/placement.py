"""Cluster placement groups (EC2 User Guide, "Placement strategies for your placement groups").

`placement_for`, which says when there must be none, is in `ultracluster.model.capacity`, where nothing
needs the CDK.
"""

from __future__ import annotations

from typing import cast

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.model.capacity import Placement, placement_for

__all__ = ["ClusterPlacementGroup", "Placement", "placement_for"]


class ClusterPlacementGroup(Construct):
    """A placement group that puts its instances close together: one zone, one network spine.

    For on-demand and Spot nodes with EFA. Never for a reservation made outside it, a Capacity Block or an
    UltraServer: instances in a group do not match those (`placement_for`). One group for each set of nodes
    that train together, launched in one subnet.

    It carries no tags: CloudFormation can set a group's tags only when it makes it, so that a changed tag
    would replace the group, and every node of it.

    Attributes:
        placement_group: the group.
        placement_group_name: its name, as launch templates and ParallelCluster take it.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """Make the group; its name is CloudFormation's."""
        super().__init__(scope, construct_id)
        group = ec2.PlacementGroup(self, "Resource", strategy=ec2.PlacementGroupStrategy.CLUSTER)
        resource = cast("CfnResource", group.node.default_child)
        resource.add_property_deletion_override("Tags")
        self.placement_group = cast("ec2.IPlacementGroup", group)
        self.placement_group_name = group.placement_group_name
