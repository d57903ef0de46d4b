"""The stack of what jobs on Kubernetes are given: volumes of the file systems, and HyperPod's add-ons.

It is the last one: it needs the control plane, system nodes and file systems, and on HyperPod the cluster.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnOutput, CfnWaitConditionHandle, Fn
from constructs import Construct

from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.clusters.eks.interface import IEksControlPlane, issuer_url_of
from ultracluster.clusters.eks.volumes import DEFAULT, add_volumes
from ultracluster.clusters.hyperpod.addons import SPACES, HyperPodAddons
from ultracluster.clusters.hyperpod.checkpoint_tier import CheckpointTierAccess
from ultracluster.clusters.hyperpod.spaces import give_spaces
from ultracluster.clusters.metrics import addon_destination
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.kubernetes.task_governance import governance_resources
from ultracluster.model import Cluster
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.part import PartStack, stack_name
from ultracluster.storage.lustre_file_system import mounts_of


class WorkloadStack(PartStack):
    """Claims in the namespace `default` and in those of teams; add-ons that need HyperPod's nodes."""

    def __init__(
        self,
        scope: Construct,
        cluster: Cluster,
        *,
        env: cdk.Environment,
        network: NetworkParts,
        storage: StorageParts,
        observability: ObservabilityParts | None = None,
    ) -> None:
        super().__init__(
            scope,
            cluster,
            "workloads",
            env=env,
            holds="volumes for jobs",
        )
        plane = imported_control_plane(self, cluster)
        lustre, open_zfs = storage.file_systems.lustre_in(self), storage.file_systems.open_zfs_in(self)
        further = storage.file_systems.further_lustre_in(self)
        claims = add_volumes(
            plane.kubectl,
            cluster,
            lustre=lustre.mount if lustre else None,
            further_lustre=mounts_of(further),
            open_zfs=open_zfs.mount if open_zfs else None,
        )
        nodes = network.connectable(self)
        rules = lustre.admit(self, "LustreClients", clients=nodes) if lustre else []
        for name, other in further.items():
            rules += other.admit(self, f"{name.capitalize()}LustreClients", clients=nodes)
        rules += open_zfs.admit(self, "OpenZfsClients", clients=nodes) if open_zfs else []
        for of_namespace in claims.values():
            for volume in of_namespace:
                volume.node.add_dependency(*rules)
        if isinstance(cluster.settings, HyperPodEks):  # EKS's own add-ons are with the system nodes
            self._add_hyperpod_addons(cluster, cluster.settings, plane, network, observability)
        if not any(cdk.CfnResource.is_cfn_resource(child) for child in self.node.find_all()):
            CfnWaitConditionHandle(self, "Nothing")  # CloudFormation refuses a stack without resources
        CfnOutput(
            self,
            "Claims",
            value=" ".join(claim.node.id.lower() for claim in claims[DEFAULT]) or "none",
            description="Volume claims in the namespace default",
        )

    def _add_hyperpod_addons(
        self,
        cluster: Cluster,
        settings: HyperPodEks,
        plane: IEksControlPlane,
        network: NetworkParts,
        observability: ObservabilityParts | None,
    ) -> None:
        metrics = observability.metrics if observability else None
        addons = HyperPodAddons(
            self,
            "Addons",
            config=settings,
            cluster_name=plane.cluster_name,
            eks_cluster_arn=plane.cluster_arn,
            hyperpod_cluster_arn=Fn.import_value(f"{stack_name(cluster, 'cluster')}-ClusterArn"),
            metrics=addon_destination(cluster, metrics),
            issuer_url=issuer_url_of(plane),
            vpc=network.vpc(self) if settings.inference else None,
            workspace_arn=metrics.workspace_arn if metrics else None,
            governance=governance_resources(cluster),
        )
        give_spaces(plane.kubectl, cluster, addon=addons.addons.get(SPACES))
        if settings.checkpoint_tier:
            CheckpointTierAccess(
                self,
                "CheckpointTier",
                cluster=cluster,
                tier=settings.checkpoint_tier,
                kubectl=plane.kubectl,
                cluster_name=plane.cluster_name,
                eks_cluster_arn=plane.cluster_arn,
            )
