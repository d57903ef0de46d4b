"""Kubernetes: SageMaker HyperPod on EKS, and plain EKS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from ultracluster.config.base import OR_TOKEN, Cidr, Line, Many, Model, SubnetId, Values, named_by
from ultracluster.config.hyperpod_eks import (
    CheckpointTier,
    HyperPodInference,
    HyperPodObservability,
    KarpenterAutoscaling,
    Resilience,
)
from ultracluster.config.hyperpod_spaces import HyperPodSpaces
from ultracluster.config.nodes import GroupName, SharedRestrictedLustre
from ultracluster.config.storage import JobBucket, VolumeName

ClusterName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$")]
KubernetesName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
PrincipalArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9_+=,.@/-]+$"),
    OR_TOKEN,
    named_by("role_arn", "user_arn"),
]
PodSecurity = Literal["restricted", "baseline"]
"""A level of Kubernetes' Pod Security Standards. Their third, `privileged`, forbids nothing."""
HyperPodAddon = Literal[
    "cert-manager",
    "amazon-sagemaker-hyperpod-taskgovernance",
    "amazon-sagemaker-hyperpod-training-operator",
    "amazon-sagemaker-hyperpod-observability",
    "amazon-sagemaker-hyperpod-inference",
    "amazon-sagemaker-spaces",
    "aws-mountpoint-s3-csi-driver",
    "metrics-server",
]


class PrivateEndpoint(Model):
    """The Kubernetes API answers within the VPC only."""

    kind: Literal["private"] = "private"


class PublicEndpoint(Model):
    """The Kubernetes API answers within the VPC, and to some addresses of the internet."""

    kind: Literal["public"] = "public"
    cidrs: Annotated[Many[Cidr], Field(min_length=1, max_length=40)]
    """IPv4 networks that may reach it; everyone else may not."""


class ArgoCdRole(Model):
    """Who has a role in Argo CD."""

    role: Literal["admin", "editor", "viewer"]
    """Role in Argo CD."""
    users: Many[Line] = ()
    """Ids of users in IAM Identity Center."""
    groups: Many[Line] = ()
    """Ids of groups in IAM Identity Center."""


class ArgoCd(Model):
    """Argo CD run by EKS. People log in through IAM Identity Center."""

    idc_instance_arn: Annotated[
        str, Field(pattern=r"^arn:aws[a-z-]*:sso:::instance/ssoins-[0-9a-f]+$"), OR_TOKEN
    ]
    """ARN of the IAM Identity Center instance. Cannot change later."""
    idc_region: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    """Region of the IAM Identity Center instance. Cannot change later."""
    namespace: KubernetesName = "argocd"
    """Namespace of Argo CD's own objects. Cannot change later."""
    roles: Many[ArgoCdRole] = ()
    """Who may do what in Argo CD."""


