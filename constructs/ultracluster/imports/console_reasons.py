"""Why parameters of the templates behind HyperPod's console do not carry over, and what to do."""

from __future__ import annotations

from ultracluster.imports.ledger import SILENT, Reason

_STEPS: Reason = (
    "nodes run the steps of their software release instead of these scripts",
    "docs/releases.md has what it installs; what is missing becomes a step of yours (docs/own-steps.md)",
)
_NETWORK: Reason = (
    "an environment makes its own network, and parameters with ids do not say its addresses",
    "`ultracluster import --cluster NAME` names it, or write network.vpc and network.subnet (id, cidr)",
)
_ROLE: Reason = (
    "roles are made with the rights that nodes need, and no others",
    "jobs' rights on buckets are storage.job_buckets; bounds and names of roles are `governance`",
)
_CHARTS: Reason = (
    "charts and add-ons are installed by the environment, with versions that fit each other",
    "see orchestrator.training_operator, .mpi_operator, .kubeflow_trainer and .chart_values",
)
_NAMES: Reason = (
    "resources have names made of the environment's",
    "roles with another prefix: governance.role_prefix",
)
_METRICS: Reason = (
    "metrics, dashboards and alerts are one setting of the environment",
    "write `observability`, or orchestrator.observability for HyperPod's own add-on",
)

REASONS: dict[str, Reason] = {
    **dict.fromkeys((
        "Stage", "CustomBucketName", "CreateVPCStack",
        "CreatePrivateSubnetStack", "CreateSecurityGroupStack", "CreateEKSClusterStack",
        "CreateS3BucketStack", "CreateS3EndpointStack", "CreateS3Endpoint", "CreateLifeCycleScriptStack",
        "CreateHyperPodClusterStack", "CreateSageMakerIAMRoleStack", "CreateHelmChartStack",
        "CreateFsxStack",
    ), SILENT),
    **dict.fromkeys(("ResourceNamePrefix", "ResourceNameShortPrefix", "VPCName", "EKSClusterName"), _NAMES),
    **dict.fromkeys((
        "VpcId", "VpcCIDR", "PrivateSubnetIds", "SecurityGroupId", "SecurityGroupIds", "NatGatewayIds",
        "EksPrivateSubnetIds", "PrivateRouteTableIds", "EksPrivateRouteTableIds",
    ), _NETWORK),
    **dict.fromkeys(("S3BucketName", "OnCreatePath", "GithubRawUrl", "S3Bucket"), _STEPS),
    **dict.fromkeys(("SageMakerIAMRoleName", "HyperPodClusterRole"), _ROLE),
    **dict.fromkeys((
        "HelmRepoUrl", "HelmRepoPath", "HelmOperators", "Namespace", "HelmRelease",
    ), _CHARTS),
    **dict.fromkeys((
        "EnableObservabilityFeature", "CreateHyperPodObservabilityRole", "CreatePrometheusWorkspace",
        "CreateGrafanaWorkspace", "CreateGrafanaRole", "TaskGovernanceMetricLevel", "NodeMetricLevel",
        "ClusterMetricLevel", "NetworkMetricLevel", "TrainingMetricLevel", "AcceleratedComputeMetricLevel",
        "ScalingMetricLevel", "Logging",
    ), _METRICS),
    "EnableHPInferenceFeature": ("inference is not installed by itself", "write orchestrator.inference: {}"),
    "EnableHPInferenceAddonFeature": (
        "inference is not installed by itself",
        "write orchestrator.inference: {}",
    ),
    "EnableHPTrainingOperatorFeature": (
        "the training operator is not installed by itself",
        "write orchestrator.training_operator: true",
    ),
    **dict.fromkeys(
        ("CreateTaskGovernanceClusterPolicyStack", "PriorityClasses", "FairShare"),
        ("quotas of teams are the environment's", "write `teams`, and orchestrator.task_governance: true"),
    ),
    "TieredStorageConfig": (
        "tiered checkpoints are a share of the nodes' memory",
        "write orchestrator.tiered_checkpoints_percent",
    ),
    "RigS3BucketName": ("it is a bucket of restricted groups", "write node_groups.<group>.restricted"),
    "BackupSubnetAZ": (
        "nodes are in one zone",
        "a second zone is asked for where a database or a control plane requires it",
    ),
    "SSMDocumentName": (
        "sessions have documents of their own",
        "people log in with `ultracluster connect`",
    ),
}  # fmt: skip
