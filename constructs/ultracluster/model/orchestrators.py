"""Traits of orchestrators: what code above must know of each, one row per kind.

Code that only needs a fact of the orchestrator reads it here. Code that does something else for each kind
matches on it and ends with `assert_never`, so that the type checker names the place when a kind is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import Region
from ultracluster.catalog.images import NodeFamily
from ultracluster.config.nodes import Role
from ultracluster.config.orchestrator import OrchestratorKind

Launcher = Literal["auto-scaling", "fleet", "computing-service", "spot"]
"""A service-linked role that launches instances and needs the key of their volumes."""


ORCHESTRATOR_OUTPUT = "Orchestrator"
"""Output of the cluster's stack: a deploy of another orchestrator under the same name is refused."""
VERSION_OUTPUT = "UltraclusterVersion"
"""Output of the cluster's stack: `diff --deployed` says that another version deployed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is true of one orchestrator."""

    kind: OrchestratorKind
    title: str
    """Of its cluster stack."""
    scheduler: Literal["slurm", "kubernetes"]
    roles: tuple[Role, ...]
    """Roles that its node groups can have."""
    service_roles: tuple[Role, ...] = ()
    """Roles whose nodes AWS runs in an account of its own: their types have the prefix `ml.`, their network
    cards and placement are AWS's, and they count against quotas of the service."""
    launched_by: tuple[Launcher, ...] = ()
    """Who launches the nodes that are in the user's account, besides CloudFormation itself."""
    joining_minutes: int | None = None
    """Minutes that the scripts of a node may take; None where nothing ends a node that takes its time, or
    where the configuration says."""
    software_family: NodeFamily
    """Family of software releases whose newest one a new environment takes."""
    offered: Callable[[Region], bool | None] = lambda _: True
    """Whether a Region has the service; None where that is unknown. Every Region has what the others are
    made of."""
    names_images: bool = False
    """Every node group must name the image that it boots."""
    security_groups: int = 0
    """Security groups that the cluster makes besides those of network and storage."""
    launches_system_nodes: OrchestratorKind | None = None
    """Which orchestrator launches the nodes of a service's cluster that are in the user's account."""
    validates: bool = False
    """Its own command validates a cluster before anything is made, and the rules of that kind follow it."""
    one_controller: str = ""
    """Why Slurm has one controller node; empty where the controller runs on no node of the cluster."""
    named_partitions: bool = False
    """Each compute group has to name its partition, in the form that Slurm itself takes."""
    one_efa_interface: bool = False
    """The kind of EFA interfaces is chosen for the whole cluster, not for each group."""
    spot_allocation: bool = False
    """It can be told how EC2 picks among Spot pools."""
    linked_roles: tuple[str, ...] = ()
    """Service-linked roles without which the cluster does not come up (each service's own guide)."""
    log_group: str = ""
    """How the name of the cluster's log group begins, with `{cluster}` for the cluster's name; empty where
    the service has none."""
    delivered_logs: tuple[str, ...] = ()
    """Types of logs that the service delivers to a log group of ours, where it is told to."""
    instance_tags: tuple[tuple[str, str], ...] = ()
    """Tags by which its instances in the user's account are known, each enough on its own: key, and value
    with `{cluster}` for the cluster's name or `{name}` for the environment's."""
    own_stack: bool = False
    """The service makes a CloudFormation stack with the cluster's name."""
    shares_home: bool = False
    """Its controller has /home on its own disk, or on storage that it attaches, and other nodes mount it."""
    shares_all_mounts: bool = False
    """Every node mounts every file system: none can be for some groups only."""
    slurm_nodes: str = ""
    """A regular expression of the names of a group's nodes in Slurm, with `{partition}` and `{group}`; empty
    where they are named by their addresses."""
    last_entry: str = ""
    """The entry script that runs last on a node, where there are two."""
    until_block: Literal["fills-later", "stays-empty"] | None = None
    """What a group does until its Capacity Block begins: it is filled at `starts`, or it must have
    `count: 0`. None where a launch before that time is not judged."""

    slurm_by_group: bool = False
    """Its API takes lines of gres.conf and a time until idle nodes end for each node group."""
    slurmdbd_tls: bool | None = None
    """Whether its slurmdbd logs in over TLS to a MySQL server of ours that offers it; None where that is
    unknown, or where it uses none. A server that requires TLS of a client that has none is a cluster without
    accounting. Linked with MySQL's client library slurmdbd uses TLS where it is offered; with MariaDB
    Connector/C before 3.4 only where StorageParameters names a certificate (SchedMD/slurm
    src/database/mysql_common.c)."""
    slurmdbd_unknown: str = ""
    """Why that is unknown."""
    plain_password: bool = False
    """slurmdbd's password is copied into a secret that is nothing else."""

    @property
    def kubernetes(self) -> bool:
        return self.scheduler == "kubernetes"

    @property
    def slurm(self) -> bool:
        return self.scheduler == "slurm"

    @property
    def hyperpod(self) -> bool:
        """Whether SageMaker HyperPod runs the compute nodes."""
        return "compute" in self.service_roles

    @property
    def has_instances(self) -> bool:
        """Whether any of its nodes can be instances of the user's account."""
        return any(role not in self.service_roles for role in self.roles)


