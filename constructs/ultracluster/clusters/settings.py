"""Settings of orchestrators as keyword arguments, for apps without an environment file.

Each has the fields of its model in `ultracluster.config`, where they are described; what is an argument of
every cluster (its name, its subnets) is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from aws_cdk import aws_iam as iam

from ultracluster.config.hyperpod_eks import (
    CheckpointTier,
    HyperPodInference,
    HyperPodObservability,
    KarpenterAutoscaling,
    Resilience,
)
from ultracluster.config.hyperpod_spaces import HyperPodSpaces
from ultracluster.config.kubernetes import (
    Capabilities,
    HyperPodAddon,
    Karpenter,
    NodeRepair,
    PrivateEndpoint,
    PublicEndpoint,
    Serving,
)
from ultracluster.config.nodes import SharedRestrictedLustre
from ultracluster.config.parallelcluster import (
    DirectoryService,
    LoginPool,
    ParallelClusterMonitoring,
    ParallelClusterPartition,
)
from ultracluster.config.pcs import PcsAccounting
from ultracluster.config.slurm import Partition
from ultracluster.config.storage import JobBucket


class HyperPodSlurmSettings(TypedDict, total=False):
    """Of `ultracluster.config.orchestrator.HyperPodSlurm`."""

    provisioning: Literal["continuous", "classic"]
    node_recovery: Literal["automatic", "none"]
    slurm_config_strategy: Literal["merge", "managed", "overwrite"] | None
    node_roles: Literal["each", "one"]
    slurm_settings: dict[str, str | int]
    lifecycle: Literal["on-init-complete", "on-create", "none"]


class PcsSettings(TypedDict, total=False):
    """Of `ultracluster.config.pcs.Pcs`."""

    size: Literal["small", "medium", "large"] | None
    slurm_version: str
    accounting: PcsAccounting
    network_type: Literal["ipv4", "ipv6"]
    rest: bool
    scaledown_seconds: int
    slurm_settings: dict[str, str | int]
    slurmdbd_settings: dict[str, str | int]
    cgroup_settings: dict[str, str | int]
    partitions: dict[str, Partition]
    gpu_types: bool | None
    efa_interface: Literal["efa", "efa-only"]
    lifecycle: Literal["node-bootstrapped", "none"]
    agent_version: str
    imex: bool
    root_device: Literal["/dev/sda1", "/dev/xvda"]


class ParallelClusterSettings(TypedDict, total=False):
    """Of `ultracluster.config.parallelcluster.ParallelCluster`."""

    version: str
    deploy_with: Literal["cloudformation", "pcluster"]
    os: Literal["alinux2023", "ubuntu2204", "ubuntu2404", "rhel8", "rhel9", "rocky8", "rocky9"]
    scaling: Literal["all-or-nothing", "best-effort", "greedy-all-or-nothing"]
    scaledown_minutes: int
    queue_update: Literal["drain", "terminate", "compute-fleet-stop"]
    memory_scheduling: bool
    head_storage: Literal["ebs", "efs"]
    default_user_home: Literal["shared", "local"]
    nvme_mount_path: str
    bootstrap_timeout_minutes: int
    efa_interface: Literal["efa-only", "efa"]
    slurm_settings: dict[str, str | int]
    topology: Literal["automatic", "tree", "block", "flat"]
    partitions: dict[str, ParallelClusterPartition]
    login_pools: dict[str, LoginPool]
    monitoring: ParallelClusterMonitoring
    directory_service: DirectoryService | None
    lifecycle: Literal["on-node-configured", "none"]
    imex: bool


class KubernetesSettings(TypedDict, total=False):
    """What `Eks` and `HyperPodEks` of `ultracluster.config.kubernetes` have in common."""

    kubernetes_version: str
    node_image_release: str | None
    support: Literal["standard", "extended"]
    scaling_tier: Literal["standard", "xl", "2xl", "4xl", "8xl"]
    endpoint: PrivateEndpoint | PublicEndpoint
    admins: Sequence[str | iam.IRole]
    service_cidr: str | None
    log_retention_days: Literal[30, 60, 90, 120, 180, 365, 731]
    scheduler: Literal["kueue", "volcano", "kai", "none"]
    gpu_plugin: Literal["device-plugin", "gpu-operator", "none"]
    jobset: bool
    leader_worker_set: bool
    serving: Serving | None
    neuron_scheduler: bool
    compute_domains: bool
    kubeflow_trainer: bool
    kuberay: bool
    mpi_operator: bool
    mpi_operator_image: str | None
    chart_repository: str | None
    chart_values: dict[str, dict[str, Any]]
    capabilities: Capabilities
    pod_security: Literal["restricted", "baseline"]
    mountpoint_s3: dict[str, JobBucket]
    network_policies: bool


class EksSettings(KubernetesSettings, total=False):
    """Of `ultracluster.config.kubernetes.Eks`."""

    lifecycle: Literal["user-data", "none"]
    node_repair: NodeRepair
    max_unavailable: int
    karpenter: Karpenter | None
    efa_devices: Literal["device-plugin", "dra"]


class HyperPodEksSettings(KubernetesSettings, total=False):
    """Of `ultracluster.config.kubernetes.HyperPodEks`."""

    lifecycle: Literal["on-create"]
    provisioning: Literal["continuous", "classic"]
    node_recovery: Literal["automatic", "none"]
    create_nodes: Literal["beside-system", "after-system"]
    autoscaling: KarpenterAutoscaling | None
    tiered_checkpoints_percent: int | None
    checkpoint_tier: CheckpointTier | None
    task_governance: bool
    training_operator: bool
    resilience: Sequence[Resilience]
    observability: HyperPodObservability | None
    inference: HyperPodInference | None
    spaces: HyperPodSpaces | None
    restricted_lustre: SharedRestrictedLustre | None
    addon_versions: dict[HyperPodAddon, str]
