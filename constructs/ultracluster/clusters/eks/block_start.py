"""Nodes of a Capacity Block that has not begun: the group is created empty, and filled when the block begins.

EKS User Guide, "Create a managed node group with Capacity Blocks for ML": the group's desired size is 0 until
the block is active, else its Auto Scaling group fails to launch and the creation with it. The name of that
Auto Scaling group is known to EKS's API only, so that no `AWS::AutoScaling::ScheduledAction` can name it;
EventBridge Scheduler asks EKS instead. Forty minutes before the block ends EKS empties the group itself.
"""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.cdk_tree import policy_of
from ultracluster.security.principals import trusted


def fill_when_block_begins(
    scope: Construct,
    construct_id: str,
    *,
    group: eks.CfnNodegroup,
    cluster_name: str,
    starts: str,
    nodes: int,
    most: int,
) -> scheduler.CfnSchedule:
    """Set a group to `nodes` nodes at a time.

    Args:
        group: made with a size of 0.
        cluster_name: of the EKS cluster.
        starts: `yyyy-mm-ddThh:mm:ssZ`.
        nodes: how many.
        most: its greatest size.
    """
    stack = Stack.of(scope)
    schedule = scheduler.CfnSchedule(
        scope,
        construct_id,
        description=f"Fills the node group when its Capacity Block begins, {starts}",
        schedule_expression=f"at({starts.removesuffix('Z')})",
        schedule_expression_timezone="UTC",
        flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
        target=scheduler.CfnSchedule.TargetProperty(
            # tried again for a day by default: an update of the group may be under way
            arn=f"arn:{stack.partition}:scheduler:::aws-sdk:eks:updateNodegroupConfig",
            role_arn=_role(stack, cluster_name).role_arn,
            input=stack.to_json_string(
                {
                    "ClusterName": cluster_name,
                    "NodegroupName": group.attr_nodegroup_name,
                    "ScalingConfig": {"MinSize": nodes, "DesiredSize": nodes, "MaxSize": most},
                }
            ),
        ),
    )
    schedule.node.add_dependency(policy_of(_role(stack, cluster_name)))
    return schedule


def _role(stack: Stack, cluster_name: str) -> iam.Role:
    """One for all groups of a stack."""
    existing = stack.node.try_find_child("BlockStarts")
    if isinstance(existing, iam.Role):
        return existing
    role = iam.Role(
        stack,
        "BlockStarts",
        assumed_by=trusted(stack, "scheduler.amazonaws.com"),
        description="Fills node groups when their Capacity Blocks begin",
    )
    groups = stack.format_arn(service="eks", resource="nodegroup", resource_name=f"{cluster_name}/*")
    role.add_to_policy(
        iam.PolicyStatement(sid="FillGroups", actions=["eks:UpdateNodegroupConfig"], resources=[groups])
    )
    acknowledge(role, {wildcard(stack, groups): "The node groups of this cluster only."})
    return role
