"""Karpenter next to managed node groups: its rights and its queue.

Karpenter 1.14 documentation, "Getting Started", "CloudFormation". Its statements are narrowed where our
use of it allows: nodes have one instance profile, which is made here, so that Karpenter makes none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

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
        for chart in charts:
            added = kubectl.add_chart(f"Chart-{chart.name}", chart)
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


@dataclass(frozen=True, slots=True)
class _Resources:
    """ARNs of Karpenter's statements."""

    templates: str
    instances: str
    created: Sequence[str]
    """Resources that a launch makes, templates and instances among them."""
    used: Sequence[str]
    """Resources that a launch names, and does not make."""
    images: str
    """Public parameters of EKS's images."""

    @classmethod
    def of(cls, stack: Stack) -> _Resources:
        templates, instances = _ec2(stack, "launch-template"), _ec2(stack, "instance")
        made_beside = ("fleet", "network-interface", "spot-instances-request", "volume")
        return cls(
            templates=templates,
            instances=instances,
            created=[templates, instances, *(_ec2(stack, kind) for kind in made_beside)],
            used=[
                *(_ec2(stack, kind, account="") for kind in ("image", "snapshot")),
                *(_ec2(stack, kind) for kind in ("placement-group", "security-group")),
                # shared ones are in the account of their owner
                *(_ec2(stack, kind, account="*") for kind in ("capacity-reservation", "subnet")),
            ],
            images=stack.format_arn(
                service="ssm",
                account="",
                resource="parameter",
                resource_name="aws/service/eks/optimized-ami/*",
            ),
        )


_Statement = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]
"""Id, actions, resources, conditions."""


def _allow(
    role: iam.Role, cluster_name: str, cluster_arn: str, queue: sqs.Queue, nodes: iam.IRole, key: kms.IKey
) -> None:
    """The statements of Karpenter's own template, each for this cluster's resources by their tags."""
    stack = Stack.of(role)
    resources = _Resources.of(stack)
    for sid, actions, arns, conditions in (
        *_launch_statements(cluster_name, resources),
        *_read_statements(stack, cluster_arn, queue, resources),
        *_use_statements(stack, nodes, key),
    ):
        role.add_to_policy(
            iam.PolicyStatement(sid=sid, actions=actions, resources=arns, conditions=conditions)
        )
    why = "What does not exist yet carries the cluster's tag; what exists is named in the class of nodes."
    acknowledge(
        role,
        {
            "AwsSolutions-IAM5[Resource::*]": "Describe calls, price lists and lists of profiles know no "
            "resources (Service Authorization Reference).",
            wildcard(role, resources.images): "Public parameters of EKS: which image belongs to which "
            "release.",
        }
        | {wildcard(role, arn): why for arn in (*resources.created, *resources.used)},
    )


def _launch_statements(cluster_name: str, resources: _Resources) -> Sequence[_Statement]:
    """Launch, tag and end the nodes of this cluster, which its tags mark."""
    owner = f"kubernetes.io/cluster/{cluster_name}"
    new = {
        "StringEquals": {
            f"aws:RequestTag/{owner}": "owned",
            "aws:RequestTag/eks:eks-cluster-name": cluster_name,
        },
        "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
    }
    own = {
        "StringEquals": {f"aws:ResourceTag/{owner}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }
    on_creation = {"ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]}
    new_tags = {**new, "StringEquals": {**new["StringEquals"], **on_creation}}
    own_tags = {
        **own,
        "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": cluster_name},
        "ForAllValues:StringEquals": {
            "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
        },
    }
    launch = ["ec2:CreateFleet", "ec2:RunInstances"]
    templates, instances, created = resources.templates, resources.instances, resources.created
    return (
        ("LaunchFrom", launch, resources.used, {}),
        ("LaunchFromOwnTemplates", launch, [templates], own),
        ("LaunchNodes", [*launch, "ec2:CreateLaunchTemplate"], created, new),
        ("TagNewNodes", ["ec2:CreateTags"], created, new_tags),
        ("TagOwnNodes", ["ec2:CreateTags"], [instances], own_tags),
        ("EndOwnNodes", ["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"], [instances, templates], own),
    )


def _read_statements(
    stack: Stack, cluster_arn: str, queue: sqs.Queue, resources: _Resources
) -> Sequence[_Statement]:
    """Look up networks, prices, images and the cluster; read news of interruptions."""
    region = {"StringEquals": {"aws:RequestedRegion": stack.region}}
    return (
        ("DescribeNetwork", _SEES, ["*"], region),
        ("Prices", ["pricing:GetProducts"], ["*"], {}),
        ("FindImages", ["ssm:GetParameter"], [resources.images], {}),
        ("FindCluster", ["eks:DescribeCluster"], [cluster_arn], {}),
        ("ReadNews", ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"], [queue.queue_arn], {}),
    )


def _use_statements(stack: Stack, nodes: iam.IRole, key: kms.IKey) -> Sequence[_Statement]:
    """Hand the nodes their role, and encrypt their volumes."""
    through_ec2 = {"kms:ViaService": f"ec2.{stack.region}.{Aws.URL_SUFFIX}"}
    to_ec2 = {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}}
    for_volumes = {"StringEquals": through_ec2, "Bool": {"kms:GrantIsForAWSResource": "true"}}
    decrypt = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"]
    return (
        ("GiveNodesTheirRole", ["iam:PassRole"], [nodes.role_arn], to_ec2),
        # it looks for profiles of its own to clean up, and has none
        ("FindProfiles", ["iam:ListInstanceProfiles"], ["*"], {}),
        ("UseKey", decrypt, [key.key_arn], {"StringEquals": through_ec2}),
        ("UseKeyForVolumes", ["kms:CreateGrant"], [key.key_arn], for_volumes),
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
