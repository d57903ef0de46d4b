"""Parts of a HyperPod instance group that are the same under Slurm and Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import IConstruct

from ultracluster.config.nodes import AutomaticPatching, NodeGroup, ScheduledPatching
from ultracluster.model import Cluster, Group
from ultracluster.security.acknowledgements import acknowledge

_Cluster = sagemaker.CfnCluster


def common_properties(group: NodeGroup, network: _Cluster.VpcConfigProperty | None = None) -> dict[str, Any]:
    """What the API knows of every group: count, capacity, threads, interfaces, checks, image, patching.

    Args:
        network: its own, where it is in another zone than the cluster.
    """
    return {
        "override_vpc_config": network,
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


class FurtherNetworks:
    """The networks of groups in other zones than the cluster's: the same security groups, another subnet."""

    def __init__(
        self,
        scope: IConstruct,
        *,
        cluster: Cluster,
        subnets: Mapping[str, ec2.ISubnet] | None,
        security_groups: Sequence[ec2.ISecurityGroup],
    ) -> None:
        """Choose the subnets that groups of the cluster ask for.

        Args:
            scope: who asks.
            cluster: what groups it has.
            subnets: by zone id.
            security_groups: of all nodes.

        Raises:
            ValueError: a group is in a zone of which no subnet is given.
        """
        imported = dict(subnets or {})
        asked = dict.fromkeys(group.settings.zone_id for group in cluster.in_service.values())
        if missing := [zone for zone in asked if zone and zone not in imported]:
            raise ValueError(
                f"{type(scope).__name__}: groups are in {', '.join(missing)}: give "
                f"further_subnets={{zone id: subnet}} with those of these zones"
            )
        self.subnets = {zone: imported[zone] for zone in asked if zone}
        self._security_groups = [group.security_group_id for group in security_groups]

    def of(self, group: NodeGroup) -> _Cluster.VpcConfigProperty | None:
        """That of a group; None where it has the cluster's."""
        if group.zone_id is None:
            return None
        return _Cluster.VpcConfigProperty(
            security_group_ids=self._security_groups, subnets=[self.subnets[group.zone_id].subnet_id]
        )


def accept_pins(resource: _Cluster, cluster: Cluster) -> None:
    """Let pinned images pass the CDK's own schema, which is older than the property.

    cfn-lint's has it, and judges all other properties of the resource as well.
    """
    if any(group.settings.image_release for group in cluster.in_service.values()):
        acknowledge(
            resource,
            {
                "CloudFormation-Validate::F3002": "CloudFormation and cfn-lint 1.58.0 have "
                "ImageReleaseVersion of an instance group; the "
                "schemas inside the CDK (2.275.0) do not yet."
            },
        )


def volumes(group: Group, key: kms.IKey | None) -> list[_Cluster.ClusterInstanceStorageConfigProperty]:
    """Root and second volume; without a key they are encrypted with one of AWS's."""
    arn = key.key_arn if key else None
    ebs_volumes: list[_Cluster.ClusterEbsVolumeConfigProperty] = []
    if arn:
        ebs_volumes.append(_Cluster.ClusterEbsVolumeConfigProperty(root_volume=True, volume_kms_key_id=arn))
    if size := group.second_volume_gib:
        ebs_volumes.append(
            _Cluster.ClusterEbsVolumeConfigProperty(volume_size_in_gb=size, volume_kms_key_id=arn)
        )
    return [
        _Cluster.ClusterInstanceStorageConfigProperty(ebs_volume_config=ebs_volume)
        for ebs_volume in ebs_volumes
    ]


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
