"""What the EBS CSI driver may do: volumes and snapshots that carry its tag, on nodes of this cluster.

Written after AmazonEBSCSIDriverPolicyV2 and AmazonEBSCSIDriverEKSClusterScopedPolicy (AWS Managed Policy
Reference, 2026-05), less what nothing here asks for: copies of volumes, fast restore, locks, new tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from ultracluster.security.acknowledgements import acknowledge, wildcard

_TAG = "ebs.csi.aws.com/cluster"
"""The driver puts it on all that it makes, with the value `true`."""
_NAME_TAG = "ebs.csi.aws.com/cluster-name"
"""Tag with the cluster's name: the driver puts it on what it makes since 1.58, where it knows the cluster
(kubernetes-sigs/aws-ebs-csi-driver, "Tagging"; AmazonEBSCSIDriverEKSClusterScopedPolicy, v1)."""
_OF_CLUSTER = ("eks:cluster-name", "eks:eks-cluster-name", _NAME_TAG)
"""Tags that tell whose node an instance is: EKS's on managed nodes, Karpenter's, and one that people give to
nodes of their own. A node without any of them gets no volume."""
EKS_TAG = "ultracluster:eks-cluster"
"""Tag of a HyperPod cluster: the name of its EKS cluster."""
_SEES = [
    f"ec2:Describe{name}"
    for name in (
        "AvailabilityZones",
        "InstanceTypes",
        "Instances",
        "Snapshots",
        "Tags",
        "VolumeStatus",
        "Volumes",
        "VolumesModifications",
    )
]


def allow_volumes(role: iam.Role, key: kms.IKey, *, cluster_name: str) -> None:
    """Volumes from nothing or from a snapshot, encrypted with the key, attached to the cluster's nodes.

    Args:
        key: encrypts them, and the snapshots of them.
        cluster_name: of the EKS cluster, as its nodes' tags have it.
    """
    stack = Stack.of(role)
    volumes, nodes = (
        stack.format_arn(service="ec2", resource=resource, resource_name="*")
        for resource in ("volume", "instance")
    )
    snapshots = stack.format_arn(service="ec2", account="", resource="snapshot", resource_name="*")
    for sid, actions, resources, conditions in _statements(volumes, snapshots, nodes, key, cluster_name):
        role.add_to_policy(
            iam.PolicyStatement(
                sid=sid, actions=actions, resources=resources, conditions=dict(conditions or {})
            )
        )
    own = "They do not exist yet; what is made carries the driver's tag, and nothing without it is touched."
    acknowledge(
        role,
        {
            "AwsSolutions-IAM5[Resource::*]": "Describe calls know no resources (Service Authorization "
            "Reference).",
            wildcard(role, volumes): own,
            wildcard(role, snapshots): own,
            wildcard(role, nodes): "Nodes do not exist yet; only those that carry the tag of this cluster.",
        },
    )


def allow_volumes_on_hyperpod(role: iam.Role, *, eks_cluster_arn: str, cluster_name: str) -> None:
    """Volumes attached to HyperPod's nodes: instances of a service's account, out of reach of EC2's rights.

    SageMaker Developer Guide, "Using the Amazon EBS CSI driver on SageMaker HyperPod EKS clusters", section
    Additional permissions.

    Args:
        eks_cluster_arn: the EKS cluster of the nodes.
        cluster_name: its name, which the HyperPod cluster has as its tag `EKS_TAG`.
    """
    clusters = Stack.of(role).format_arn(service="sagemaker", resource="cluster", resource_name="*")
    verbs = ("AttachClusterNodeVolume", "DescribeClusterNode", "DetachClusterNodeVolume")
    ours = {"StringEquals": {f"aws:ResourceTag/{EKS_TAG}": cluster_name}}
    for sid, actions, arn, conditions in (
        ("AttachToHyperPod", [f"sagemaker:{verb}" for verb in verbs], clusters, ours),
        ("DescribeEksCluster", ["eks:DescribeCluster"], eks_cluster_arn, None),
    ):
        role.add_to_policy(
            iam.PolicyStatement(sid=sid, actions=actions, resources=[arn], conditions=conditions)
        )
    why = "The HyperPod cluster is created after the driver, and its ARN has a random id; it has a tag."
    acknowledge(role, {wildcard(role, clusters): why})


def _statements(
    volumes: str, snapshots: str, nodes: str, key: kms.IKey, cluster_name: str
) -> Iterator[tuple[str, list[str], list[str], Mapping[str, object] | None]]:
    asked = {"StringEquals": {f"aws:RequestTag/{_TAG}": "true"}}
    marked = {
        "StringEquals": {f"ec2:ResourceTag/{_TAG}": "true"},
        # older ones do not say whose they are
        "StringEqualsIfExists": {f"ec2:ResourceTag/{_NAME_TAG}": cluster_name},
    }
    made_with = {"StringEquals": {"ec2:CreateAction": ["CreateSnapshot", "CreateVolume"]}}
    yield "MakeVolumes", ["ec2:CreateVolume"], [volumes], asked
    yield "RestoreOwnSnapshots", ["ec2:CreateVolume"], [snapshots], marked
    yield "MakeSnapshots", ["ec2:CreateSnapshot"], [snapshots], asked
    yield "SnapshotOwnVolumes", ["ec2:CreateSnapshot"], [volumes], marked
    yield "DeleteOwnSnapshots", ["ec2:DeleteSnapshot"], [snapshots], marked
    yield "TagWhatIsMade", ["ec2:CreateTags"], [volumes, snapshots], made_with
    used = [f"ec2:{verb}Volume" for verb in ("Attach", "Delete", "Detach", "Modify")]
    yield "UseOwnVolumes", used, [volumes], marked
    for number, tag in enumerate(_OF_CLUSTER, start=1):
        whose = {"StringEquals": {f"ec2:ResourceTag/{tag}": cluster_name}}
        yield f"AttachToNodes{number}", ["ec2:AttachVolume", "ec2:DetachVolume"], [nodes], whose
    yield "DescribeVolumes", _SEES, ["*"], None
    encrypts = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"]
    yield "UseKey", encrypts, [key.key_arn], None
    for_aws = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    yield "UseKeyForVolumes", ["kms:CreateGrant"], [key.key_arn], for_aws
