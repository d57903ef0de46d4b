"""Karpenter next to managed node groups: its rights and its queue.

Karpenter 1.14 documentation, "Getting Started", "CloudFormation". Its statements are narrowed where our
use of it allows: nodes have one instance profile, which is made here, so that Karpenter makes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import ArnFormat, Aws, Duration, Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.clusters.eks.roles import addon_role, node_role
from ultracluster.kubernetes.charts import Chart
from ultracluster.kubernetes.karpenter import ACCOUNT, NAMESPACE
from ultracluster.security.acknowledgements import acknowledge, wildcard

NEWS = [
    "AWS Health Event",
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Instance Rebalance Recommendation",
    "EC2 Instance State-change Notification",
    "EC2 Spot Instance Interruption Warning",
]
"""What Karpenter reads from its queue (Karpenter documentation, "Interruption")."""


class EksKarpenter(Construct):
    """Karpenter's controller and its rights, in a cluster that exists.

    The controller runs on system nodes: it could not start the node that it needs itself.

    Attributes:
        queue: news of interruptions; messages are dropped after five minutes.
        controller_role: what the controller may do, through EKS Pod Identity.
        node_role: what its nodes may do; with an access entry of its own.
        instance_profile: carries it to instances.
        ready: what must be there before a pool of it is.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        key: kms.IKey,
        mirror: str | None = None,
    ) -> None:
        """Make rights and queue.

        Args:
            cluster_name: as text, never a token: it is a part of conditions.
            cluster_arn: its ARN.
            key: encrypts the nodes' volumes.
            mirror: `s3://bucket/prefix` of mirrored software releases.
        """
        super().__init__(scope, construct_id)
        self._cluster_name = cluster_name
        self._key = key
        self.queue = _queue(self)
        _news(self, self.queue)
        self.node_role = node_role(self, "NodeRole", cluster_arn=cluster_arn, mirror=mirror)
        self.instance_profile = iam.InstanceProfile(self, "NodeProfile", role=self.node_role)
        entry = eks.CfnAccessEntry(
            self,
            "NodeEntry",
            cluster_name=cluster_name,
            principal_arn=self.node_role.role_arn,
            type="EC2_LINUX",
        )
        self.controller_role = addon_role(self, "Role", cluster_arn=cluster_arn, addon="karpenter")
        _allow(self.controller_role, cluster_name, cluster_arn, self.queue, self.node_role, key)
        self._identity = eks.CfnPodIdentityAssociation(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=NAMESPACE,
            service_account=ACCOUNT,
            role_arn=self.controller_role.role_arn,
        )
        self.ready: list[IConstruct] = [entry, self.node_role, self.instance_profile]

    def install(self, kubectl: Kubectl, charts: Sequence[Chart], *, after: Sequence[IConstruct] = ()) -> None:
        """Install Karpenter.

        Args:
            kubectl: the way into the cluster.
            charts: from `ultracluster.kubernetes.karpenter.karpenter_charts`.
            after: what its pods need; when the stack goes, it is still there while nodes are ended.
        """
        self.ready += after
        for one in charts:
            added = kubectl.add_chart(f"Chart-{one.name}", one)
            # when the stack goes, the controller must be able to end its nodes
            added.node.add_dependency(self._identity, self.controller_role, *self.ready)
            self.ready.append(added)


def _queue(scope: Construct) -> sqs.Queue:
    queue = sqs.Queue(
        scope,
        "Interruptions",
        # EventBridge may use it without a word in the policy of a key, which may be someone else's
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.minutes(5),
    )
    acknowledge(
        queue,
        {
            "AwsSolutions-SQS3": "Interruption messages expire after five minutes; no dead-letter queue is "
            "needed."
        },
    )
    return queue


def _news(scope: Construct, queue: sqs.Queue) -> None:
    rule = events.Rule(
        scope,
        "News",
        description="Interruptions of nodes, for Karpenter",
        event_pattern=events.EventPattern(source=["aws.ec2", "aws.health"], detail_type=NEWS),
    )
    rule.add_target(cast("events.IRuleTarget", targets.SqsQueue(cast("sqs.IQueue", queue))))


