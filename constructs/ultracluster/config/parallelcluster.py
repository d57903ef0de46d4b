"""AWS ParallelCluster: Slurm on EC2 instances that are ours to place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import Arn, Cidr, Line, Many, Model, Setting
from ultracluster.config.nodes import GroupName
from ultracluster.config.slurm import Partition, PartitionName, SlurmSettings
from ultracluster.config.storage import KeyArn


class ParallelClusterPartition(Partition):
    """Settings of a Slurm partition (a queue)."""

    gpu_health_checks: bool = False
    """DCGM's level 2 test before each job. On p4d and p5 it is reported to hang
    (aws/aws-parallelcluster#6777)."""
    gpu_health_checks_by_group: dict[GroupName, bool] = {}
    """Groups of the partition in which that is otherwise: `more: false`."""

    def checks_gpus(self, group: str) -> bool:
        """Whether the nodes of a group are tested before each job."""
        return self.gpu_health_checks_by_group.get(group, self.gpu_health_checks)


class LoginPool(Model):
    """Settings of a login pool, which is a group of role `login`."""

    grace_minutes: Annotated[int, Field(ge=3, le=120)] = 10
    """Minutes between the notice to people on a login node and its end, where nodes are taken away."""
    ssh_networks: Many[Cidr] = ()
    """IPv4 networks from which people reach the pool by SSH, through its load balancer (port 22): those of
    your company, never the internet. None by default; Session Manager does without."""


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
    password_key_arn: KeyArn | None = None
    """KMS key of the secret, where it is not the account's `aws/secretsmanager`: the head node may then use
    it for Secrets Manager."""
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
    """IPv4 networks of the directory's servers: nodes may reach the ports of `domain_address` there (636 by
    default, 389 with ldap://). Not needed with an existing security group that lets them."""

    @property
    def addresses(self) -> tuple[tuple[str, str, int], ...]:
        """(scheme, host, port) of each server; LDAPS where no scheme is written, as ParallelCluster does."""
        return tuple(_address(one.strip()) for one in self.domain_address.split(","))

    @property
    def ports(self) -> tuple[int, ...]:
        """TCP ports of the servers."""
        return tuple(dict.fromkeys(port for _, _, port in self.addresses))


def _address(text: str) -> tuple[str, str, int]:
    scheme, _, rest = text.rpartition("://")
    host, _, port = rest.partition("/")[0].partition(":")
    default = 389 if scheme == "ldap" else 636
    return scheme or "ldaps", host, int(port) if port.isdigit() else default


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
    `pcluster`: it makes network and storage, and `ultracluster export parallelcluster` the file for
    `pcluster create-cluster`."""
    os: Literal["alinux2023", "ubuntu2204", "ubuntu2404", "rhel8", "rhel9", "rocky8", "rocky9"] = "ubuntu2404"
    """Operating system of every node."""
    scaling: Literal["all-or-nothing", "best-effort", "greedy-all-or-nothing"] = "all-or-nothing"
    """Whether a job waits until all of its instances can be had."""
    scaledown_minutes: Annotated[int, Field(ge=-1, le=71_582_788)] = 10
    """Minutes after which idle nodes above `count` end; -1 is never. Slurm takes 2^32 seconds at the most."""
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
    topology: Literal["automatic", "tree", "block", "flat"] = "automatic"
    """What Slurm knows of the network. `automatic`: blocks with UltraServers, which ParallelCluster writes,
    else a tree of EC2's switches, which the head node writes. `tree`, `block`: that, or the file is refused.
    `flat`: nothing; jobs go to any nodes."""
    partitions: dict[PartitionName, ParallelClusterPartition] = {}
    """Settings of partitions by name; groups name their partition."""
    login_pools: dict[GroupName, LoginPool] = {}
    """Settings of login pools by the names of their groups; defaults for the others."""
    monitoring: ParallelClusterMonitoring = ParallelClusterMonitoring.model_construct()
    """Logs, metrics and alarms."""
    directory_service: DirectoryService | None = None
    """Users from a directory instead of only the default user."""
    lifecycle: Literal["on-node-configured", "none"] = "on-node-configured"
    """When our scripts run: after ParallelCluster has set a node up, or not at all."""
    imex: bool = True
    """On UltraServers: write the NVIDIA IMEX configuration of each job from a prolog."""

    @property
    def ssh_pools(self) -> dict[str, Sequence[str]]:
        """Networks that reach a login pool by SSH, by pool; those without are left out."""
        return {name: pool.ssh_networks for name, pool in self.login_pools.items() if pool.ssh_networks}
