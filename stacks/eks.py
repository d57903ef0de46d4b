"""Amazon EKS, in the cluster stack: the nodes that run jobs. If one fails, the control plane stays."""

from __future__ import annotations

from typing import cast

from aws_cdk import CfnOutput, CfnWaitConditionHandle, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from ultracluster.clusters.eks.karpenter_group import EksKarpenterGroup
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.eks.roles import node_role
from ultracluster.clusters.eks.scripts import NodeScripts
from ultracluster.config.kubernetes import Eks
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import script_configurations
from ultracluster.network.existing import existing_subnet
from ultracluster.software.node_image import full_image_release, image_date
from ultracluster.stacks.control_plane import control_plane_parts
from ultracluster.stacks.parts import NetworkParts, StorageParts


def add_cluster(
    stack: Stack, cluster: Cluster, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add node groups, or Karpenter's pools; nothing of it waits for a file system: pods mount, not nodes."""
    environment, orchestrator = cluster.environment, cluster.settings
    assert isinstance(orchestrator, Eks)
    by_karpenter = cluster.by_karpenter
    compute = cluster.with_role("compute")
    managed = {name: group for name, group in compute.items() if not group.by_karpenter}
    scripts = None
    if cluster.runs_scripts and (managed or by_karpenter):
        by_group = script_configurations(cluster).by_group
        scripts = NodeScripts(
            stack, "Scripts", configurations={name: by_group[name] for name in (*managed, *by_karpenter)}
        )
    subnet = existing_subnet(stack, "Nodes", network.subnet_id)
    nodes = ec2.SecurityGroup.from_security_group_id(
        stack, "NodeSecurityGroup", network.security_group_id, mutable=False
    )
    plane = control_plane_parts(cluster)
    if managed:
        role = node_role(stack, "NodeRole", cluster_arn=plane.cluster_arn, mirror=environment.software.mirror)
        if scripts:
            scripts.grant_read(role)
        for name, group in managed.items():
            EksNodeGroup(
                stack,
                f"Group-{name}",
                name=name,
                group=group.settings,
                instance_type=group.checked_type,
                cluster=plane.entry,
                image_release=full_image_release(environment, name),
                # the CDK's class and interface differ in names of arguments
                role=cast("iam.IRole", role),
                subnet=subnet,
                security_groups=[nodes],
                key=key,
                after=[role],
                scripts=scripts,
                repair=orchestrator.node_repair,
                max_unavailable=orchestrator.max_unavailable,
            )
    if by_karpenter:
        assert orchestrator.karpenter
        kubectl = plane.kubectl(stack)
        for name, group in by_karpenter.items():
            EksKarpenterGroup(
                stack,
                f"Karpenter-{name}",
                kubectl=kubectl,
                name=name,
                group=group.settings,
                instance_type=group.checked_type,
                kubernetes_version=orchestrator.kubernetes_version,
                instance_profile=Fn.import_value(
                    f"{cluster.environment.stack_name('system')}-KarpenterProfile"
                ),
                subnet=subnet,
                security_groups=[nodes],
                key=key,
                idle_minutes=orchestrator.karpenter.idle_minutes,
                scripts=scripts,
                tags=environment.tags,
                image_date=image_date(environment, name),
            )
    if not compute:
        CfnWaitConditionHandle(stack, "Nothing")  # CloudFormation refuses a stack without resources
    CfnOutput(stack, "NodeGroups", value=" ".join(compute) or "none", description="That run jobs")
    return []
