"""Parts of a HyperPod instance group that are the same under Slurm and Kubernetes."""

from __future__ import annotations

from typing import Any

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker

from ultracluster.config.nodes import AutomaticPatching, NodeGroup, ScheduledPatching

_Cluster = sagemaker.CfnCluster


def common_properties(group: NodeGroup) -> dict[str, Any]:
    """What the API knows of every group: count, capacity, threads, interfaces, checks, image, patching."""
    return {
        "instance_count": group.count,
        "min_instance_count": group.min_count,
        "threads_per_core": group.threads_per_core,
        "on_start_deep_health_checks": [pascal(check) for check in group.deep_health_checks] or None,
        "capacity_requirements": (
            _Cluster.ClusterCapacityRequirementsProperty(spot={}) if group.capacity.kind == "spot" else None
        ),
        "training_plan_arn": group.capacity.arn if group.capacity.kind == "training-plan" else None,
        "network_interface": (
            _Cluster.ClusterNetworkInterfaceProperty(interface_type=group.efa_interface)
            if group.efa_interface
            else None
        ),
        "image_id": group.image_in_template,
        "image_release_version": group.image_release,
        "scheduled_update_config": (
            _Cluster.ScheduledUpdateConfigProperty(
                schedule_expression=group.patching.schedule, deployment_config=_deployment(group.patching)
            )
            if isinstance(group.patching, ScheduledPatching)
            else None
        ),
        "auto_patch_config": (
            _Cluster.AutoPatchConfigProperty(
                patching_strategy=pascal(group.patching.kind), deployment_config=_deployment(group.patching)
            )
            if isinstance(group.patching, AutomaticPatching)
            else None
        ),
    }


def volumes(group: NodeGroup, key: kms.IKey | None) -> list[_Cluster.ClusterInstanceStorageConfigProperty]:
    """Root and second volume; without a key both are encrypted with one of AWS's."""
    arn = key.key_arn if key else None
    second = _Cluster.ClusterEbsVolumeConfigProperty(
        volume_size_in_gb=group.volume_gib, volume_kms_key_id=arn
    )
    found = [_Cluster.ClusterInstanceStorageConfigProperty(ebs_volume_config=second)]
    if arn:
        root = _Cluster.ClusterEbsVolumeConfigProperty(root_volume=True, volume_kms_key_id=arn)
        found.insert(0, _Cluster.ClusterInstanceStorageConfigProperty(ebs_volume_config=root))
    return found


def pascal(words: str) -> str:
    """`instance-stress` as `InstanceStress`."""
    return "".join(word.capitalize() for word in words.split("-"))


def _deployment(patching: ScheduledPatching | AutomaticPatching) -> _Cluster.DeploymentConfigProperty:
    rolling = None
    if patching.batch_percent:
        rolling = _Cluster.RollingUpdatePolicyProperty(
            maximum_batch_size=_Cluster.CapacitySizeConfigProperty(
                type="CAPACITY_PERCENTAGE", value=patching.batch_percent
            )
        )
    return _Cluster.DeploymentConfigProperty(
        wait_interval_in_seconds=patching.wait_seconds,
        rolling_update_policy=rolling,
        auto_rollback_configuration=[
            _Cluster.AlarmDetailsProperty(alarm_name=name) for name in patching.rollback_alarms
        ]
        or None,
    )
