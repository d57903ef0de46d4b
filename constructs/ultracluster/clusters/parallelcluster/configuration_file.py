"""An environment as AWS ParallelCluster's configuration file (ParallelCluster User Guide, "Cluster
configuration file"; its own schema and validators of 3.16.1 are the authority).

Rules speak before this does: what they refuse is not looked for again here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.clusters.parallelcluster.actions import node_actions
from ultracluster.clusters.parallelcluster.deployed_values import DeployedValues
from ultracluster.clusters.parallelcluster.queues import node_iam, queues, root_volume, slurm_settings
from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.parallelcluster import DirectoryService, ParallelCluster

Mapped = dict[str, Any]

NO_SSH = "127.0.0.1/32"
"""AllowedIps: nobody. The default is the whole internet; people come in through Session Manager. It counts
where ParallelCluster makes a security group, which it does not beside ours: it is written in any case."""


def cluster_configuration(environment: Environment, values: DeployedValues) -> Mapped:
    """The configuration of one cluster, ready to be written as YAML or given to the custom resource.

    Args:
        environment: of kind `parallelcluster`, and free of findings of the rules.
        values: ids of what is deployed already; tokens and placeholders will do.

    Raises:
        ValueError: another orchestrator, not exactly one controller group, or groups of one partition that
            differ where ParallelCluster has one setting for the whole queue.
    """
    orchestrator = settings_of(environment)
    controllers = list(environment.groups("controller").items())
    if len(controllers) != 1:
        raise ValueError(f"ParallelCluster has one head node, {environment.name} has {len(controllers)}")
    name, controller = controllers[0]
    configuration: Mapped = {
        "Region": environment.region,
        "Image": _image(orchestrator.os, controller.image_in_template),
        "Imds": {"ImdsSupport": "v2.0"},
        "HeadNode": _head(environment, name, controller, values),
    }
    if pools := _login_pools(environment, values):
        configuration["LoginNodes"] = {"Pools": pools}
    configuration["Scheduling"] = {
        "Scheduler": "slurm",
        "ScalingStrategy": orchestrator.scaling,
        "SlurmSettings": slurm_settings(environment, values),
        "SlurmQueues": queues(environment, values),
    }
    if storage := _shared_storage(environment, values):
        configuration["SharedStorage"] = storage
    if orchestrator.directory_service:
        configuration["DirectoryService"] = _directory(orchestrator.directory_service)
    if orchestrator.permissions_boundary:
        configuration["Iam"] = {"PermissionsBoundary": orchestrator.permissions_boundary}
    configuration["Monitoring"] = _monitoring(orchestrator)
    configuration["DeploymentSettings"] = _deployment(environment, values)
    configuration["DevSettings"] = _dev(orchestrator)
    configuration["Tags"] = [{"Key": key, "Value": value} for key, value in _tags(environment).items()]
    return configuration


def settings_of(environment: Environment) -> ParallelCluster:
    """The environment's ParallelCluster settings.

    Raises:
        ValueError: it has another orchestrator.
    """
    orchestrator = environment.orchestrator
    if not isinstance(orchestrator, ParallelCluster):
        raise ValueError(f"orchestrator.kind is {orchestrator.kind}; this takes kind: parallelcluster")
    return orchestrator


def _head(environment: Environment, name: str, group: NodeGroup, values: DeployedValues) -> Mapped:
    orchestrator = settings_of(environment)
    head: Mapped = {
        "InstanceType": group.instance_type,
        "Networking": {"SubnetId": values.subnet_id, "SecurityGroups": [values.security_group_id]},
        "Ssh": {"AllowedIps": NO_SSH},
        "LocalStorage": {"RootVolume": root_volume(environment, {name: group}, group.root_volume_gib)},
        "SharedStorageType": orchestrator.head_storage.capitalize(),
        "Iam": node_iam(values),
    }
    if orchestrator.head_storage == "efs":
        # the managed EFS is not encrypted unless one asks
        head["SharedStorageEfsSettings"] = {"Encrypted": True}
    if group.threads_per_core == 1:
        head["DisableSimultaneousMultithreading"] = True
    if group.image:
        head["Image"] = {"CustomAmi": group.image_in_template}
    if actions := node_actions(environment, values, name, head=True):
        head["CustomActions"] = actions
    return head


def _image(system: str, controller_image: str | None) -> Mapped:
    # there is no official AMI of Rocky: the cluster as a whole has to name one, too
    own = {"CustomAmi": controller_image} if system.startswith("rocky") and controller_image else {}
    return {"Os": system, **own}


def _login_pools(environment: Environment, values: DeployedValues) -> list[Mapped]:
    pools: list[Mapped] = []
    for name, group in environment.groups("login").items():
        pool: Mapped = {
            "Name": name,
            "InstanceType": group.instance_type,
            "Count": group.count,
            "Networking": {"SubnetIds": [values.subnet_id], "SecurityGroups": [values.security_group_id]},
            "Ssh": {"AllowedIps": NO_SSH},
            "Iam": node_iam(values),
        }
        if group.image:
            pool["Image"] = {"CustomAmi": group.image_in_template}
        if actions := node_actions(environment, values, name):
            pool["CustomActions"] = actions
        pools.append(pool)
    return pools


def _shared_storage(environment: Environment, values: DeployedValues) -> list[Mapped]:
    """File systems by id: ParallelCluster cannot make a Lustre one with EFA, and would own their lives."""
    lustre, openzfs = environment.storage.lustre, environment.storage.openzfs
    storage: list[Mapped] = []
    if openzfs:
        storage.append(
            {
                "Name": "openzfs",
                "MountDir": openzfs.mount_path,
                "StorageType": "FsxOpenZfs",
                "FsxOpenZfsSettings": {"VolumeId": values.openzfs_volume_id},
            }
        )
    if lustre:
        storage.append(
            {
                "Name": "lustre",
                "MountDir": lustre.mount_path,
                "StorageType": "FsxLustre",
                "FsxLustreSettings": {"FileSystemId": values.lustre_id},
            }
        )
    return storage


def _directory(config: DirectoryService) -> Mapped:
    optional: Mapping[str, Any] = {
        "LdapTlsCaCert": config.tls_ca_certificate,
        "LdapAccessFilter": config.access_filter,
        "AdditionalSssdConfigs": config.sssd_settings,
    }
    return {
        "DomainName": config.domain_name,
        "DomainAddr": config.domain_address,
        "PasswordSecretArn": config.password_secret_arn,
        "DomainReadOnlyUser": config.read_only_user,
        "LdapTlsReqCert": config.tls_require_certificate,
        "GenerateSshKeysForUsers": config.generate_ssh_keys,
    } | {key: value for key, value in optional.items() if value}


def _monitoring(orchestrator: ParallelCluster) -> Mapped:
    wanted = orchestrator.monitoring
    logs = {
        "Enabled": True,
        "RetentionInDays": wanted.log_retention_days,
        "DeletionPolicy": "Retain" if wanted.keep_logs else "Delete",
    }
    return {
        "Logs": {"CloudWatch": logs},
        "DetailedMonitoring": wanted.detailed,
        "Dashboards": {"CloudWatch": {"Enabled": wanted.dashboard}},
        "Alarms": {"Enabled": wanted.alarms},
    }


def _deployment(environment: Environment, values: DeployedValues) -> Mapped:
    deployment: Mapped = {"DefaultUserHome": settings_of(environment).default_user_home.capitalize()}
    if environment.network.egress == "closed":
        # ParallelCluster's own functions then stay in the VPC, as everything else does
        deployment["LambdaFunctionsVpcConfig"] = {
            "SubnetIds": [values.subnet_id],
            "SecurityGroupIds": [values.security_group_id],
        }
    return deployment


def _dev(orchestrator: ParallelCluster) -> Mapped:
    seconds = orchestrator.bootstrap_timeout_minutes * 60
    dev: Mapped = {"Timeouts": {"HeadNodeBootstrapTimeout": seconds, "ComputeNodeBootstrapTimeout": seconds}}
    if orchestrator.efa_interface == "efa":
        dev["EfaInterfaceType"] = "efa"
    return dev


def _tags(environment: Environment) -> dict[str, str]:
    return {"ultracluster:environment": environment.name} | environment.tags