def _allow(
    role: iam.Role, cluster_name: str, cluster_arn: str, queue: sqs.Queue, nodes: iam.IRole, key: kms.IKey
) -> None:
    """The statements of Karpenter's own template, each for this cluster's resources by their tags."""
    stack = Stack.of(role)
    ours = f"kubernetes.io/cluster/{cluster_name}"
    new = {
        "StringEquals": {
            f"aws:RequestTag/{ours}": "owned",
            "aws:RequestTag/eks:eks-cluster-name": cluster_name,
        },
        "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
    }
    made = {
        "StringEquals": {f"aws:ResourceTag/{ours}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }
    templates, instances = _ec2(stack, "launch-template"), _ec2(stack, "instance")
    created = [
        templates,
        instances,
        *(_ec2(stack, one) for one in ("fleet", "network-interface", "spot-instances-request", "volume")),
    ]
    found = [
        *(_ec2(stack, one, account="") for one in ("image", "snapshot")),
        *(_ec2(stack, one) for one in ("placement-group", "security-group")),
        # shared ones are in the account of their owner
        *(_ec2(stack, one, account="*") for one in ("capacity-reservation", "subnet")),
    ]
    images = stack.format_arn(
        service="ssm", account="", resource="parameter", resource_name="aws/service/eks/optimized-ami/*"
    )
    launch = ["ec2:CreateFleet", "ec2:RunInstances"]
    creates = {"ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]}
    tagging = {
        **made,
        "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": cluster_name},
        "ForAllValues:StringEquals": {
            "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
        },
    }
    through_ec2 = {"kms:ViaService": f"ec2.{stack.region}.{Aws.URL_SUFFIX}"}
    here = {"StringEquals": {"aws:RequestedRegion": stack.region}}
    for sid, actions, resources, conditions in (
        ("LaunchFrom", launch, found, {}),
        ("LaunchFromOwnTemplates", launch, [templates], made),
        ("LaunchNodes", [*launch, "ec2:CreateLaunchTemplate"], created, new),
        (
            "TagNewNodes",
            ["ec2:CreateTags"],
            created,
            {**new, "StringEquals": {**new["StringEquals"], **creates}},
        ),
        ("TagOwnNodes", ["ec2:CreateTags"], [instances], tagging),
        ("EndOwnNodes", ["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"], [instances, templates], made),
        ("DescribeNetwork", _SEES, ["*"], here),
        ("Prices", ["pricing:GetProducts"], ["*"], {}),
        ("FindImages", ["ssm:GetParameter"], [images], {}),
        ("FindCluster", ["eks:DescribeCluster"], [cluster_arn], {}),
        ("ReadNews", ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"], [queue.queue_arn], {}),
        (
            "GiveNodesTheirRole",
            ["iam:PassRole"],
            [nodes.role_arn],
            {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
        ),
        # it looks for profiles of its own to clean up, and has none
        ("FindProfiles", ["iam:ListInstanceProfiles"], ["*"], {}),
        (
            "UseKey",
            ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"],
            [key.key_arn],
            {"StringEquals": through_ec2},
        ),
        (
            "UseKeyForVolumes",
            ["kms:CreateGrant"],
            [key.key_arn],
            {"StringEquals": through_ec2, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    ):
        role.add_to_policy(
            iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
        )
    why = "What does not exist yet carries the cluster's tag; what exists is named in the class of nodes."
    acknowledge(
        role,
        {
            "AwsSolutions-IAM5[Resource::*]": "Describe calls, price lists and lists of profiles know no "
            "resources (Service Authorization Reference).",
            wildcard(role, images): "Public parameters of EKS: which image belongs to which release.",
        }
        | {wildcard(role, arn): why for arn in (*created, *found)},
    )


def _ec2(stack: Stack, resource: str, *, account: str | None = None) -> str:
    return stack.format_arn(
        service="ec2",
        resource=resource,
        resource_name="*",
        account=account,
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )


_SEES = [
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
]

__all__ = ["NEWS", "EksKarpenter"]
