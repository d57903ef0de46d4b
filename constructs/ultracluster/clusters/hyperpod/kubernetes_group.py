"""An instance group of HyperPod that joins an EKS cluster."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker

from ultracluster.catalog import InstanceType
from ultracluster.catalog.mig import mig_profiles
from ultracluster.clusters.hyperpod.group import common_properties, pascal, volumes
from ultracluster.config.nodes import RestrictedLustre, SharedRestrictedLustre
from ultracluster.kubernetes.labels import node_labels
from ultracluster.model import Group
from ultracluster.model.capacity import decide
from ultracluster.model.mig import gpu_layouts

EKS_ENTRY = "hyperpod_eks_on_create.sh"
"""There is no other lifecycle mode than `on-create`."""


def kubernetes_group(
    cluster_group: Group,
    *,
    role: iam.IRole,
    scripts_uri: str,
    key: kms.IKey | None,
    network: sagemaker.CfnCluster.VpcConfigProperty | None = None,
) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
    """The group as the API takes it.

    Args:
        cluster_group: what was asked for, with its type.
        role: of its nodes.
        scripts_uri: `s3://` folder of its lifecycle scripts.
        key: encrypts its volumes; None: one of AWS's.
        network: its own, where it is in another zone than the cluster.

    Raises:
        ValueError: capacity that HyperPod does not have, or GPUs without the MIG profile.
    """
    cluster = sagemaker.CfnCluster
    name, group, instance_type = cluster_group.name, cluster_group.settings, cluster_group.checked_type
    decision = decide(
        group.capacity, orchestrator="hyperpod-eks", placement="none", instance_type=instance_type
    )
    if decision.severity == "error":
        raise ValueError(f"{name}: {decision.message}")
    for layout in gpu_layouts(group, instance_type):
        if missing := [profile for profile in layout if profile not in mig_profiles(instance_type)]:
            raise ValueError(f"{name}: the GPUs of {instance_type.name} have no MIG profile {missing[0]}")
    types = [f"ml.{type_name}" for type_name in (group.instance_type, *group.instance_types)]
    return cluster.ClusterInstanceGroupProperty(
        instance_group_name=name,
        instance_type=None if group.instance_types else types[0],
        instance_requirements=(
            cluster.InstanceRequirementsProperty(instance_types=types) if group.instance_types else None
        ),
        execution_role=role.role_arn,
        life_cycle_config=cluster.ClusterLifeCycleConfigProperty(
            source_s3_uri=scripts_uri, on_create=EKS_ENTRY
        ),
        instance_storage_configs=volumes(cluster_group, key) or None,
        kubernetes_config=cluster.ClusterKubernetesConfigProperty(
            labels=node_labels(name, group, instance_type),
            taints=[
                cluster.ClusterKubernetesTaintProperty(
                    key=taint.key, value=taint.value or None, effect=taint.effect
                )
                for taint in group.taints
            ]
            or None,
        ),
        **common_properties(group, network),
    )


def restricted_group(
    cluster_group: Group,
    *,
    role: iam.IRole,
    key: kms.IKey | None,
    network: sagemaker.CfnCluster.VpcConfigProperty | None = None,
) -> sagemaker.CfnCluster.ClusterRestrictedInstanceGroupProperty:
    """A restricted group as the API takes it: it runs no scripts, and has no labels, taints or patching.

    Args:
        cluster_group: what was asked for, with its type.
        role: of its nodes, and of all jobs on them.
        key: encrypts its volumes; None: one of AWS's.
        network: its own, where it is in another zone than the cluster.
    """
    cluster, group = sagemaker.CfnCluster, cluster_group.settings
    assert group.restricted
    return cluster.ClusterRestrictedInstanceGroupProperty(
        instance_group_name=cluster_group.name,
        instance_type=cluster_group.checked_type.hyperpod_name,
        instance_count=group.count,
        execution_role=role.role_arn,
        threads_per_core=group.threads_per_core,
        instance_storage_configs=volumes(cluster_group, key) or None,
        on_start_deep_health_checks=[pascal(check) for check in group.deep_health_checks] or None,
        training_plan_arn=group.capacity.arn if group.capacity.kind == "training-plan" else None,
        override_vpc_config=network,
        environment_config=(
            cluster.EnvironmentConfigProperty(f_sx_lustre_config=_lustre(group.restricted.lustre))
            if group.restricted.lustre
            else None
        ),
    )


def shared_environment(
    shared: SharedRestrictedLustre,
) -> sagemaker.CfnCluster.RestrictedInstanceGroupsConfigProperty:
    """The Lustre file system that restricted groups share, as the API takes it."""
    cluster = sagemaker.CfnCluster
    return cluster.RestrictedInstanceGroupsConfigProperty(
        shared_environment_config=cluster.SharedEnvironmentConfigProperty(
            f_sx_lustre_deletion_policy="Keep" if shared.keep else "DeleteIfNotUsed",
            f_sx_lustre_config=_lustre(shared),
        )
    )


def _lustre(asked: RestrictedLustre) -> sagemaker.CfnCluster.FSxLustreConfigProperty:
    return sagemaker.CfnCluster.FSxLustreConfigProperty(
        size_in_gib=asked.capacity_gib, per_unit_storage_throughput=asked.throughput_mbps_per_tib
    )


def checked_types(group: Group) -> list[InstanceType]:
    """The type and further types of a group; rules refuse unknown ones."""
    assert all(group.types), f"{group.name}: the rules reject unknown types"
    return list(group.known_types)
