"""System nodes of a Kubernetes cluster, and what is installed into it for all users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.addons import EksAddons
from ultracluster.clusters.eks.hyperpod_addon import cert_manager
from ultracluster.clusters.eks.interface import IEksControlPlane
from ultracluster.clusters.eks.job_namespaces import isolate_namespaces
from ultracluster.clusters.eks.karpenter import EksKarpenter
from ultracluster.clusters.eks.metrics import add_metrics
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.eks.roles import node_role
from ultracluster.clusters.eks.scripts import NodeScripts
from ultracluster.clusters.job_scheduling import JobScheduling
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes.charts import DCGM, device_charts, job_charts
from ultracluster.kubernetes.karpenter import karpenter_charts
from ultracluster.kubernetes.mpi_operator import mpi_operator
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.storage import block_storage_class
from ultracluster.kubernetes.tolerations import system_tolerations
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import ScriptConfigurations
from ultracluster.model.inference import inference_of
from ultracluster.observability.workspace import MetricsDestination


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What was added."""

    groups: Sequence[EksNodeGroup]
    karpenter: EksKarpenter | None
    namespaces: IConstruct | None
    """Of teams; claims in them wait for it."""

    @property
    def karpenter_profile(self) -> str:
        """Name of the instance profile of Karpenter's nodes; empty without Karpenter."""
        return self.karpenter.instance_profile.instance_profile_name if self.karpenter else ""


def add_system(
    scope: Construct,
    cluster: Cluster,
    *,
    configurations: ScriptConfigurations,
    plane: IEksControlPlane,
    subnet: ec2.ISubnet,
    further_subnets: Mapping[str, ec2.ISubnet] | None = None,
    security_groups: Sequence[ec2.ISecurityGroup],
    key: kms.IKey,
    metrics: MetricsDestination | None = None,
    control_plane_subnets: Sequence[ec2.ISubnet] = (),
) -> System:
    """Add system nodes, add-ons, charts, the scheduler with its queues, and Karpenter if it is asked for.

    Args:
        scope: a stack or a construct of their own.
        cluster: what it is worked out to be.
        configurations: what its nodes read as `cluster.json`.
        plane: the control plane.
        subnet: of the nodes.
        further_subnets: those of groups in other zones, by zone id.
        security_groups: of the nodes.
        key: encrypts volumes.
        metrics: where metrics are written to; None where none are collected.
        control_plane_subnets: in two zones or more, for the collector that AWS runs.
    """
    settings = cluster.kubernetes
    assert settings
    groups = _add_groups(
        scope,
        cluster,
        settings,
        plane=plane,
        subnets={cluster.environment.network.zone_id: subnet, **(further_subnets or {})},
        security_groups=security_groups,
        key=key,
    )
    system: list[IConstruct] = [group.resource for group in groups]
    _add_addons(scope, cluster, settings, plane=plane, key=key, system=system)
    collector = add_metrics(
        scope,
        cluster,
        plane=plane,
        metrics=metrics,
        subnets=control_plane_subnets,
        security_groups=security_groups,
        after=system,
    )
    job_scheduling = _add_charts(
        scope, cluster, settings, plane=plane, key=key, system=system, first=[collector] if collector else []
    )
    karpenter = None
    if isinstance(settings, HyperPodEks):
        _add_cert_manager(scope, cluster, settings, plane=plane, system=system)
    elif settings.karpenter:
        karpenter = _add_karpenter(
            scope, cluster, settings, configurations, plane=plane, key=key, system=system
        )
    return System(groups=groups, karpenter=karpenter, namespaces=job_scheduling.namespaces)


