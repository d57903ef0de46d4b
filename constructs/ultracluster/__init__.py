"""GPU and Trainium training clusters on AWS: constructs for your own CDK app.

The names below are loaded when they are first used, so that the `ultracluster` command does not pay for
the CDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ultracluster.version import __version__ as __version__

__all__ = [
    "Accounting",
    "AccountingDatabase",
    "Admission",
    "Alerts",
    "CapacityBlock",
    "ClusterEgress",
    "ClusterKey",
    "ClusterNetwork",
    "ClusterObservability",
    "ClusterPlacementGroup",
    "DataBucket",
    "DataRepositories",
    "DataRepository",
    "DeclaredInstanceType",
    "DeletionProtection",
    "EfaSecurityGroup",
    "Eks",
    "EksAddons",
    "EksCluster",
    "EksControlPlane",
    "EksNodeGroup",
    "EnvironmentConfig",
    "ExistingWorkspace",
    "Grafana",
    "HyperPodEks",
    "HyperPodEksCluster",
    "HyperPodExecutionRole",
    "HyperPodSlurm",
    "HyperPodSlurmCluster",
    "IAccountingDatabase",
    "ICluster",
    "IEfaSecurityGroup",
    "IEksControlPlane",
    "ILustreFileSystem",
    "IOpenZfsFileSystem",
    "ImageBuilderPipeline",
    "Karpenter",
    "LogBucket",
    "LustreFileSystem",
    "LustreMount",
    "MetricsDestination",
    "NodeGroup",
    "NodeLaunchTemplate",
    "NodeRole",
    "Observability",
    "OnDemand",
    "OpenZfsFileSystem",
    "OpenZfsMount",
    "ParallelCluster",
    "ParallelClusterCluster",
    "Pcs",
    "PcsCluster",
    "PublicEndpoint",
    "Reservation",
    "ScriptBundle",
    "SessionDocument",
    "Spot",
    "Taint",
    "TrainingCluster",
    "TrainingPlan",
    "load",
    "network_card_plan",
    "placement_for",
]

if TYPE_CHECKING:
    from ultracluster.clusters.cluster import ICluster
    from ultracluster.clusters.eks.addons import EksAddons
    from ultracluster.clusters.eks.cluster import EksCluster
    from ultracluster.clusters.eks.control_plane import EksControlPlane
    from ultracluster.clusters.eks.interface import IEksControlPlane
    from ultracluster.clusters.eks.nodes import EksNodeGroup
    from ultracluster.clusters.hyperpod.eks import HyperPodEksCluster
    from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster
    from ultracluster.clusters.launch_template import NodeLaunchTemplate
    from ultracluster.clusters.parallelcluster.cluster import ParallelClusterCluster
    from ultracluster.clusters.pcs.cluster import PcsCluster
    from ultracluster.clusters.placement import ClusterPlacementGroup
    from ultracluster.clusters.session_document import SessionDocument
    from ultracluster.clusters.training_cluster import TrainingCluster
    from ultracluster.config import Environment as EnvironmentConfig
    from ultracluster.config import load
    from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
    from ultracluster.config.kubernetes import Eks, HyperPodEks, Karpenter, PublicEndpoint
    from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup, Taint
    from ultracluster.config.observability import Alerts, ExistingWorkspace, Grafana, Observability
    from ultracluster.config.orchestrator import HyperPodSlurm
    from ultracluster.config.parallelcluster import ParallelCluster
    from ultracluster.config.pcs import Pcs
    from ultracluster.config.storage import DataRepository
    from ultracluster.lifecycle.image_pipeline import ImageBuilderPipeline
    from ultracluster.lifecycle.script_bundle import ScriptBundle
    from ultracluster.model.capacity import placement_for
    from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount
    from ultracluster.model.network_cards import network_card_plan
    from ultracluster.network.admission import Admission
    from ultracluster.network.cluster_egress import ClusterEgress
    from ultracluster.network.cluster_network import ClusterNetwork
    from ultracluster.network.efa_security_group import EfaSecurityGroup, IEfaSecurityGroup
    from ultracluster.observability.cluster_observability import ClusterObservability
    from ultracluster.observability.workspace import MetricsDestination
    from ultracluster.security.cluster_key import ClusterKey
    from ultracluster.security.deletion_protection import DeletionProtection
    from ultracluster.security.execution_role import HyperPodExecutionRole
    from ultracluster.security.node_role import NodeRole
    from ultracluster.storage.accounting_database import AccountingDatabase, IAccountingDatabase
    from ultracluster.storage.buckets import DataBucket, LogBucket
    from ultracluster.storage.data_repositories import DataRepositories
    from ultracluster.storage.lustre_file_system import LustreFileSystem
    from ultracluster.storage.lustre_interface import ILustreFileSystem
    from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem, OpenZfsFileSystem
else:
    _HOMES = {
        "Accounting": "model.mounts",
        "AccountingDatabase": "storage.accounting_database",
        "Admission": "network.admission",
        "Alerts": "config.observability",
        "CapacityBlock": "config.capacity",
        "ClusterEgress": "network.cluster_egress",
        "ClusterKey": "security.cluster_key",
        "ClusterNetwork": "network.cluster_network",
        "ClusterObservability": "observability.cluster_observability",
        "ClusterPlacementGroup": "clusters.placement",
        "DataBucket": "storage.buckets",
        "DataRepositories": "storage.data_repositories",
        "DataRepository": "config.storage",
        "DeclaredInstanceType": "config.nodes",
        "DeletionProtection": "security.deletion_protection",
        "EfaSecurityGroup": "network.efa_security_group",
        "Eks": "config.kubernetes",
        "EksAddons": "clusters.eks.addons",
        "EksCluster": "clusters.eks.cluster",
        "EksControlPlane": "clusters.eks.control_plane",
        "EksNodeGroup": "clusters.eks.nodes",
        "EnvironmentConfig": "config:Environment",
        "ExistingWorkspace": "config.observability",
        "Grafana": "config.observability",
        "HyperPodEks": "config.kubernetes",
        "HyperPodEksCluster": "clusters.hyperpod.eks",
        "HyperPodExecutionRole": "security.execution_role",
        "HyperPodSlurm": "config.orchestrator",
        "HyperPodSlurmCluster": "clusters.hyperpod.slurm",
        "IAccountingDatabase": "storage.accounting_database",
        "ICluster": "clusters.cluster",
        "IEfaSecurityGroup": "network.efa_security_group",
        "IEksControlPlane": "clusters.eks.interface",
        "ILustreFileSystem": "storage.lustre_interface",
        "ImageBuilderPipeline": "lifecycle.image_pipeline",
        "IOpenZfsFileSystem": "storage.open_zfs_file_system",
        "Karpenter": "config.kubernetes",
        "load": "config",
        "LogBucket": "storage.buckets",
        "LustreFileSystem": "storage.lustre_file_system",
        "LustreMount": "model.mounts",
        "MetricsDestination": "observability.workspace",
        "network_card_plan": "model.network_cards",
        "NodeGroup": "config.nodes",
        "NodeLaunchTemplate": "clusters.launch_template",
        "NodeRole": "security.node_role",
        "Observability": "config.observability",
        "OnDemand": "config.capacity",
        "OpenZfsFileSystem": "storage.open_zfs_file_system",
        "OpenZfsMount": "model.mounts",
        "ParallelCluster": "config.parallelcluster",
        "ParallelClusterCluster": "clusters.parallelcluster.cluster",
        "Pcs": "config.pcs",
        "PcsCluster": "clusters.pcs.cluster",
        "placement_for": "model.capacity",
        "PublicEndpoint": "config.kubernetes",
        "Reservation": "config.capacity",
        "ScriptBundle": "lifecycle.script_bundle",
        "SessionDocument": "clusters.session_document",
        "Spot": "config.capacity",
        "Taint": "config.nodes",
        "TrainingCluster": "clusters.training_cluster",
        "TrainingPlan": "config.capacity",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, _, inside = _HOMES[name].partition(":")
        return getattr(import_module(f"{__name__}.{module}"), inside or name)
