"""Why known keys of HyperPod's CreateCluster, and of its provisioning_parameters.json, do not carry over."""

from __future__ import annotations

from ultracluster.imports.ledger import Reason

_STEPS: Reason = (
    "nodes run the steps of their software release instead of these scripts",
    "docs/releases.md has what it installs; what is missing becomes a step of yours (docs/own-steps.md)",
)
_NETWORK: Reason = (
    "an environment makes its own network, and a file with ids does not say their VPC and addresses",
    "to stay in yours, write network.vpc and network.subnet (id, cidr) and network.security_group (id)",
)
_ROLE: Reason = (
    "roles are made with the rights that nodes need, and no others",
    "jobs' rights on buckets are storage.job_buckets; bounds and names of roles are `governance`",
)
_LUSTRE: Reason = (
    "the file has the file system's address, and not the security group that lets nodes in",
    "write storage.lustre (deployment existing, id, dns_name, mount_name, security_group_id) and network.vpc",
)
_OPENZFS: Reason = (
    "the file has the file system's address, and not the security group that lets nodes in",
    "write storage.openzfs (deployment existing, id, dns_name, security_group_id) and network.vpc",
)
_STATE: Reason = ("what a running cluster was doing is not part of an environment", "nothing to do")
_SEVERAL: Reason = (
    "several controllers share a database, a topic and a folder that you run yourself",
    "one controller, which HyperPod replaces, with storage.accounting_database",
)

LEVELS = {
    **dict.fromkeys(
        (
            "InstanceType",
            "InstanceCount",
            "LifeCycleConfig",
            "SlurmConfig",
            "ThreadsPerCore",
            "TrainingPlanArn",
        ),
        "InstanceGroups",
    ),
    "Subnets": "VpcConfig",
    "SlurmConfigStrategy": "Orchestrator.Slurm",
}
"""Keys that stand at one place of a request -> what they belong below."""
REASONS: dict[str, Reason] = {
    "VpcConfig": _NETWORK,
    "OverrideVpcConfig": (
        "groups are in the subnet of the environment",
        "network.further_zones and zone_id of the group are for Spot and serving in other zones",
    ),
    "LifeCycleConfig": _STEPS,
    "ExecutionRole": _ROLE,
    "ClusterRole": _ROLE,
    "FsxLustreConfig": _LUSTRE,
    "FsxOpenZfsConfig": _OPENZFS,
    "EbsVolumeConfig.VolumeKmsKeyId": ("volumes have the environment's key", "write storage.keys.volumes"),
    "RollbackMaximumBatchSize": ("rollbacks go in the same batches as updates", "nothing to do"),
    "PatchSchedule": ("a date is not a setting of an environment", "see patching.schedule"),
    "IdleWaitWindowInSeconds": ("HyperPod's own time is kept", "nothing to do"),
    "DrainPolicy": ("nodes are not drained by force", "nothing to do"),
    "RestrictedInstanceGroups": (
        "restricted groups run Amazon Nova only, and are not carried over by themselves",
        "write node_groups.<group>.restricted with its Lustre file system and buckets",
    ),
    "RestrictedInstanceGroupsConfig": (
        "it is a setting of restricted groups",
        "write orchestrator.restricted_lustre",
    ),
    "fsx_dns_name": _LUSTRE,
    "fsx_mountname": _LUSTRE,
    "fsx_openzfs_dns_name": _OPENZFS,
    "slurm_configurations": _SEVERAL,
    "SlurmConfig": ("a cluster of Kubernetes has no Slurm", "nothing to do"),
    "SlurmConfig.NodeType": ("a cluster of Kubernetes has no Slurm", "nothing to do"),
    "SlurmConfig.PartitionNames": (
        "a group is in one partition, and only compute groups are",
        "make a group for each further partition",
    ),
    "ClusterArn": _STATE,
    "ClusterStatus": _STATE,
    "CreationTime": _STATE,
    "FailureMessage": _STATE,
    "Status": _STATE,
    "ResponseMetadata": _STATE,
}