def _add_groups(
    scope: Construct,
    cluster: Cluster,
    settings: Eks | HyperPodEks,
    *,
    plane: IEksControlPlane,
    subnets: Mapping[str, ec2.ISubnet],
    security_groups: Sequence[ec2.ISecurityGroup],
    key: kms.IKey,
) -> list[EksNodeGroup]:
    names = list(cluster.with_role("system"))
    if not names:
        return []
    repair, max_unavailable = None, 1
    if isinstance(settings, Eks):
        repair, max_unavailable = settings.node_repair, settings.max_unavailable
    role = node_role(scope, "NodeRole", cluster_arn=plane.cluster_arn, nodes="system")
    return [
        EksNodeGroup(
            scope,
            f"Group-{name}",
            name=name,
            cluster=plane,
            role=role,
            subnet=subnets[cluster.groups[name].zone_id],
            security_groups=security_groups,
            key=key,
            after=[role],
            repair=repair,
            max_unavailable=max_unavailable,
            resolved=cluster,
        )
        for name in names
    ]


def _add_addons(
    scope: Construct,
    cluster: Cluster,
    settings: Eks | HyperPodEks,
    *,
    plane: IEksControlPlane,
    key: kms.IKey,
    system: Sequence[IConstruct],
) -> None:
    EksAddons(
        scope,
        "Addons",
        cluster=plane,
        key=key,
        file_systems=cluster.lustre is not None or inference_of(cluster) is not None,
        # on HyperPod it stays where the inference operator may have it, too: a name is taken once
        buckets=() if cluster.traits.hyperpod else tuple(settings.mountpoint_s3.values()),
        hyperpod_volumes=cluster.traits.hyperpod,
        after=system,
        tolerations=system_tolerations(cluster),
    )


def _add_cert_manager(
    scope: Construct,
    cluster: Cluster,
    settings: HyperPodEks,
    *,
    plane: IEksControlPlane,
    system: Sequence[IConstruct],
) -> None:
    """Add what HyperPod's operators get their certificates from, if any of them is asked for."""
    if settings.training_operator or settings.inference or settings.spaces:
        cert_manager(
            scope,
            config=settings,
            cluster_name=plane.cluster_name,
            after=system,
            tolerations=system_tolerations(cluster),
        )


def _add_charts(
    scope: Construct,
    cluster: Cluster,
    settings: Eks | HyperPodEks,
    *,
    plane: IEksControlPlane,
    key: kms.IKey,
    system: Sequence[IConstruct],
    first: Sequence[IConstruct],
) -> JobScheduling:
    kubectl = plane.kubectl
    for chart in (*device_charts(cluster), *job_charts(cluster)):
        release = kubectl.add_chart(f"Chart-{chart.name}", chart)
        if chart.name == DCGM and first:
            # the class of its priority
            release.node.add_dependency(*first)
    if settings.mpi_operator:
        operator = mpi_operator(image=settings.mpi_operator_image, tolerations=system_tolerations(cluster))
        kubectl.add_manifest("MpiOperator", *operator)
    kubectl.add_manifest("BlockStorage", block_storage_class(key_arn=key.key_arn))
    job_scheduling = JobScheduling(
        scope,
        "Scheduling",
        kubectl=kubectl,
        cluster_name=plane.cluster_name,
        scheduling=scheduling(cluster),
        after=system,
    )
    isolate_namespaces(kubectl, cluster, made=job_scheduling.namespaces)
    return job_scheduling


def _add_karpenter(
    scope: Construct,
    cluster: Cluster,
    settings: Eks,
    configurations: ScriptConfigurations,
    *,
    plane: IEksControlPlane,
    key: kms.IKey,
    system: Sequence[IConstruct],
) -> EksKarpenter:
    karpenter = EksKarpenter(
        scope,
        "Karpenter",
        cluster_name=plane.cluster_name,
        cluster_arn=plane.cluster_arn,
        key=key,
        mirror=cluster.environment.software.mirror,
    )
    if cluster.runs_scripts and cluster.by_karpenter:
        # the file that its nodes run is named where their pools are; the role that reads it is here
        by_group = configurations.by_group
        scripts = NodeScripts(
            scope, "Scripts", configurations={name: by_group[name] for name in cluster.by_karpenter}
        )
        scripts.grant_read(karpenter.node_role)
    # its pods get their rights from the agent, and run on system nodes
    queue = karpenter.queue.queue_name
    karpenter.install(plane.kubectl, karpenter_charts(cluster, settings, queue=queue), after=system)
    return karpenter
