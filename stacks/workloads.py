"""The stack of what jobs on Kubernetes are given: volumes of the file systems, and HyperPod's add-ons.

It is the last one: it needs the control plane, system nodes and file systems, and on HyperPod the cluster.
"""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import CfnOutput, CfnWaitConditionHandle, Fn, Stack
from constructs import Construct, IConstruct

from stacks.admissions import admit_nodes
from stacks.control_plane import control_plane_parts
from stacks.parts import NetworkParts, StorageParts
from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.hyperpod.addons import HyperPodAddons
from ultracluster.config import Environment
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.kubernetes.eks_labels import GROUP_LABEL
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.storage import lustre_volume, open_zfs_volume, scratch_volume
from ultracluster.model.types import instance_type_of


class WorkloadStack(Stack):
    """Claims in the namespace `default` and in those of teams; add-ons that need HyperPod's nodes."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Environment,
        env: cdk.Environment,
        network: NetworkParts,
        storage: StorageParts,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=config.protect,
            description=f"Ultracluster {config.name}: volumes for jobs",
        )  # fmt: skip
        plane = control_plane_parts(config)
        kubectl = plane.kubectl(self)
        claims = _volumes(kubectl, config, storage=storage)
        volumes = list(claims)
        for one in scheduling(config).namespaces:
            volumes += _volumes(kubectl, config, storage=storage, namespace=one["metadata"]["name"])
        for admission in admit_nodes(self, config, network.security_group_id):
            for one in volumes:
                one.node.add_dependency(admission)
        if isinstance(config.orchestrator, HyperPodEks):
            HyperPodAddons(
                self,
                "Addons",
                config=config.orchestrator,
                cluster_name=plane.cluster_name,
                eks_cluster_arn=plane.cluster_arn,
                hyperpod_cluster_arn=Fn.import_value(f"{config.name}-cluster-ClusterArn"),
            )
        if not any(cdk.CfnResource.is_cfn_resource(one) for one in self.node.find_all()):
            CfnWaitConditionHandle(self, "Nothing")  # CloudFormation refuses a stack without resources
        CfnOutput(
            self,
            "Claims",
            value=" ".join(one.node.id.lower() for one in claims) or "none",
            description="Volume claims in the namespace default",
        )


def _volumes(
    kubectl: Kubectl, config: Environment, *, storage: StorageParts, namespace: str = "default"
) -> list[IConstruct]:
    """File systems and local disks as claims `lustre`, `home` and `scratch` of a namespace."""
    made: list[IConstruct] = []
    suffix = "" if namespace == "default" else f"-{namespace}"
    if storage.lustre:
        manifests = lustre_volume(
            file_system_id=storage.lustre.file_system_id,
            dns_name=storage.lustre.dns_name,
            mount_name=storage.lustre.mount_name,
            namespace=namespace,
            **_capacity(config.storage.lustre),
        )
        made.append(kubectl.add_manifest(f"Lustre{suffix}", *manifests))
    if storage.open_zfs:
        manifests = open_zfs_volume(
            dns_name=storage.open_zfs.dns_name, namespace=namespace, **_capacity(config.storage.openzfs)
        )
        made.append(kubectl.add_manifest(f"Home{suffix}", *manifests))
    if groups := _groups_with_disks(config):
        manifests = scratch_volume(groups=groups, label=GROUP_LABEL, namespace=namespace)
        made.append(kubectl.add_manifest(f"Scratch{suffix}", *manifests))
    return made


def _capacity(file_system: object) -> dict[str, Any]:
    gib = getattr(file_system, "capacity_gib", None)
    return {"capacity_gib": gib} if gib else {}


def _groups_with_disks(config: Environment) -> list[str]:
    """Compute groups whose nodes have /scratch: local disks, and our scripts, which set it up."""
    if getattr(config.orchestrator, "lifecycle", "none") == "none":
        return []
    return [
        name
        for name, group in config.groups("compute").items()
        if (known := instance_type_of(config, group)) and known.local_nvme_disks
    ]
