"""Slurm's settings of a PCS cluster, its queues and its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_pcs as pcs
from constructs import Construct

from ultracluster.catalog import InstanceType
from ultracluster.catalog.pcs import pcs_since
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.pcs import Pcs
from ultracluster.config.slurm import named
from ultracluster.model.mig import gpu_layouts, slurm_gres
from ultracluster.slurm.configuration import SlurmConfiguration
from ultracluster.slurm.nodes import node_line

_CLUSTER = pcs.CfnCluster
_GROUP = pcs.CfnComputeNodeGroup


def check_groups(node_groups: Mapping[str, NodeGroup]) -> None:
    """Raises ValueError for a group that PCS cannot have."""
    for name, group in node_groups.items():
        if group.role not in ("login", "compute"):
            raise ValueError(f"group {name!r} has role {group.role!r}: PCS has login and compute groups")
        if group.image is None:
            raise ValueError(f"group {name!r} has no image: PCS has no default")


def cluster_configuration(
    config: Pcs, slurm: SlurmConfiguration
) -> pcs.CfnCluster.SlurmConfigurationProperty:
    """What the cluster as a whole is told."""
    accounted = config.accounting.mode == "standard"
    return _CLUSTER.SlurmConfigurationProperty(
        accounting=_CLUSTER.AccountingProperty(
            mode=config.accounting.mode.upper(),
            default_purge_time_in_days=config.accounting.purge_days if accounted else None,
        ),
        slurm_rest=_CLUSTER.SlurmRestProperty(mode="STANDARD") if config.rest else None,
        scale_down_idle_time_in_seconds=config.scaledown_seconds,
        slurm_custom_settings=[
            _CLUSTER.SlurmCustomSettingProperty(parameter_name=name, parameter_value=setting.value)
            for name, setting in slurm.handed_over.items()
        ]
        or None,
        slurmdbd_custom_settings=[
            _CLUSTER.SlurmdbdCustomSettingProperty(parameter_name=key, parameter_value=str(value))
            for key, value in config.slurmdbd_settings.items()
        ]
        or None,
        cgroup_custom_settings=[
            _CLUSTER.CgroupCustomSettingProperty(parameter_name=name, parameter_value=setting.value)
            for name, setting in slurm.cgroup.items()
        ]
        or None,
    )


def _gpu_record(config: Pcs, instance_type: InstanceType) -> dict[str, str] | None:
    """The line of gres.conf that names a type's GPUs; None where PCS describes them itself.

    It replaces PCS's own line (AWS PCS User Guide, "Configuring custom GRES settings in AWS PCS"). Of
    accelerators by AWS no device files are published there.
    """
    gpus = instance_type.accelerator
    named = config.slurm_version < pcs_since("detects_gpus") if config.gpu_types is None else config.gpu_types
    if not named or gpus is None or gpus.manufacturer != "NVIDIA":
        return None
    line = node_line("", "", 1, instance_type)
    return {"Name": "gpu", "Type": line.gpu_type, "File": line.gpu_files}


def node_configuration(
    config: Pcs, group: NodeGroup, instance_type: InstanceType
) -> pcs.CfnComputeNodeGroup.SlurmConfigurationProperty | None:
    """A group's own parameters and idle time, and its devices: yours, else the names of its GPUs."""
    settings = dict(group.slurm_settings)
    records = [record.line for record in group.gres]
    if group.mig_key:
        # the devices are only there when the node has booted (AWS PCS User Guide, Configuring MIG)
        records.insert(0, {"AutoDetect": "nvml"})
        yours = settings.pop(*named(settings, "gres"))
        ours = slurm_gres(gpu_layouts(group, instance_type), node_line("", "", 1, instance_type).gpu_type)
        settings["Gres"] = ",".join(filter(None, (ours, str(yours))))
        if config.slurm_version < pcs_since("detects_gpus") and instance_type.numa_nodes:
            settings = {"Sockets": str(instance_type.numa_nodes)} | settings
    elif not records and group.role == "compute" and (ours := _gpu_record(config, instance_type)):
        assert instance_type.accelerator
        records = [ours]
        settings["Gres"] = f"gpu:{ours['Type']}:{instance_type.accelerator.count}"
    if not (settings or records or group.scaledown_seconds):
        return None
    return _GROUP.SlurmConfigurationProperty(
        slurm_custom_settings=[
            _GROUP.SlurmCustomSettingProperty(parameter_name=key, parameter_value=str(value))
            for key, value in settings.items()
        ]
        or None,
        gres_custom_settings=records or None,
        scale_down_idle_time_in_seconds=group.scaledown_seconds,
    )


def queues(
    scope: Construct,
    partitions: Mapping[str, Mapping[str, str]],
    node_groups: Mapping[str, NodeGroup],
    resources: Mapping[str, pcs.CfnComputeNodeGroup],
) -> dict[str, pcs.CfnQueue]:
    """A queue for each partition, by name; PCS has them in place of Slurm's partitions.

    Args:
        scope: the cluster.
        partitions: parameters of each.
        node_groups: groups by name.
        resources: the same groups as PCS has them.
    """
    members: dict[str, list[str]] = {}
    for name, group in node_groups.items():
        if group.role == "compute":
            members.setdefault(group.partition or name, []).append(name)
    queues_by_name: dict[str, pcs.CfnQueue] = {}
    for partition, names in members.items():
        settings = partitions[partition]
        queues_by_name[partition] = pcs.CfnQueue(
            scope,
            f"Queue{partition}",
            name=partition,
            cluster_id=resources[names[0]].cluster_id,
            compute_node_group_configurations=[
                pcs.CfnQueue.ComputeNodeGroupConfigurationProperty(
                    compute_node_group_id=resources[name].attr_id
                )
                for name in names
            ],
            slurm_configuration=pcs.CfnQueue.SlurmConfigurationProperty(
                slurm_custom_settings=[
                    pcs.CfnQueue.SlurmCustomSettingProperty(parameter_name=key, parameter_value=value)
                    for key, value in settings.items()
                ]
            )
            if settings
            else None,
        )
    return queues_by_name