_HYPERPOD_LINKED = "AWSServiceRoleForAmazonSageMakerHyperPod"
_HYPERPOD_LOGS = "/aws/sagemaker/Clusters/{cluster}/"
_EKS_LINKED = (
    "AWSServiceRoleForAmazonEKS",
    "AWSServiceRoleForAmazonEKSNodegroup",
    "AWSServiceRoleForAutoScaling",
)

# of its managed groups, and of Karpenter
_EKS_TAGS = (("eks:cluster-name", "{cluster}"), ("eks:eks-cluster-name", "{cluster}"))

_ROWS = (
    Traits(
        kind="hyperpod-slurm",
        title="HyperPod cluster with Slurm",
        software_family="hyperpod-slurm",
        offered=lambda region: region.hyperpod,
        scheduler="slurm",
        roles=("controller", "login", "compute"),
        service_roles=("controller", "login", "compute"),
        one_controller="several controllers exist only with HyperPod's legacy provisioning file, not with "
        "the API's Slurm configuration",
        named_partitions=True,
        linked_roles=(_HYPERPOD_LINKED,),
        log_group=_HYPERPOD_LOGS,
        # SageMaker Developer Guide, "Using an external accounting database with SageMaker HyperPod Slurm
        # clusters"
        slurmdbd_unknown="the service writes slurmdbd.conf, and its StorageParameters and the client library "
        "are not published",
    ),
    Traits(
        kind="hyperpod-eks",
        title="HyperPod cluster on EKS",
        software_family="hyperpod-eks",
        offered=lambda region: region.hyperpod,
        scheduler="kubernetes",
        roles=("compute", "system"),
        service_roles=("compute",),
        launched_by=("auto-scaling",),  # the system nodes are a managed node group
        security_groups=3,  # control plane, kubectl's handler, nodes
        launches_system_nodes="eks",
        linked_roles=(_HYPERPOD_LINKED, *_EKS_LINKED),
        instance_tags=_EKS_TAGS,
        log_group=_HYPERPOD_LOGS,
    ),
    Traits(
        kind="parallelcluster",
        title="ParallelCluster with Slurm",
        software_family="parallelcluster",
        scheduler="slurm",
        roles=("controller", "login", "compute"),
        security_groups=4,  # head node, login nodes and their balancer, compute nodes
        validates=True,
        one_controller="ParallelCluster has one head node, without a standby",
        one_efa_interface=True,
        spot_allocation=True,
        log_group="/aws/parallelcluster/{cluster}-",
        instance_tags=(("parallelcluster:cluster-name", "{cluster}"),),
        own_stack=True,
        shares_home=True,  # ParallelCluster User Guide, HeadNode / SharedStorageType
        shares_all_mounts=True,  # ParallelCluster User Guide, SharedStorage: of the cluster, not of a queue
        slurm_nodes="{partition}-(st|dy)-{group}-[0-9]+",
        last_entry="parallelcluster_on_node_configured",
        # ParallelCluster User Guide, "Slurm accounting with AWS ParallelCluster", Configuring TLS encryption;
        # its own database template requires TLS (aws/aws-parallelcluster cloudformation/database)
        slurmdbd_tls=True,
        plain_password=True,
    ),
    Traits(
        kind="pcs",
        title="PCS cluster with Slurm",
        software_family="pcs",
        offered=lambda region: region.pcs,
        slurm_by_group=True,
        names_images=True,
        scheduler="slurm",
        roles=("login", "compute"),
        launched_by=("computing-service",),
        # a node that has not joined after 30 minutes is ended (AWS PCS User Guide, "Troubleshooting compute
        # node bootstrap"); it leaves room for what runs before and after the scripts
        joining_minutes=25,
        named_partitions=True,
        one_efa_interface=True,
        spot_allocation=True,
        linked_roles=("AWSServiceRoleForPCS",),
        # job completions and the audit log are left out (AWS PCS User Guide, "Monitoring AWS PCS")
        delivered_logs=("PCS_SCALING_LOGS", "PCS_SCHEDULER_LOGS"),
        instance_tags=(("ultracluster:environment", "{name}"),),
        slurm_nodes="{group}-[0-9]+",
        until_block="stays-empty",
    ),
    Traits(
        kind="eks",
        title="EKS nodes",
        software_family="eks-al2023",
        scheduler="kubernetes",
        roles=("compute", "system"),
        launched_by=("auto-scaling",),
        joining_minutes=12,  # a node group waits 15 for a node that is running (field reports)
        security_groups=3,
        linked_roles=_EKS_LINKED,
        instance_tags=_EKS_TAGS,
        until_block="fills-later",
    ),
)

TRAITS: dict[OrchestratorKind, Traits] = {row.kind: row for row in _ROWS}
