"""Why known keys of eksctl's ClusterConfig do not carry over, and what to do."""

from __future__ import annotations

from ultracluster.imports.ledger import SILENT, Reason

_STEPS: Reason = (
    "nodes run the steps of their software release",
    "docs/releases.md has what it installs; what is missing becomes a step of yours (docs/own-steps.md)",
)
_NETWORK: Reason = (
    "an environment makes its own network, and names of zones are other zones in each account",
    "pass --zone-id; to stay in your network write network.vpc and network.subnet (id, cidr)",
)
_ROLES: Reason = (
    "roles are made with the rights that nodes and add-ons need, and no others",
    "roles of your own pods are yours to make; bounds and names of ours are `governance`",
)
_ADDONS: Reason = (
    "the add-ons that a training cluster needs are installed, with versions that fit each other",
    "`ultracluster plan` lists them; install others with your own tools, e.g. capabilities.argo_cd",
)
_IMAGE: Reason = (
    "nodes have EKS's own accelerated image, locked by its release",
    "`image` names one of yours",
)
_KUBELET: Reason = ("the kubelet is set as EKS sets it", "chart_values and own images hold further settings")

_CONTROL: Reason = ("the control plane is set as EKS sets it", "nothing to do")
_UPDATE: Reason = ("a deploy says how it updates", "see `ultracluster diff` and orchestrator.max_unavailable")
_SCALING: Reason = ("EKS keeps the Auto Scaling group of a managed group", "nothing to do")
_BALANCER: Reason = (
    "load balancers reach pods, and not groups of nodes",
    "a Service or an Ingress of Kubernetes makes one",
)

