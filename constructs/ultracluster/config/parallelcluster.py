"""AWS ParallelCluster: Slurm on EC2 instances that are ours to place."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import Arn, Cidr, Line, Many, Model, Setting
from ultracluster.config.slurm import Partition, PartitionName, SlurmSettings


class ParallelClusterPartition(Partition):
    """Settings of a Slurm partition (a queue)."""

    gpu_health_checks: bool = False
    """DCGM's level 2 test before each job. On p4d and p5 it is reported to hang
    (aws/aws-parallelcluster#6777)."""


class ParallelClusterMonitoring(Model):
    """Logs, metrics and alarms of the cluster."""

    log_retention_days: Annotated[int, Field(ge=0, le=3653)] = 90
    """Days until CloudWatch Logs drops a record; 0 keeps it forever."""
    keep_logs: bool = True
    """Keep the log group when the cluster is deleted."""
    detailed: bool = True
    """CloudWatch metrics of the nodes each minute instead of each five."""
    dashboard: bool = True
    """A CloudWatch dashboard."""
    alarms: bool = True
    """Alarms on the head node."""


class DirectoryService(Model):
    """An Active Directory or LDAP that holds the users; passed through to ParallelCluster."""

    domain_name: Line
    """`corp.example.com`, or a distinguished name."""
    domain_address: Line
    """URI, or several separated by commas: `ldaps://corp.example.com`."""
    password_secret_arn: Arn
    """Secret with the read-only user's password in plain text."""
    read_only_user: Line
    """Distinguished name of the user that looks others up."""
    tls_ca_certificate: Line | None = None
    """Path on the nodes of the certificates that are trusted."""
    tls_require_certificate: Literal["never", "allow", "try", "demand", "hard"] = "hard"
    """How strictly the server's certificate is checked."""
    access_filter: Line | None = None
    """LDAP filter of the users that may log in."""
    generate_ssh_keys: bool = True
    """Make a key pair for each user at first login, so that they reach the compute nodes."""
    sssd_settings: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")], Setting] = {}
    """Further settings of sssd, by their own names."""
    server_networks: Many[Cidr] = ()
    """IPv4 networks of the directory's servers: nodes may reach ports 389 and 636 there. Not needed with
    an existing security group that lets them."""


class ParallelCluster(Model):
    """AWS ParallelCluster 3 with Slurm."""

    kind: Literal["parallelcluster"] = "parallelcluster"
    cluster_name: Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9-]*$", max_length=60)] | None = None
    """Name of the cluster, at most 40 characters with an accounting database; the environment's name by
    default. A new name is a new cluster."""
    version: Annotated[str, Field(pattern=r"^3\.[0-9]+\.[0-9]+$")] = "3.16.3"
    """Release of ParallelCluster; it decides the images of the nodes. Ours checks with the schema and
    validators of 3.16.1, the newest that can be installed."""
    deploy_with: Literal["cloudformation", "pcluster"] = "cloudformation"
    """`cloudformation`: `cdk deploy` makes the cluster through ParallelCluster's custom resource.
    `pcluster`: it makes network and storage, and `ultracluster render parallelcluster` the file for
    `pcluster create-cluster`."""
    os: Literal["alinux2023", "ubuntu2204", "ubuntu2404", "rhel8", "rhel9", "rocky8", "rocky9"] = "ubuntu2404"
    """Operating system of every node."""
    scaling: Literal["all-or-nothing", "best-effort", "greedy-all-or-nothing"] = "all-or-nothing"
    """Whether a job waits until all of its instances can be had."""
    scaledown_minutes: Annotated[int, Field(ge=-1)] = 10
    """Minutes after which idle nodes above `count` end; -1 is never."""
    queue_update: Literal["drain", "terminate", "compute-fleet-stop"] = "drain"
    """What happens to running nodes when their queue changes: jobs finish first, are ended, or the fleet
    must be stopped by hand (which the custom resource cannot do)."""
    memory_scheduling: bool = False
    """Slurm allocates memory, too."""
    head_storage: Literal["ebs", "efs"] = "ebs"
    """Where the head node shares its home, Slurm and other directories from; `efs` is made encrypted."""
    default_user_home: Literal["shared", "local"] = "shared"
    """Home of the default user."""
    nvme_mount_path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")] = "/scratch"
    """Where compute nodes mount their local NVMe disks."""
    bootstrap_timeout_minutes: Annotated[int, Field(ge=10, le=360)] = 30
    """Minutes that the head node has to come up, and compute nodes after it, our scripts included."""
    efa_interface: Literal["efa-only", "efa"] = "efa-only"
    """`efa-only` interfaces take no IP address; `efa` is the layout of releases before 3.15."""
    slurm_settings: SlurmSettings = {}
    """Parameters of slurm.conf for the cluster."""
    partitions: dict[PartitionName, ParallelClusterPartition] = {}
    """Settings of partitions by name; groups name their partition."""
    monitoring: ParallelClusterMonitoring = ParallelClusterMonitoring()
    """Logs, metrics and alarms."""
    directory_service: DirectoryService | None = None
    """Users from a directory instead of only the default user."""
    lifecycle: Literal["on-node-configured", "none"] = "on-node-configured"
    """When our scripts run: after ParallelCluster has set a node up, or not at all."""
    imex: bool = True
    """On UltraServers: write the NVIDIA IMEX configuration of each job from a prolog."""
