"""The stack of what jobs on Kubernetes are given: volumes of the file systems, and HyperPod's add-ons.

It is the last one: it needs the control plane, system nodes and file systems, and on HyperPod the cluster.
"""

from __future__ import annotations

from typing import assert_never

import aws_cdk as cdk
from aws_cdk import CfnOutput, CfnWaitConditionHandle, Fn, Stack
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.hyperpod.addons import HyperPodAddons
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.config.storage import ExistingOpenZfs
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.storage import lustre_volume, open_zfs_volume, scratch_volume
from ultracluster.model import Cluster
from ultracluster.stacks.admissions import admit_nodes
from ultracluster.stacks.control_plane import control_plane_parts
from ultracluster.stacks.parts import NetworkParts, StorageParts


class WorkloadStack(Stack):
    """Claims in the namespace `default` and in those of teams; add-ons that need HyperPod's nodes."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        network: NetworkParts,
        storage: StorageParts,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: volumes for jobs",
        )  # fmt: skip
        plane = control_plane_parts(cluster)
        kubectl = plane.kubectl(self)
        claims = _volumes(kubectl, cluster, storage=storage)
        volumes = list(claims)
        for namespace in scheduling(cluster).namespaces:
            volumes += _volumes(kubectl, cluster, storage=storage, namespace=namespace["metadata"]["name"])
        for admission in admit_nodes(self, cluster.environment.storage, network.security_group_id):
            for volume in volumes:
                volume.node.add_dependency(admission)
        settings = cluster.kubernetes
        assert settings
        match settings:
            case Eks():
                pass  # its add-ons need no nodes of another service: they are with the system nodes
            case HyperPodEks():
                HyperPodAddons(
                    self,
                    "Addons",
                    config=settings,
                    cluster_name=plane.cluster_name,
                    eks_cluster_arn=plane.cluster_arn,
                    hyperpod_cluster_arn=Fn.import_value(
                        f"{cluster.environment.stack_name('cluster')}-ClusterArn"
                    ),
                )
            case _ as never:
                assert_never(never)
        if not any(cdk.CfnResource.is_cfn_resource(child) for child in self.node.find_all()):
            CfnWaitConditionHandle(self, "Nothing")  # CloudFormation refuses a stack without resources
        CfnOutput(
            self,
            "Claims",
            value=" ".join(claim.node.id.lower() for claim in claims) or "none",
            description="Volume claims in the namespace default",
        )


def _volumes(
    kubectl: Kubectl, cluster: Cluster, *, storage: StorageParts, namespace: str = "default"
) -> list[IConstruct]:
    """File systems and local disks as claims `lustre`, `home` and `scratch` of a namespace."""
    volumes: list[IConstruct] = []
    suffix = "" if namespace == "default" else f"-{namespace}"
    if storage.lustre:
        manifests = lustre_volume(
            file_system_id=storage.lustre.file_system_id,
            dns_name=storage.lustre.dns_name,
            mount_name=storage.lustre.mount_name,
            namespace=namespace,
            capacity_gib=cluster.lustre.capacity_gib if cluster.lustre else None,
        )
        volumes.append(kubectl.add_manifest(f"Lustre{suffix}", *manifests))
    home = cluster.environment.storage.openzfs
    if storage.open_zfs:
        manifests = open_zfs_volume(
            dns_name=storage.open_zfs.dns_name,
            namespace=namespace,
            capacity_gib=None if isinstance(home, ExistingOpenZfs) or home is None else home.capacity_gib,
        )
        volumes.append(kubectl.add_manifest(f"Home{suffix}", *manifests))
    if groups := _groups_with_disks(cluster):
        manifests = scratch_volume(groups=groups, label=GROUP_LABEL, namespace=namespace)
        volumes.append(kubectl.add_manifest(f"Scratch{suffix}", *manifests))
    return volumes


def _groups_with_disks(cluster: Cluster) -> list[str]:
    """Compute groups whose nodes have /scratch: local disks, and our scripts, which set it up."""
    compute = cluster.with_role("compute") if cluster.runs_scripts else {}
    return [name for name, group in compute.items() if group.type and group.type.local_nvme_disks]