LEVELS = {
    **dict.fromkeys(("region", "version"), "metadata"),
    **dict.fromkeys(("desiredCapacity", "efaEnabled", "instanceTypes", "instanceType"), "managedNodeGroups"),
}
"""Keys of a ClusterConfig -> what they belong below; `nodeGroups` have these, too."""
REASONS: dict[str, Reason] = {
    "availabilityZones": _NETWORK,
    "localZones": _NETWORK,
    "vpc": _NETWORK,
    "vpc.id": _NETWORK,
    "vpc.cidr": _NETWORK,
    "vpc.subnets": _NETWORK,
    "vpc.securityGroup": _NETWORK,
    "vpc.sharedNodeSecurityGroup": _NETWORK,
    "vpc.controlPlaneSubnetIDs": _NETWORK,
    "vpc.controlPlaneSecurityGroupIDs": _NETWORK,
    "vpc.nat": ("nodes go out through one NAT gateway, or not at all", "see network.egress"),
    "privateCluster": (
        "a network without a way out needs a mirror of the software",
        "see network.egress: closed",
    ),
    "subnets": _NETWORK,
    "securityGroups": _NETWORK,
    "privateNetworking": ("nodes are always in private subnets", "nothing to do"),
    "ssh": ("no port is open for SSH", "people log in through Session Manager (`ultracluster connect`)"),
    "iam": _ROLES,
    "iam.withOIDC": ("an identity provider is made where something needs it", "nothing to do"),
    "iam.serviceRolePermissionsBoundary": (
        "bounds of roles are one setting",
        "write governance.permissions_boundary",
    ),
    "addons": _ADDONS,
    "addonsConfig": _ADDONS,
    "karpenter": ("Karpenter starts nodes of named groups", "write orchestrator.karpenter: {groups}"),
    "fargateProfiles": ("no pod runs on Fargate", "the system group has the add-ons"),
    "gitops": ("Flux is not installed", "write orchestrator.capabilities.argo_cd, or install it yourself"),
    "identityProviders": ("people come in by IAM", "write orchestrator.admins and `teams`"),
    "autoModeConfig": ("EKS Auto Mode launches no EFA groups of ours", "groups are managed, or Karpenter's"),
    "accessConfig.authenticationMode": ("access is by access entries only", "nothing to do"),
    "accessConfig.bootstrapClusterCreatorAdminPermissions": (
        "who deploys is no administrator",
        "write orchestrator.admins",
    ),
    "clusterLogging.enableTypes": (
        "all logs of the control plane are kept",
        "see orchestrator.log_retention_days",
    ),
    "kubernetesNetworkConfig.ipFamily": ("pods have IPv4 addresses", "nothing to do with IPv4"),
    "amiFamily": _IMAGE,
    "releaseVersion": _IMAGE,
    "launchTemplate": ("launch templates are made for the fabric of each type", "nothing to do"),
    "preBootstrapCommands": _STEPS,
    "overrideBootstrapCommand": _STEPS,
    "maxPodsPerNode": _KUBELET,
    "kubeletExtraConfig": _KUBELET,
    "clusterDNS": _KUBELET,
    "placement": ("a placement group is made for groups with EFA", "`placement_group: none` makes none"),
    "volumeType": ("root volumes are gp3, or io2 with root_volume_iops", "nothing to do"),
    "volumeIOPS": ("gp3 has the operations that its throughput asks for", "root_volume_iops makes it io2"),
    "volumeEncrypted": ("volumes are always encrypted", "nothing to do"),
    "volumeKmsKeyID": ("volumes have the environment's key", "write storage.keys.volumes"),
    "updateConfig": ("one number holds for all groups", "see orchestrator.max_unavailable"),
    "nodeRepairConfig": ("faulty nodes are repaired", "see orchestrator.node_repair"),
    "disableIMDSv1": ("IMDSv2 is required on every node", "nothing to do"),
    "disablePodIMDS": ("pods do not reach the metadata of nodes", "nothing to do"),
    "managedNodeGroups.tags": ("all resources have the tags of the environment", "write them in `tags`"),
    "nodeGroups.tags": ("all resources have the tags of the environment", "write them in `tags`"),
    "propagateASGTags": ("nothing scales the group by its labels", "nothing to do"),
    "instancesDistribution": ("a group is on demand, Spot or reserved as a whole", "write `capacity`"),
    "enableDetailedMonitoring": ("metrics come from the nodes themselves", "see `observability`"),
    "capacityReservationPreference": (
        "open reservations match by themselves",
        "write capacity.kind: reservation",
    ),
    "kubernetesNetworkConfig.serviceIPv6CIDR": ("pods have IPv4 addresses", "nothing to do with IPv4"),
    "vpc.*": _NETWORK,
    "capabilities": (
        "EKS Capabilities are the environment's own setting",
        "write orchestrator.capabilities: argo_cd, ack, kro",
    ),
    "kubeAPIServerConfig": _CONTROL,
    "kubeControllerManagerConfig": _CONTROL,
    "kubeSchedulerConfig": ("the control plane is set as EKS sets it", "orchestrator.scheduler places jobs"),
    "outpost": ("no cluster is made on Outposts", "keep it where it is"),
    "outpostARN": ("no cluster is made on Outposts", "keep it where it is"),
    "remoteNetworkConfig": ("no node is outside of AWS", "keep hybrid nodes on a cluster of their own"),
    "zonalShiftConfig": ("nodes are in one zone, from which nothing can shift", "nothing to do"),
    "metadata.forceUpdateVersion": _UPDATE,
    "metadata.rollbackConfig": _UPDATE,
    "additionalVolumes": ("nodes have one volume, and their own NVMe disks", "see root_volume_gib"),
    "asgSuspendProcesses": _SCALING,
    "asgMetricsCollection": _SCALING,
    "maxInstanceLifetime": _SCALING,
    "bottlerocket": _IMAGE,
    "containerRuntime": _IMAGE,
    "ebsOptimized": SILENT,
    "volumeName": SILENT,
    "instanceName": ("nodes are named by their group", "nothing to do"),
    "instancePrefix": ("nodes are named by their group", "nothing to do"),
    "instanceSelector": ("a group has one type, which is named", "write instance_type"),
    "classicLoadBalancerNames": _BALANCER,
    "targetGroupARNs": _BALANCER,
    "cpuCredits": ("types that save up credits are not for training", "nothing to do"),
    "enclaveEnabled": ("Nitro Enclaves are not switched on", "keep such nodes on a cluster of their own"),
}
