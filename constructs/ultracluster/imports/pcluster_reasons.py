"""Why known keys of ParallelCluster's configuration do not carry over, and what to do.

By the end of a key's path, without numbers; the longest end counts.
"""

from __future__ import annotations

from ultracluster.imports.ledger import Reason

_STEPS: Reason = (
    "nodes run the steps of their software release instead",
    "docs/releases.md has what it installs; what is missing becomes a step of yours (docs/own-steps.md)",
)
_NETWORK: Reason = (
    "an environment makes its own network, and a file with ids does not say their VPC and addresses",
    "to stay in yours, write network.vpc and network.subnet (id, cidr) and network.security_group (id)",
)
_ROLES: Reason = (
    "roles are made with the rights that nodes need, and no others",
    "rights of jobs on buckets are storage.job_buckets; bounds and names of roles are `governance`",
)
_PLACED: Reason = (
    "the service that runs the nodes places it",
    "nothing, unless you know why it was set",
)

_QUEUE, _RESOURCE = "Scheduling.SlurmQueues", "Scheduling.SlurmQueues.ComputeResources"
LEVELS = {
    **dict.fromkeys(("Scheduler", "SlurmQueues", "SlurmSettings"), "Scheduling"),
    **dict.fromkeys(("ComputeResources", "ComputeSettings", "CapacityType", "AllocationStrategy"), _QUEUE),
    **dict.fromkeys(("MinCount", "MaxCount", "Efa", "SpotPrice"), _RESOURCE),
    **dict.fromkeys(("StorageType", "FsxLustreSettings", "MountDir"), "SharedStorage"),
    **dict.fromkeys(("Os", "CustomAmi"), "Image"),
    "Pools": "LoginNodes",
}
"""Keys that stand at one place of the configuration -> what they belong below."""
REASONS: dict[str, Reason] = {
    "Networking": _NETWORK,
    "Networking.SubnetId": _NETWORK,
    "Networking.SubnetIds": _NETWORK,
    "Networking.SecurityGroups": _NETWORK,
    "Networking.AdditionalSecurityGroups": _NETWORK,
    "Networking.AssignPublicIp": (
        "nodes have no public addresses",
        "they go out through a NAT gateway, or not at all",
    ),
    "Networking.ElasticIp": ("nodes have no public addresses", "people log in through Session Manager"),
    "Networking.Proxy": (
        "nodes go out through a NAT gateway, or through VPC endpoints",
        "see network.egress",
    ),
    "LambdaFunctionsVpcConfig": _NETWORK,
    "Ssh.KeyName": (
        "no port is open for SSH, and no key pair is on nodes",
        "people log in through Session Manager (`ultracluster connect`); their keys go into `users`",
    ),
    "Ssh.AllowedIps": (
        "no port is open for SSH",
        "people log in through Session Manager (`ultracluster connect`)",
    ),
    "Dcv": ("no desktop runs on nodes", "forward a port: docs/users.md"),
    "CustomActions": _STEPS,
    "CustomActions.OnNodeStart": _STEPS,
    "CustomActions.OnNodeConfigured": _STEPS,
    "CustomActions.OnNodeUpdated": _STEPS,
    "Iam": _ROLES,
    "Iam.S3Access": (
        "only jobs reach buckets, by a role of their own; the head node reaches none of yours",
        "write storage.job_buckets for what jobs read",
    ),
    "Iam.InstanceRole": _ROLES,
    "Iam.InstanceProfile": _ROLES,
    "Iam.AdditionalIamPolicies": _ROLES,
    "Iam.Roles": _ROLES,
    "Iam.ResourcePrefix": (
        "a prefix may mean a path, a name or both",
        "write governance.role_path or role_prefix",
    ),
    "Imds": (
        "IMDSv2 is required on every node, and users of jobs do not reach it",
        "access.node_metadata and access.metadata_users say who does",
    ),
    "Imds.ImdsSupport": ("IMDSv2 is required on every node", "correct programs that use IMDSv1"),
    "Imds.Secured": (
        "who reaches the metadata of nodes is one setting for all",
        "see access.node_metadata",
    ),
    "Efa.GdrSupport": ("GPUDirect RDMA is on wherever the type has it", "nothing to do"),
    "SpotPrice": ("Spot is paid at its own price, without a bound", "see `ultracluster cost`"),
    "SchedulableMemory": (
        "Slurm is told the memory that nodes have",
        "write RealMemory in the group's slurm_settings",
    ),
    "StaticNodePriority": ("ParallelCluster's own priorities are kept: running nodes first", "nothing to do"),
    "DynamicNodePriority": (
        "ParallelCluster's own priorities are kept: running nodes first",
        "nothing to do",
    ),
    "LaunchTemplateOverrides": (
        "the layout of network interfaces follows the instance type",
        "nothing to do",
    ),
    "CustomSlurmSettingsIncludeFile": ("a file in a bucket is not read", "write its lines in slurm_settings"),
    "ExternalSlurmdbd": ("slurmdbd runs on the head node", "write storage.accounting_database"),
    "MungeKeySecretArn": ("a key of MUNGE is made", "nothing to do, unless another cluster shares it"),
    "SlurmSettings.Dns": ("names of nodes follow the network", "nothing to do"),
    "ComputeResources.Tags": ("all resources have the tags of the environment", "write them in `tags`"),
    "SlurmQueues.Tags": ("all resources have the tags of the environment", "write them in `tags`"),
    "SlurmQueues.AllocationStrategy": ("only Spot has one here", "nothing to do"),
    "RootVolume.VolumeType": ("root volumes are gp3, or io2 with root_volume_iops", "nothing to do"),
    "RootVolume.Iops": (
        "gp3 has the operations that its throughput asks for",
        "root_volume_iops makes it io2",
    ),
    "RootVolume.DeleteOnTermination": ("root volumes end with their node", "keep data on shared storage"),
    "EphemeralVolume.MountDir": (
        "only compute nodes have their NVMe disks mounted",
        "nothing to do",
    ),
    "FsxLustreSettings.KmsKeyId": (
        "a key is made for the environment",
        "write storage.key or storage.keys.file_systems",
    ),
    "FsxLustreSettings.DeletionPolicy": (
        "`protect: true` retains what holds data",
        "write it for a cluster whose data matters",
    ),
    "FsxLustreSettings.AutoImportPolicy": (
        "imports belong to a folder here",
        "write import_events of a data repository",
    ),
    "FsxLustreSettings.ImportedFileChunkSize": (
        "chunks belong to a folder here",
        "write chunk_mib of a data repository",
    ),
    "FsxLustreSettings.PerUnitStorageThroughput": (
        "scratch file systems have one throughput",
        "nothing to do",
    ),
    "FsxLustreSettings.StorageType": ("the deployment type says it", "nothing to do"),
    "FsxLustreSettings.DriveCacheType": ("only hard disks have one", "nothing to do"),
    "FsxLustreSettings.CopyTagsToBackups": ("backups have the tags", "nothing to do"),
    "FsxLustreSettings.DailyAutomaticBackupStartTime": (
        "there are no backups without a retention",
        "nothing to do",
    ),
    "Logs.Rotation": ("logs on nodes are rotated as the image has it", "nothing to do"),
    "Rotation.Enabled": ("logs on nodes are rotated as the image has it", "nothing to do"),
    "AdditionalPackages": (
        "Intel's HPC platform is not installed",
        "a node step of your own can (docs/own-steps.md)",
    ),
    "IntelSoftware": (
        "Intel's HPC platform is not installed",
        "a node step of your own can (docs/own-steps.md)",
    ),
    "IntelSoftware.IntelHpcPlatform": (
        "Intel's HPC platform is not installed",
        "a node step of your own can (docs/own-steps.md)",
    ),
    "DevSettings": ("settings for developers of ParallelCluster are set by us", "nothing to do"),
    "DevSettings.Timeouts": ("one number holds for all nodes", "see orchestrator.bootstrap_timeout_minutes"),
    "DisableSudoAccessForDefaultUser": (
        "people have accounts of their own, without sudo; that of the image keeps it, for administrators",
        "see `users` and access.session_user",
    ),
    "CustomS3Bucket": ("scripts have a bucket of their own", "write storage.scripts_bucket"),
    "AdditionalResources": (
        "no further template is deployed with the cluster",
        "deploy it as a stack of its own",
    ),
    "AwsBatchQueues": ("AWS Batch is no scheduler here", "make queues of Slurm of them"),
    "AwsBatchSettings": ("AWS Batch is no scheduler here", "make queues of Slurm of them"),
    "HeadNode.DisableSimultaneousMultithreading": _PLACED,
}
