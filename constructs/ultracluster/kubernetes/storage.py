"""File systems that exist, as volumes of Kubernetes: one PersistentVolume and one claim for each namespace.

They are static: nothing in the cluster makes or deletes a file system, and a deleted claim deletes no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ultracluster.config.storage import FIRST_LUSTRE, JobBucket

Manifest = dict[str, Any]
_ANY_GIB = 1200
"""Kubernetes asks for a size, and nobody looks at it."""


def lustre_claim(name: str) -> str:
    """The claim of a Lustre file system: `lustre` of the first, `lustre-rack2` of a further one."""
    return "lustre" if name == FIRST_LUSTRE else f"lustre-{name}"


def lustre_volume(
    *,
    file_system_id: str,
    dns_name: str,
    mount_name: str,
    namespace: str = "default",
    name: str = "lustre",
    capacity_gib: int | None = None,
    read_only: bool = False,
    groups: Sequence[str] = (),
    label: str = "",
) -> tuple[Manifest, Manifest]:
    """FSx for Lustre through its CSI driver (kubernetes-sigs/aws-fsx-csi-driver, static provisioning).

    Args:
        file_system_id: `fs-...`.
        dns_name: of the file system.
        mount_name: of the file system.
        namespace: of the claim; a volume belongs to one claim, so each namespace has its own.
        name: of the claim.
        capacity_gib: shown, and not enforced; 1200 where it is unknown.
        read_only: mounted read-only.
        groups: node groups on which pods may mount it; all by default.
        label: key of the label that holds a node's group; only with `groups`.

    Returns:
        The volume and its claim.
    """
    source: Manifest = {
        "csi": {
            "driver": "fsx.csi.aws.com",
            # two volumes with one handle on one node are taken for one
            "volumeHandle": f"{file_system_id}-{namespace}",
            "volumeAttributes": {"dnsname": dns_name, "mountname": mount_name},
        },
        **(_only_on(groups, label) if groups else {}),
    }
    options = ["flock", "noatime", *(["ro"] if read_only else [])]
    return _pair(name, namespace, capacity_gib or 1200, source, options)


def s3_claims(volumes: Mapping[str, JobBucket]) -> dict[str, str]:
    """Claims of the volumes of `mountpoint_s3`, and where jobs mount each."""
    return {f"s3-{name}": f"/s3/{name}" for name in volumes}


def s3_volume(
    name: str, asked: JobBucket, *, region: str, namespace: str = "default", user: int | None = None
) -> tuple[Manifest, Manifest]:
    """A folder of S3 through Mountpoint's CSI driver (awslabs/mountpoint-s3-csi-driver 57c6bed,
    docs/CONFIGURATION.md, examples/kubernetes/static_provisioning).

    Args:
        name: of the volume; its claim is `s3-<name>`.
        asked: the folder, and whether it is written.
        region: of the bucket: pods do not reach the metadata of nodes, which would state it.
        namespace: of the claim.
        user: who owns the files in the eyes of pods; by default whoever writes may.

    Returns:
        The volume and its claim.
    """
    claim = f"s3-{name}"
    source: Manifest = {
        "csi": {
            "driver": "s3.csi.aws.com",
            "volumeHandle": f"{claim}-{namespace}",  # of two with one handle the driver serves one
            "volumeAttributes": {"bucketName": asked.bucket},
        }
    }
    # pods that are not root see nothing without it
    options = ["allow-other", f"region {region}"]
    if asked.prefix:
        options.append(f"prefix {asked.prefix.rstrip('/')}/")
    if user is not None:
        options += [f"uid={user}", f"gid={user}"]
    if not asked.write:
        options.append("read-only")
    else:
        options += ["allow-delete", "allow-overwrite"]
        options += ["dir-mode=0777", "file-mode=0666"] if user is None else []
    return _pair(claim, namespace, _ANY_GIB, source, options)


def open_zfs_volume(
    *,
    dns_name: str,
    namespace: str = "default",
    name: str = "home",
    path: str = "/fsx",
    capacity_gib: int | None = None,
) -> tuple[Manifest, Manifest]:
    """FSx for OpenZFS over NFS 4.1 (FSx for OpenZFS User Guide, "Mounting your volumes").

    Args:
        dns_name: of the file system.
        namespace: of the claim.
        name: of the claim.
        path: of the volume within the file system.
        capacity_gib: shown, and not enforced; 1024 where it is unknown.

    Returns:
        The volume and its claim.
    """
    source: Manifest = {"nfs": {"server": dns_name, "path": path}}
    return _pair(
        name,
        namespace,
        capacity_gib or 1024,
        source,
        ["nfsvers=4.1", "hard", "noatime", "rsize=1048576", "wsize=1048576"],
    )


def scratch_volume(
    *,
    groups: Sequence[str],
    label: str,
    namespace: str = "default",
    name: str = "scratch",
    path: str = "/scratch",
    capacity_gib: int = 1024,
) -> tuple[Manifest, Manifest]:
    """The local NVMe disks: each pod sees those of its own node, and what is on them goes with the node.

    Args:
        groups: node groups whose nodes have local disks.
        label: key of the label that holds a node's group.
        namespace: of the claim.
        name: of the claim.
        path: where the lifecycle scripts mount them.
        capacity_gib: shown, and not enforced.

    Returns:
        The volume and its claim.
    """
    source: Manifest = {
        # it must be there: a folder made in its place would fill the root volume
        "hostPath": {"path": path, "type": "Directory"},
        **_only_on(groups, label),
    }
    return _pair(name, namespace, capacity_gib, source, [])


def _only_on(groups: Sequence[str], label: str) -> Manifest:
    """Pods with the volume are placed on nodes of these groups."""
    requirement = {"key": label, "operator": "In", "values": list(groups)}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}


def block_storage_class(*, key_arn: str, name: str = "gp3") -> Manifest:
    """The default class of EBS volumes: gp3, encrypted with the key (kubernetes-sigs/aws-ebs-csi-driver,
    parameters). EKS makes no default class from 1.30 on.

    Args:
        key_arn: of the KMS key, which the driver's role must be allowed to use.
        name: of the class.
    """
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "encrypted": "true", "kmsKeyId": key_arn},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",  # in the zone of the pod
        "allowVolumeExpansion": True,
    }


def _pair(
    name: str, namespace: str, capacity_gib: int, source: Mapping[str, Any], options: Sequence[str]
) -> tuple[Manifest, Manifest]:
    volume = f"{name}-{namespace}"
    shared: Manifest = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",  # else the default class would make a volume
        "volumeMode": "Filesystem",
    }
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **shared,
                "capacity": {"storage": f"{capacity_gib}Gi"},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "name": name,
                    "namespace": namespace,
                },
                **({"mountOptions": list(options)} if options else {}),
                **source,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                **shared,
                "volumeName": volume,
                "resources": {"requests": {"storage": f"{capacity_gib}Gi"}},
            },
        },
    )
