"""File systems and local disks as claims of volumes, for the jobs of a Kubernetes cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_eks_v2 as eks
from constructs import IDependable

from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.eks.system import System
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.config.storage import FIRST_LUSTRE, ExistingOpenZfs
from ultracluster.kubernetes.isolation import job_namespace, job_user
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.kubernetes.storage import (
    lustre_claim,
    lustre_volume,
    open_zfs_volume,
    s3_volume,
    scratch_volume,
)
from ultracluster.model import Cluster
from ultracluster.model.mounts import LustreMount, OpenZfsMount
from ultracluster.storage.lustre_file_system import mounts_of
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem

DEFAULT = "default"


def add_volumes(
    kubectl: Kubectl,
    cluster: Cluster,
    *,
    lustre: LustreMount | None,
    further_lustre: Mapping[str, LustreMount],
    open_zfs: OpenZfsMount | None,
) -> dict[str, list[eks.KubernetesManifest]]:
    """Claims `lustre`, `lustre-<name>` of further Lustre file systems, `home`, `scratch` and `s3-<name>` of
    folders of S3 in the namespace `default` and in those of teams, by namespace.

    Args:
        kubectl: the way into the cluster.
        cluster: what it is worked out to be.
        lustre: the file system of the claim `lustre`.
        further_lustre: those of the claims `lustre-<name>`.
        open_zfs: that of the claim `home`.
    """
    lustres = {**({FIRST_LUSTRE: lustre} if lustre else {}), **further_lustre}
    names = [DEFAULT, *(namespace["metadata"]["name"] for namespace in scheduling(cluster).namespaces)]
    return {name: _volumes(kubectl, cluster, lustres, open_zfs, name) for name in names}


def give_volumes(
    kubectl: Kubectl,
    cluster: Cluster,
    *,
    lustre: ILustreFileSystem | None,
    further_lustre: Mapping[str, ILustreFileSystem] | None,
    open_zfs: IOpenZfsFileSystem | None,
    system: System,
    after: Sequence[IDependable],
) -> None:
    """Add the claims, where the namespaces of teams are in the same stack.

    Args:
        kubectl: the way into the cluster.
        cluster: what it is worked out to be.
        lustre: the file system of the claim `lustre`.
        further_lustre: those of the claims `lustre-<name>`.
        open_zfs: that of the claim `home`.
        system: what was installed for all users.
        after: rules without which no pod can mount.
    """
    claims = add_volumes(
        kubectl,
        cluster,
        lustre=lustre.mount if lustre else None,
        further_lustre=mounts_of(further_lustre),
        open_zfs=open_zfs.mount if open_zfs else None,
    )
    for name, volumes in claims.items():
        for volume in volumes:
            volume.node.add_dependency(*after)
            if system.namespaces and name != DEFAULT:
                volume.node.add_dependency(system.namespaces)


def _volumes(
    kubectl: Kubectl,
    cluster: Cluster,
    lustres: Mapping[str, LustreMount],
    open_zfs: OpenZfsMount | None,
    namespace: str,
) -> list[eks.KubernetesManifest]:
    volumes: list[eks.KubernetesManifest] = []
    suffix = "" if namespace == DEFAULT else f"-{namespace}"
    for name, lustre in lustres.items():
        facts = cluster.lustres.get(name)
        manifests = lustre_volume(
            file_system_id=lustre.file_system_id,
            dns_name=lustre.dns_name,
            mount_name=lustre.mount_name,
            namespace=namespace,
            name=lustre_claim(name),
            capacity_gib=facts.capacity_gib if facts else None,
            groups=facts.groups if facts else (),
            label=GROUP_LABEL,
        )
        further = "" if name == FIRST_LUSTRE else f"-{name}"
        volumes.append(kubectl.add_manifest(f"Lustre{further}{suffix}", *manifests))
    home = cluster.environment.storage.openzfs
    if open_zfs:
        manifests = open_zfs_volume(
            dns_name=open_zfs.dns_name,
            namespace=namespace,
            capacity_gib=None if isinstance(home, ExistingOpenZfs) or home is None else home.capacity_gib,
        )
        volumes.append(kubectl.add_manifest(f"Home{suffix}", *manifests))
    settings = cluster.kubernetes
    for name, asked in settings.mountpoint_s3.items() if settings else ():
        manifests = s3_volume(
            name, asked, region=cluster.region, namespace=namespace, user=_users(cluster).get(namespace)
        )
        volumes.append(kubectl.add_manifest(f"S3-{name}{suffix}", *manifests))
    if groups := _groups_with_disks(cluster):
        manifests = scratch_volume(groups=groups, label=GROUP_LABEL, namespace=namespace)
        volumes.append(kubectl.add_manifest(f"Scratch{suffix}", *manifests))
    return volumes


def _users(cluster: Cluster) -> dict[str, int | None]:
    """Return the user that pods of jobs run as, by namespace."""
    teams = (None, *cluster.environment.teams)
    return {job_namespace(cluster, team).name: job_user(cluster, team) for team in teams}


def _groups_with_disks(cluster: Cluster) -> list[str]:
    """Compute groups whose nodes have /scratch: local disks, and our scripts, which set it up."""
    compute = cluster.with_role("compute") if cluster.runs_scripts else {}
    return [name for name, group in compute.items() if group.type and group.type.local_nvme_disks]
