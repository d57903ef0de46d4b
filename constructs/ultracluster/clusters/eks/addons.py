"""Add-ons of EKS that run on nodes, each pinned (EKS User Guide, "Amazon EKS add-ons")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from ultracluster.catalog.eks import addon_tolerations, addon_version
from ultracluster.clusters.eks.interface import IEksControlPlane, arn_of
from ultracluster.clusters.eks.roles import addon_role, allow_file_systems
from ultracluster.clusters.eks.volume_rights import allow_volumes, allow_volumes_on_hyperpod
from ultracluster.config.storage import JobBucket
from ultracluster.kubernetes.tolerations import Tolerations, with_tolerations
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.security.job_role import allow_buckets

MONITORING = {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}
"""Of the node monitoring agent. By default its DCGM server tolerates no taint and runs on no GPU node of
ours; the agent then calls each of them faulty, and node repair ends healthy nodes
(aws/containers-roadmap#2567). The key is in the add-on's schema (awslabs/eks-node-monitoring-agent, charts,
values.yaml)."""


S3_DRIVER_VALUES = {"node": {"tolerateAllTaints": True}}
"""Buckets are mounted on accelerated nodes, whatever taints their groups have."""


class EksAddons(Construct):
    """What runs on nodes: DNS, volumes, node monitoring."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: IEksControlPlane,
        key: kms.IKey | ClusterKey | None = None,
        file_systems: bool = True,
        buckets: Sequence[JobBucket] = (),
        hyperpod_volumes: bool = False,
        after: Sequence[IConstruct] = (),
        tolerations: Tolerations | None = None,
    ) -> None:
        """Add them.

        Args:
            cluster: a control plane with the add-ons of `EksControlPlane`; its release decides theirs.
            key: encrypts volumes; that of the control plane by default.
            file_systems: with the driver that mounts FSx for Lustre; by default True.
            buckets: folders of S3 that Mountpoint's driver mounts, which is added for them; by default none.
            hyperpod_volumes: attach EBS volumes to HyperPod's nodes, too; by default False.
            after: groups of CPU nodes for it: without one CoreDNS stays degraded, and its creation fails. By
                default none.
            tolerations: of the taints of these groups; by default none.
        """
        super().__init__(scope, construct_id)
        # from its name, so that roles do not wait for it
        arn = arn_of(self, cluster.cluster_name)
        key = ClusterKey.of(self, key or cluster.key)

        def role(addon: str) -> iam.Role:
            return addon_role(self, f"{_pascal(addon)}Role", cluster_arn=arn, addon=addon)

        volumes = role("aws-ebs-csi-driver")
        allow_volumes(volumes, key, cluster_name=cluster.cluster_name)
        if hyperpod_volumes:
            allow_volumes_on_hyperpod(volumes, eks_cluster_arn=arn, cluster_name=cluster.cluster_name)
        accounts: dict[str, dict[str, iam.Role]] = {
            "coredns": {},
            "aws-ebs-csi-driver": {"ebs-csi-controller-sa": volumes},
            "eks-node-monitoring-agent": {},
        }
        if file_systems:
            mounts = role("aws-fsx-csi-driver")
            allow_file_systems(mounts)
            accounts["aws-fsx-csi-driver"] = {"fsx-csi-controller-sa": mounts}
        for name, roles in accounts.items():
            added = pinned_addon(
                self,
                name,
                cluster_name=cluster.cluster_name,
                kubernetes_version=cluster.kubernetes_version,
                accounts=roles,
                values=with_tolerations(
                    MONITORING if name == "eks-node-monitoring-agent" else {},
                    addon_tolerations(name),
                    tolerations or [],
                ),
            )
            added.node.add_dependency(*cluster.before_nodes, *after)
        if buckets:
            driver = s3_driver(
                self,
                cluster_name=cluster.cluster_name,
                kubernetes_version=cluster.kubernetes_version,
                buckets=buckets,
            )
            driver.node.add_dependency(*cluster.before_nodes, *after)


def s3_driver(
    scope: Construct, *, cluster_name: str, kubernetes_version: str, buckets: Sequence[JobBucket]
) -> eks.CfnAddon:
    """Mountpoint's driver, whose pods have one role for these folders, whoever mounts them."""
    name = "aws-mountpoint-s3-csi-driver"
    role = addon_role(scope, f"{_pascal(name)}Role", cluster_arn=arn_of(scope, cluster_name), addon=name)
    allow_buckets(role, buckets, mounts=True)
    return pinned_addon(
        scope,
        name,
        cluster_name=cluster_name,
        kubernetes_version=kubernetes_version,
        accounts={"s3-csi-driver-sa": role},
        values=S3_DRIVER_VALUES,
    )


def pinned_addon(
    scope: Construct,
    name: str,
    *,
    cluster_name: str,
    kubernetes_version: str,
    accounts: Mapping[str, iam.Role] | None = None,
    values: Mapping[str, Any] | None = None,
) -> eks.CfnAddon:
    """An add-on in the catalogue's version.

    Args:
        accounts: role by service account, through EKS Pod Identity.
        values: configuration values, as in the add-on's schema.
    """
    addon = eks.CfnAddon(
        scope,
        _pascal(name),
        addon_name=name,
        addon_version=addon_version(name, kubernetes_version),
        cluster_name=cluster_name,
        resolve_conflicts="OVERWRITE",
        configuration_values=json.dumps(values, sort_keys=True) if values else None,
        pod_identity_associations=[
            eks.CfnAddon.PodIdentityAssociationProperty(service_account=account, role_arn=role.role_arn)
            for account, role in (accounts or {}).items()
        ]
        or None,
    )
    for role in (accounts or {}).values():
        addon.node.add_dependency(role)
    return addon


def _pascal(words: str) -> str:
    """`vpc-cni` as `VpcCni`."""
    return "".join(word.capitalize() for word in words.split("-"))
