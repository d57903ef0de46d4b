"""The nodes of an EKS cluster that run jobs: managed node groups, and pools of Karpenter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.eks.interface import IEksControlPlane
from ultracluster.clusters.eks.karpenter_group import EksKarpenterGroup
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.eks.roles import node_role
from ultracluster.clusters.eks.scripts import NodeScripts
from ultracluster.config.kubernetes import Eks
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import ScriptConfigurations
from ultracluster.software.node_image import image_date


class _Nodes(TypedDict):
    """Arguments that groups of both kinds take."""

    subnet: ec2.ISubnet
    security_groups: Sequence[ec2.ISecurityGroup]
    key: kms.IKey
    scripts: NodeScripts | None


def add_workers(
    scope: Construct,
    cluster: Cluster,
    *,
    configurations: ScriptConfigurations,
    plane: IEksControlPlane,
    subnet: ec2.ISubnet,
    security_groups: Sequence[ec2.ISecurityGroup],
    key: kms.IKey,
    karpenter_profile: str = "",
) -> Mapping[str, EksNodeGroup | EksKarpenterGroup]:
    """Add the compute groups, each managed by EKS or launched by Karpenter.

    Args:
        scope: a stack or a construct of their own.
        cluster: what it is worked out to be.
        configurations: what its nodes read as `cluster.json`.
        plane: the control plane.
        subnet: of the nodes, as `security_groups` are.
        key: encrypts volumes.
        karpenter_profile: name of `EksKarpenter.instance_profile`, where Karpenter launches groups.
    """
    environment, orchestrator = cluster.environment, cluster.settings
    assert isinstance(orchestrator, Eks)
    managed = [name for name, group in cluster.with_role("compute").items() if not group.by_karpenter]
    scripts = _node_scripts(scope, cluster, configurations, [*managed, *cluster.by_karpenter])
    nodes = _Nodes(subnet=subnet, security_groups=security_groups, key=key, scripts=scripts)
    added: dict[str, EksNodeGroup | EksKarpenterGroup] = {}
    if managed:
        role = _node_role(scope, cluster, plane, scripts)
        for name in managed:
            added[name] = EksNodeGroup(
                scope,
                f"Group-{name}",
                name=name,
                cluster=plane,
                role=role,
                after=[role],
                repair=orchestrator.node_repair,
                max_unavailable=orchestrator.max_unavailable,
                resolved=cluster,
                **nodes,
            )
    for name, group in cluster.by_karpenter.items():
        assert orchestrator.karpenter
        added[name] = EksKarpenterGroup(
            scope,
            f"Karpenter-{name}",
            kubectl=plane.kubectl,
            name=name,
            group=group.settings,
            instance_type=group.checked_type,
            kubernetes_version=orchestrator.kubernetes_version,
            instance_profile=karpenter_profile,
            idle_minutes=orchestrator.karpenter.idle_minutes,
            tags=environment.tags,
            image_date=image_date(environment, name),
            **nodes,
        )
    return added


def _node_role(
    scope: Construct, cluster: Cluster, plane: IEksControlPlane, scripts: NodeScripts | None
) -> iam.IRole:
    mirror = cluster.environment.software.mirror
    role = node_role(scope, "NodeRole", cluster_arn=plane.cluster_arn, mirror=mirror)
    if scripts:
        scripts.grant_read(role)
    return role


def _node_scripts(
    scope: Construct, cluster: Cluster, configurations: ScriptConfigurations, names: Sequence[str]
) -> NodeScripts | None:
    if not cluster.runs_scripts or not names:
        return None
    by_group = configurations.by_group
    return NodeScripts(scope, "Scripts", configurations={name: by_group[name] for name in names})
