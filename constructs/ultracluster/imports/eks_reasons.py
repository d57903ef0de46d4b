"""Why keys of EKS's answers do not carry over, and what to do."""

from __future__ import annotations

from ultracluster.imports import launch_template
from ultracluster.imports.ledger import SILENT, Reason

_ROLES: Reason = (
    "roles are made with the rights that nodes and add-ons need, and no others",
    "roles of your own pods are yours to make; bounds and names of ours are `governance`",
)
_GROUP: Reason = (
    "it belongs to the old control plane, and goes with it",
    "what your own nodes need of it: network.security_group",
)
_TAGS: Reason = ("all resources have the tags of the environment", "write them in `tags`")

REASONS: dict[str, Reason] = {
    **launch_template.REASONS,
    **dict.fromkeys(
        (
            "cluster.name",
            "cluster.arn",
            "cluster.createdAt",
            "cluster.endpoint",
            "cluster.identity",
            "cluster.certificateAuthority",
            "cluster.clientRequestToken",
            "cluster.platformVersion",
            "cluster.id",
            "cluster.health",
            "cluster.connectorConfig",
            "resourcesVpcConfig.vpcId",
            "nodegroups.nodegroupArn",
            "nodegroups.clusterName",
            "nodegroups.version",
            "nodegroups.releaseVersion",
            "nodegroups.createdAt",
            "nodegroups.modifiedAt",
            "nodegroups.resources",
            "nodegroups.health",
            "launchTemplate.ImageId",
            "accessEntries.clusterName",
            "accessEntries.accessEntryArn",
            "accessEntries.createdAt",
            "accessEntries.modifiedAt",
            "accessEntries.tags",
            "accessEntries.username",
            "policies.associatedAt",
            "policies.modifiedAt",
            "kubernetesNetworkConfig.serviceIpv6Cidr",
        ),
        SILENT,
    ),
    "cluster.roleArn": _ROLES,
    "nodegroups.nodeRole": _ROLES,
    "nodegroups.tags": _TAGS,
    "resourcesVpcConfig.securityGroupIds": _GROUP,
    "resourcesVpcConfig.clusterSecurityGroupId": _GROUP,
    "resourcesVpcConfig.controlPlaneEgressMode": (
        "the control plane goes out as AWS has it by default",
        "see network.egress for the nodes",
    ),
    "kubernetesNetworkConfig.elasticLoadBalancing": (
        "load balancers of EKS Auto Mode are not made",
        "orchestrator.inference has a load balancer controller on HyperPod",
    ),
    "cluster.logging": ("all logs of the control plane are kept", "see orchestrator.log_retention_days"),
    "cluster.outpostConfig": ("no cluster is made on Outposts", "keep it where it is"),
    "cluster.accessConfig": ("access is by access entries only", "write orchestrator.admins and `teams`"),
    "cluster.zonalShiftConfig": ("nodes are in one zone, from which nothing can shift", "nothing to do"),
    "cluster.remoteNetworkConfig": (
        "no node is outside of AWS",
        "keep hybrid nodes on a cluster of their own",
    ),
    "cluster.computeConfig": (
        "EKS Auto Mode launches no EFA groups of ours",
        "groups are managed, or Karpenter's (orchestrator.karpenter)",
    ),
    "cluster.storageConfig": ("the EBS CSI driver is an add-on", "nothing to do"),
    "cluster.kubeApiServerConfig": ("the control plane is set as EKS sets it", "nothing to do"),
    "cluster.kubeSchedulerConfig": (
        "the control plane is set as EKS sets it",
        "orchestrator.scheduler places jobs",
    ),
    "cluster.kubeControllerManagerConfig": ("the control plane is set as EKS sets it", "nothing to do"),
    "nodegroups.remoteAccess": (
        "no port is open for SSH",
        "people log in through Session Manager (`ultracluster connect`)",
    ),
    "nodegroups.updateConfig": ("one number holds for all groups", "see orchestrator.max_unavailable"),
    "nodegroups.nodeRepairConfig": ("faulty nodes are repaired", "see orchestrator.node_repair"),
    "nodegroups.warmPoolConfig": ("no nodes are kept in a warm pool", "orchestrator.karpenter starts nodes"),
    "addons": (
        "the add-ons that a training cluster needs are installed, with versions that fit each other",
        "`ultracluster plan` lists them; install others with your own tools, e.g. capabilities.argo_cd",
    ),
    "fargateProfiles": ("no pod runs on Fargate", "the system group has the add-ons"),
    "podIdentities": _ROLES,
}