class Ack(Model):
    """AWS Controllers for Kubernetes run by EKS. Its role starts without permissions."""

    disabled_services: Many[Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$")]] = ()
    """Services whose controllers are left out, e.g. `rds`."""


class Capabilities(Model):
    """EKS Capabilities: software that AWS runs next to the control plane."""

    argo_cd: ArgoCd | None = None
    """Argo CD, which deploys from Git."""
    ack: Ack | None = None
    """AWS Controllers for Kubernetes, which make AWS resources from Kubernetes objects."""
    kro: bool = False
    """Kube Resource Orchestrator, which composes custom resources."""


class Serving(Model):
    """Model servers of vLLM or SGLang as plain objects of Kubernetes (`ultracluster serve`)."""

    groups: Annotated[Many[GroupName], Field(min_length=1)]
    """Compute groups with NVIDIA GPUs whose nodes serve models; the first is that of `serve` unless it
    names another."""
    over_nodes: bool = False
    """One replica may span several nodes (`serve --nodes`); needs `leader_worker_set`."""
    disaggregated: bool = False
    """Prefill and decode may run on nodes of their own (`serve --disaggregate`), and hand caches over
    through NIXL and EFA."""


class _Kubernetes(Model):
    """What HyperPod on EKS and plain EKS have in common."""

    cluster_name: ClusterName | None = None
    """Name of the cluster; the environment's name by default. A new name is a new cluster."""
    kubernetes_version: Annotated[str, Field(pattern=r"^1\.[0-9][0-9]$", examples=["1.36"])] = "1.36"
    """Kubernetes release of the control plane; moves up one release at a time. The default is the newest in
    standard support that the orchestrator has images for."""
    node_image_release: (
        Annotated[str, Field(pattern=r"^(1\.[0-9][0-9]\.[0-9]+-)?20[0-9]{6}$", examples=["1.34.12-20261012"])]
        | None
    ) = None
    """Release of EKS's own images for nodes: in full (`1.34.12-20261012`), or only its date, which
    `ultracluster software lock --for` completes; by default the one that this package knows. Not for nodes of
    HyperPod."""
    support: Literal["standard", "extended"] = "standard"
    """What happens when the release leaves standard support: `standard` upgrades the control plane by itself,
    `extended` keeps it longer, at a higher price per hour."""
    scaling_tier: Literal["standard", "xl", "2xl", "4xl", "8xl"] = "standard"
    """Provisioned capacity of the control plane, for thousands of nodes or pods started at once."""
    endpoint: Annotated[PrivateEndpoint | PublicEndpoint, Field(discriminator="kind")] = (
        PrivateEndpoint.model_construct()
    )
    """Where the Kubernetes API answers."""
    admins: Many[PrincipalArn] = ()
    """IAM roles and users that may do everything in the cluster. No other principal can, not even the
    one that deploys it."""
    second_zone_id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    """EKS requires the control plane in two zones; this is the other one. Only with a VPC that is made. Nodes
    stay in `network.zone_id`, which is the first one unless EKS takes none there (a Local Zone): then the
    first of `network.further_zones` that EKS takes is. Cannot change later."""
    control_plane_subnet_ids: Annotated[Many[SubnetId], Field(max_length=16)] = ()
    """Private subnets in two zones or more for the control plane's interfaces; only with `network.vpc`.
    Cannot change later."""
    service_cidr: Cidr | None = None
    """IPv4 network of Kubernetes services, /12 to /24, outside the VPC; EKS's choice by default. Cannot
    change later."""
    log_retention_days: Literal[30, 60, 90, 120, 180, 365, 731] = 90
    """Days that the control plane's logs are kept."""
    scheduler: Literal["kueue", "volcano", "kai", "none"] = "kueue"
    """What admits a job's pods all at once, and close to each other."""
    gpu_plugin: Literal["device-plugin", "gpu-operator", "none"] = "device-plugin"
    """How NVIDIA GPUs become resources of Kubernetes: the device plugin with dcgm-exporter, or the GPU
    operator, whose driver and toolkit stay off because the image has both."""
    compute_domains: bool = True
    """NVIDIA's DRA driver, by which NVLink joins the nodes of an UltraServer: each job on them gets a
    ComputeDomain. Installed only where a compute group has such nodes (P6e-GB200); GPUs stay with
    `gpu_plugin`."""
    neuron_scheduler: bool = False
    """Neuron's scheduler extension: pods that request some of a node's Neuron devices, but not all, get
    devices that are joined. It is a second Kubernetes scheduler, `my-scheduler`, which pods name."""
    jobset: bool = True
    """JobSet, which runs several jobs as one."""
    leader_worker_set: bool = False
    """LeaderWorkerSet, for inference over several nodes."""
    serving: Serving | None = None
    """Groups whose nodes serve models; what collects metrics then asks model servers, too."""
    kubeflow_trainer: bool = False
    """Kubeflow Trainer; needs `jobset`."""
    kuberay: bool = False
    """KubeRay, which runs Ray clusters as RayJobs: reinforcement learning, and what else is written for Ray
    (`ultracluster job write --framework ray`). Kueue admits each as a whole."""
    mpi_operator: bool = False
    """MPI operator, which runs jobs of `mpirun`; the acceptance test of the fabric is one."""
    mpi_operator_image: Annotated[str, Field(pattern=r"^[a-z0-9][a-zA-Z0-9._:/@-]+$")] | None = None
    """A copy of the MPI operator's container image, as `registry/name:tag`; by default its maker's, which a
    network with `egress: closed` does not reach."""
    chart_repository: Annotated[str, Field(pattern=r"^oci://[a-zA-Z0-9.-]+(/[a-zA-Z0-9._/-]+)?$")] | None = (
        None
    )
    """A registry that holds copies of the charts under their own names, e.g. in Amazon ECR, and of the images
    of what collects metrics (docs/metrics-kubernetes.md). By default charts and these images come from their
    makers' public repositories, which a network with `egress: closed` does not reach."""
    chart_values: dict[Line, dict[Line, Values]] = {}
    """Values of charts by the chart's name, on top of ours; e.g. where copies of container images are."""
    capabilities: Capabilities = Capabilities.model_construct()
    """EKS Capabilities."""
    pod_security: PodSecurity = "baseline"
    """What pods in the namespace `default` may be (Kubernetes documentation, Pod Security Standards):
    `baseline` lets a container be root, which the acceptance test's SSH server is, `restricted` does not. A
    team's namespace has a level of its own."""
    mountpoint_s3: Annotated[dict[VolumeName, JobBucket], Field(max_length=8)] = {}
    """Folders of S3 as volumes, by name: the claim `s3-<name>` in `default` and in each team's namespace,
    which jobs mount at `/s3/<name>`. Mountpoint for Amazon S3 serves them, by one role for all pods of the
    cluster (docs/kubernetes.md)."""
    network_policies: bool = True
    """Pods of `default` and of teams' namespaces speak only within their namespace, to DNS and to HTTPS: the
    VPC CNI enforces network policies. Off for clusters with another network plugin. It does not hold for EFA,
    which goes past the kernel."""


class HyperPodEks(_Kubernetes):
    """SageMaker HyperPod on an EKS control plane: groups of role `compute` are HyperPod's, those of role
    `system` are managed by EKS."""

    kind: Literal["hyperpod-eks"] = "hyperpod-eks"
    kubernetes_version: Annotated[str, Field(pattern=r"^1\.[0-9][0-9]$", examples=["1.35"])] = "1.35"
    """Kubernetes release of the control plane; moves up one release at a time. The default is the newest one
    that all of AWS's pages have for HyperPod."""
    lifecycle: Literal["on-create"] = "on-create"
    """When our scripts run: before a node joins the cluster. HyperPod takes no group without a script."""
    provisioning: Literal["continuous", "classic"] = "continuous"
    """`continuous` takes partial capacity and retries in the background; `classic` is all or nothing for each
    change. Cannot change later."""
    node_recovery: Literal["automatic", "none"] = "automatic"
    """Replace or reboot faulty nodes by itself."""
    create_nodes: Literal["beside-system", "after-system"] = "beside-system"
    """When a deploy creates HyperPod's nodes. `beside-system`: while system nodes, add-ons and charts are
    created, which they need for jobs and not to join; if these fail, nodes are paid for and wait.
    `after-system`: when these are there, as in AWS's guide. `ultracluster plan` prints the minutes and the
    price."""
    autoscaling: KarpenterAutoscaling | None = None
    """Let HyperPod's Karpenter start and end nodes."""
    tiered_checkpoints_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Share of each node's memory, in percent, that holds checkpoints before they reach the file system; none
    by default. 0 disables them on a cluster that had them."""
    checkpoint_tier: CheckpointTier | None = None
    """Where jobs may save tiered checkpoints for good. A role for it is made, and a service account in each
    namespace of jobs that has it."""
    task_governance: bool = False
    """HyperPod's own Kueue with quotas for teams; `scheduler` is then `none` unless it is written."""
    training_operator: bool = False
    """HyperPod's training operator, which restarts single processes of a job instead of the job."""
    resilience: Many[Resilience] = ()
    """Kinds of resilient training that jobs may ask for. What they need is looked at then; `checkpointless`
    recovers in the running processes, `elastic` goes on with fewer or more nodes."""
    observability: HyperPodObservability | None = None
    """HyperPod's observability add-on."""
    inference: HyperPodInference | None = None
    """HyperPod's inference operator, with the add-ons and roles that it requires (docs/wishes/inference.md);
    `{}` makes everything."""
    spaces: HyperPodSpaces | None = None
    """Notebooks and editors on the cluster."""
    restricted_lustre: SharedRestrictedLustre | None = None
    """One Lustre file system for all groups that are `restricted` and have none of their own."""
    addon_versions: dict[
        HyperPodAddon, Annotated[str, Field(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$")]
    ] = {}
    """Versions of HyperPod's add-ons by name, instead of ours, as `aws eks describe-addon-versions` lists
    them."""

    @model_validator(mode="before")
    @classmethod
    def _governed(cls, data: Any) -> Any:
        """Task governance is the scheduler where none is named."""
        given: Mapping[str, Any] = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}
        return {"scheduler": "none", **given} if given.get("task_governance") is True else cast("Any", data)


class RepairOverride(Model):
    """What is done about one kind of fault, instead of EKS's own choice."""

    condition: Line
    """Condition that the node monitoring agent sets, e.g. `AcceleratedHardwareReady`."""
    reason: Line
    """Reason that it gives, e.g. `NvidiaXID64Error`."""
    action: Literal["replace", "reboot", "none"]
    """What to do."""
    after_minutes: Annotated[int, Field(ge=1)]
    """Minutes that the condition must last."""


class NodeRepair(Model):
    """EKS replaces or reboots nodes that its monitoring agent calls faulty, ten minutes after a fault of an
    accelerator."""

    enabled: bool = True
    """Repair faulty nodes by itself."""
    max_parallel_percent: Annotated[int, Field(ge=1, le=100)] = 10
    """At most so many of the faulty nodes of a group are repaired at once, in percent."""
    max_unhealthy_percent: Annotated[int, Field(ge=1, le=100)] = 30
    """No repair while more nodes of a group than this are faulty, in percent: then the fault is elsewhere."""
    overrides: Many[RepairOverride] = ()
    """What is done about single kinds of faults."""


class Karpenter(Model):
    """Karpenter starts nodes of some groups for pods that wait, and ends idle ones. All other groups stay
    managed node groups."""

    groups: Annotated[Many[GroupName], Field(min_length=1)]
    """Compute groups whose nodes it starts. With `count: 0` a group has up to `max_count` nodes, as pods ask
    for them; with a `count` it always has so many, which Karpenter calls a static pool."""
    idle_minutes: Annotated[int, Field(ge=1, le=1440)] = 10
    """Minutes that a node is empty before it is ended. One with a job is never taken away for a newer image
    or a cheaper node."""


class Eks(_Kubernetes):
    """Amazon EKS with managed node groups of our own launch templates, and Karpenter if asked for."""

    kind: Literal["eks"] = "eks"
    lifecycle: Literal["user-data", "none"] = "user-data"
    """When our scripts run: before a node joins the cluster, or not at all."""
    node_repair: NodeRepair = NodeRepair.model_construct()
    """What is done about faulty compute nodes."""
    max_unavailable: Annotated[int, Field(ge=1, le=100)] = 1
    """Nodes of a group that are replaced at once when its image or launch template changes."""
    karpenter: Karpenter | None = None
    """Let Karpenter start the nodes of some compute groups."""
    efa_devices: Literal["device-plugin", "dra"] = "device-plugin"
    """How pods get EFA interfaces: they request a number of `vpc.amazonaws.com/efa`, or they claim them of
    the EFA DRA driver (Kubernetes 1.34 or later), which also knows where each is attached. Change it while no
    job runs."""
