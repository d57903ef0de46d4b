"""Amazon EKS alone: what needs the file systems. Its nodes are in the stack of the control plane."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, CfnWaitConditionHandle, Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from stacks.control_plane import control_plane_parts
from stacks.parts import NetworkParts, StorageParts
from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks
from ultracluster.orchestrators.eks_kubectl import Kubectl
from ultracluster.orchestrators.eks_nodes import GROUP_LABEL
from ultracluster.rendering.kubernetes_scheduling import scheduling
from ultracluster.rendering.kubernetes_storage import lustre_volume, open_zfs_volume, scratch_volume
from ultracluster.rules.types import instance_type_of


def add_cluster(
    stack: Stack, config: Environment, *, network: NetworkParts, storage: StorageParts, key: kms.IKey
) -> list[IConstruct]:
    """Add volumes and outputs; gives what must wait until file systems admit the nodes."""
    assert isinstance(config.orchestrator, Eks)
    parts = control_plane_parts(config)
    kubectl = parts.kubectl(stack)
    waiting = add_volumes(kubectl, config, storage=storage)
    if not waiting:
        CfnWaitConditionHandle(stack, "Nothing")  # CloudFormation refuses a stack without resources
    CfnOutput(
        stack,
        "Claims",
        value=" ".join(one.node.id.lower() for one in waiting) or "none",
        description="Volume claims in the namespace default",
    )
    return waiting + add_team_volumes(kubectl, config, storage=storage)


def add_team_volumes(kubectl: Kubectl, config: Environment, *, storage: StorageParts) -> list[IConstruct]:
    """The same claims in each namespace of a team that is made here."""
    made: list[IConstruct] = []
    for one in scheduling(config).namespaces:
        made += add_volumes(kubectl, config, storage=storage, namespace=one["metadata"]["name"])
    return made


def add_volumes(
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
