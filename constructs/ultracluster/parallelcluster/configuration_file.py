"""An environment as AWS ParallelCluster's configuration file (ParallelCluster User Guide, "Cluster
configuration file"; its own schema and validators of 3.16.1 are the authority).

Rules speak before this does: what they refuse is not looked for again here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ultracluster.config import Environment
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.config.governance import Governance
from ultracluster.config.parallelcluster import DirectoryService, ParallelCluster
from ultracluster.config.storage import Storage
from ultracluster.model import Cluster, Group
from ultracluster.model.parent_zone import parent_zone
from ultracluster.parallelcluster.actions import node_actions
from ultracluster.parallelcluster.deployed_values import DeployedValues
from ultracluster.parallelcluster.queues import node_iam, queues, root_volume, slurm_settings

Mapped = dict[str, Any]

NO_SSH = "127.0.0.1/32"
"""AllowedIps: no one. The default is the whole internet; people come in through Session Manager. It counts
where ParallelCluster makes a security group, which it does not with ours: it is written in any case."""


def cluster_configuration(cluster: Cluster, values: DeployedValues) -> Mapped:
    """The configuration of one cluster, ready to be written as YAML or given to the custom resource.

    Args:
        cluster: a ParallelCluster without findings of the rules.
        values: ids of what is deployed already; tokens and placeholders will do.

    Raises:
        ValueError: another orchestrator, not exactly one controller group, or groups of one partition that
            differ where ParallelCluster has one setting for the whole queue.
    """
    settings = settings_of(cluster.environment)
    controllers = list(cluster.with_role("controller").values())
    if len(controllers) != 1:
        raise ValueError(f"ParallelCluster has one head node, {cluster.name} has {len(controllers)}")
    (controller,) = controllers
    configuration: Mapped = {
        "Region": cluster.region,
        "Image": _image(settings.os, controller.settings.image_in_template),
        "Imds": {"ImdsSupport": "v2.0"},
        "HeadNode": _head(cluster, settings, controller, values),
    }
    if pools := _login_pools(cluster, settings, values):
        configuration["LoginNodes"] = {"Pools": pools}
    configuration["Scheduling"] = {
        "Scheduler": "slurm",
        "ScalingStrategy": settings.scaling,
        "SlurmSettings": slurm_settings(cluster, settings, values),
        "SlurmQueues": queues(cluster, settings, values),
    }
    if shared := _shared_storage(cluster.environment.storage, values):
        configuration["SharedStorage"] = shared
    if settings.directory_service:
        configuration["DirectoryService"] = _directory(settings.directory_service)
    if iam := _iam(cluster.environment.governance):
        configuration["Iam"] = iam
    configuration["Monitoring"] = _monitoring(settings)
    configuration["DeploymentSettings"] = _deployment(cluster, settings, values)
    configuration["DevSettings"] = _dev(settings)
    tags = {ENVIRONMENT_TAG: cluster.name} | cluster.environment.tags
    configuration["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    return configuration


def _iam(governance: Governance) -> Mapped:
    """Bound, path and name prefix of what ParallelCluster makes in IAM."""
    prefix = (governance.role_path or "") + (governance.role_prefix or "")
    asked = {"PermissionsBoundary": governance.permissions_boundary, "ResourcePrefix": prefix}
    return {key: value for key, value in asked.items() if value}


def settings_of(environment: Environment) -> ParallelCluster:
    """The environment's ParallelCluster settings.

    Raises:
        ValueError: it has another orchestrator.
    """
    settings = environment.orchestrator
    if not isinstance(settings, ParallelCluster):
        raise ValueError(f"orchestrator.kind is {settings.kind}; this takes kind: parallelcluster")
    return settings


def _head(cluster: Cluster, settings: ParallelCluster, head: Group, values: DeployedValues) -> Mapped:
    group = head.settings
    node: Mapped = {
        "InstanceType": group.instance_type,
        "Networking": {
            "SubnetId": values.subnet_in(head.zone_id, cluster.environment.network.zone_id),
            "SecurityGroups": values.security_group_ids,
        },
        "Ssh": {"AllowedIps": NO_SSH},
        "LocalStorage": {"RootVolume": root_volume([head], group.root_volume_gib)},
        "SharedStorageType": settings.head_storage.capitalize(),
        "Iam": node_iam(values, values.head_policy_arn),
    }
    if settings.head_storage == "efs":
        # the managed EFS is not encrypted unless one asks
        node["SharedStorageEfsSettings"] = {"Encrypted": True}
    if group.threads_per_core == 1:
        node["DisableSimultaneousMultithreading"] = True
    if group.image:
        node["Image"] = {"CustomAmi": group.image_in_template}
    if actions := node_actions(cluster, values, head.name, head=True):
        node["CustomActions"] = actions
    return node


def _image(system: str, controller_image: str | None) -> Mapped:
    # there is no official AMI of Rocky: the cluster as a whole has to name one, too
    own = {"CustomAmi": controller_image} if system.startswith("rocky") and controller_image else {}
    return {"Os": system, **own}


def _login_pools(cluster: Cluster, settings: ParallelCluster, values: DeployedValues) -> list[Mapped]:
    pools: list[Mapped] = []
    for name, login in cluster.with_role("login").items():
        group = login.settings
        pool: Mapped = {
            "Name": name,
            "InstanceType": group.instance_type,
            "Count": group.count,
            "Networking": {
                "SubnetIds": [values.subnet_in(login.zone_id, cluster.environment.network.zone_id)],
                "SecurityGroups": values.security_group_ids,
            },
            "Ssh": {"AllowedIps": NO_SSH},
            "Iam": node_iam(values, values.login_policy_arn),
        }
        if pool_settings := settings.login_pools.get(name):
            pool["GracetimePeriod"] = pool_settings.grace_minutes
            if pool_settings.ssh_networks:  # of the pool's load balancer, too
                pool["Networking"]["SecurityGroups"] = values.security_groups_of(name)
        if group.image:
            pool["Image"] = {"CustomAmi": group.image_in_template}
        if actions := node_actions(cluster, values, name):
            pool["CustomActions"] = actions
        pools.append(pool)
    return pools


def _shared_storage(storage: Storage, values: DeployedValues) -> list[Mapped]:
    """File systems by id: ParallelCluster cannot make a Lustre one with EFA, and would own their lives."""
    lustre, openzfs = storage.lustre, storage.openzfs
    shared: list[Mapped] = []
    if openzfs:
        shared.append(
            {
                "Name": "openzfs",
                "MountDir": openzfs.mount_path,
                "StorageType": "FsxOpenZfs",
                "FsxOpenZfsSettings": {"VolumeId": values.openzfs_volume_id},
            }
        )
    if lustre:
        shared.append(
            {
                "Name": "lustre",
                "MountDir": lustre.mount_path,
                "StorageType": "FsxLustre",
                "FsxLustreSettings": {"FileSystemId": values.lustre_id},
            }
        )
    for name, further in storage.further_lustre.items():
        shared.append(
            {
                "Name": f"lustre-{name}",
                "MountDir": further.mount_path,
                "StorageType": "FsxLustre",
                "FsxLustreSettings": {"FileSystemId": values.further_lustre_id(name)},
            }
        )
    return shared


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


def _monitoring(settings: ParallelCluster) -> Mapped:
    monitoring = settings.monitoring
    logs = {
        "Enabled": True,
        "RetentionInDays": monitoring.log_retention_days,
        "DeletionPolicy": "Retain" if monitoring.keep_logs else "Delete",
    }
    return {
        "Logs": {"CloudWatch": logs},
        "DetailedMonitoring": monitoring.detailed,
        "Dashboards": {"CloudWatch": {"Enabled": monitoring.dashboard}},
        "Alarms": {"Enabled": monitoring.alarms},
    }


def _deployment(cluster: Cluster, settings: ParallelCluster, values: DeployedValues) -> Mapped:
    deployment: Mapped = {"DefaultUserHome": settings.default_user_home.capitalize()}
    network = cluster.environment.network
    if network.egress == "closed":
        # ParallelCluster's own functions then stay in the VPC, as everything else does, in a zone with Lambda
        zone = parent_zone(network) or network.zone_id
        deployment["LambdaFunctionsVpcConfig"] = {
            "SubnetIds": [values.subnet_in(zone, network.zone_id)],
            "SecurityGroupIds": values.security_group_ids,
        }
    return deployment


def _dev(settings: ParallelCluster) -> Mapped:
    seconds = settings.bootstrap_timeout_minutes * 60
    dev: Mapped = {"Timeouts": {"HeadNodeBootstrapTimeout": seconds, "ComputeNodeBootstrapTimeout": seconds}}
    if settings.efa_interface == "efa":
        dev["EfaInterfaceType"] = "efa"
    return dev


WHY_NO_ROLLBACK = (
    "--rollback-on-failure false keeps the instances of a cluster that did not come up, so that their logs "
    "can be read; by default they are gone when the command has failed. Delete such a cluster yourself: "
    "until then it costs what it runs."
)


def create_command(environment: Environment, file: str) -> str:
    """`pcluster create-cluster ...` for the file at `file`."""
    return _command("create-cluster", environment, file, "--rollback-on-failure", "false")


def update_command(environment: Environment, file: str) -> str:
    """`pcluster update-cluster ...` for the file at `file`; it knows no `--rollback-on-failure`."""
    return _command("update-cluster", environment, file)


def _command(verb: str, environment: Environment, file: str, *more: str) -> str:
    return shlex.join(
        [
            "pcluster",
            verb,
            "--cluster-name",
            environment.cluster_name,
            "--cluster-configuration",
            file,
            "--region",
            environment.region,
            *more,
        ]
    )
