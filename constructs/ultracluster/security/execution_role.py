"""The role of HyperPod nodes, written out (SageMaker Developer Guide, "IAM role for SageMaker HyperPod")."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import jsii
from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.config.nodes import Role
from ultracluster.guard.objects import HoldsSecurityGroup, plain_groups, take_objects
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.security.interfaces import InterfacePlace, instances
from ultracluster.security.node_statements import (
    EVERY_NODE,
    SESSION_CHANNELS,
    NodeRights,
    named,
)


@jsii.implements(iam.IGrantable)
class HyperPodExecutionRole(NodeRights):
    """What nodes of a HyperPod cluster may do, instead of AWS's managed policy.

    HyperPod takes one for each instance group: a cluster has one for each role of node.

    Attributes:
        role: the IAM role, made here or given.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        key: kms.IKey | ClusterKey,
        nodes: Collection[Role] = EVERY_NODE,
        subnet: ec2.ISubnet | None = None,
        further_subnets: Sequence[ec2.ISubnet] = (),
        security_groups: Sequence[ec2.ISecurityGroup | HoldsSecurityGroup] = (),
        eks_cluster_arn: str | None = None,
        role: iam.IRole | None = None,
    ) -> None:
        """Make the role.

        Args:
            cluster_name: name of the HyperPod cluster whose logs and metrics the nodes write.
            key: encrypts the nodes' volumes, buckets and secrets.
            nodes: roles of the nodes that have it; all by default.
            subnet: the only one in which it may make interfaces; any that the account can use by default.
            further_subnets: others in which it may: of groups in other zones. By default none.
            security_groups: the only ones that they may have; any by default.
            eks_cluster_arn: the EKS cluster that the nodes join; None with Slurm; by default none.
            role: gets the statements, instead of a role that is made; SageMaker must be able to assume it; by
                default one is made.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        key = key.key if isinstance(key, ClusterKey) else key
        stack = Stack.of(self)
        self._take_role(
            role, "sagemaker.amazonaws.com", f"{named(nodes)} of the HyperPod cluster {cluster_name}"
        )
        logs = stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"/aws/sagemaker/Clusters/{cluster_name}/*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        place = InterfacePlace.of(
            self,
            subnet=subnet,
            further_subnets=further_subnets,
            security_groups=plain_groups(security_groups),
        )
        attach = [*place.resources, instances(self)]
        self._policy.add(
            (
                _statement("WriteLogs", _WRITE_LOGS, [logs, f"{logs}:log-stream:*"]),
                _statement("FindLogs", ["logs:DescribeLogGroups"], ["*"]),
                _statement("WriteMetrics", ["cloudwatch:PutMetricData"], ["*"], _OWN_METRICS),
                _statement("SessionManager", SESSION_CHANNELS, ["*"]),
                _statement("AttachToVpc", _ATTACH_TO_VPC, attach, place.inside),
                # lets the account of the service attach an interface to a node that is there
                _statement(
                    "LetServiceAttach",
                    ["ec2:CreateNetworkInterfacePermission"],
                    [place.interfaces],
                    place.surely_inside,
                ),
                _statement(
                    "DescribeNetwork",
                    [*_DESCRIBE_NETWORK, *(_DESCRIBE_NODES if eks_cluster_arn else [])],
                    ["*"],
                ),
                _statement("TagInterfaces", ["ec2:CreateTags"], [place.interfaces], place.inside),
                _statement("UseKeyForVolumes", ["kms:CreateGrant"], [key.key_arn], _FOR_AWS_RESOURCES),
                _statement(
                    "UseKey", ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"], [key.key_arn]
                ),
            )
        )
        if "compute" in nodes:
            # without this, EFA for Lustre is silently off (awslabs/awsome-distributed-ai#1202)
            self._policy.add([_statement("DescribeFileSystems", ["fsx:DescribeFileSystems"], ["*"])])
        acknowledge(self, _accepted(self, logs, place))
        if eks_cluster_arn:
            self._join_eks(eks_cluster_arn, place)

    def _join_eks(self, cluster_arn: str, place: InterfacePlace) -> None:
        """What Kubernetes nodes do besides that: addresses for pods, container images, roles for pods."""
        # the images of HyperPod and of EKS's add-ons are in accounts of AWS
        images = Stack.of(self).format_arn(
            service="ecr", region="*", account="*", resource="repository", resource_name="*"
        )
        # those that roll software updates back
        alarms = Stack.of(self).format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        self._policy.add(
            (
                _statement(
                    "AddressesForPods", _POD_ADDRESSES, [*place.resources, instances(self)], place.inside
                ),
                _statement("RegistryTokens", ["ecr:GetAuthorizationToken"], ["*"]),
                _statement("SeeAlarms", ["cloudwatch:DescribeAlarms"], [alarms]),
                _statement("PodIdentity", ["eks-auth:AssumeRoleForPodIdentity"], [cluster_arn]),
                _statement("PullImages", _PULL, [images]),
            )
        )
        acknowledge(
            self,
            {
                wildcard(self, images): "AWS's own images are in its accounts; read-only.",
                wildcard(self, alarms): "Alarms of the account, of which only the state is read.",
            },
        )

    def grant_read_scripts(self, bucket: s3.IBucket, cluster_name: str) -> None:
        """Let nodes copy the lifecycle scripts of a cluster, whichever content hash they are asked for.

        The policy changes before the cluster does: nodes that are replaced meanwhile still read the older
        folder. How HyperPod lists is not published, so a list without a prefix passes, too.
        """
        self._policy.add([_statement("ListScripts", ["s3:ListBucket"], [bucket.bucket_arn])])
        scripts = bucket.arn_for_objects(f"{cluster_name}/*")
        self._policy.add([_statement("ReadScripts", ["s3:GetObject"], [scripts])])
        acknowledge(self, {wildcard(self, scripts): "Every content hash of this cluster's scripts."})

    def grant_data(self, *, reads: Sequence[str], writes: Sequence[str]) -> None:
        """Let jobs of a restricted group read and write buckets: they have no role but that of their nodes.

        The buckets are made elsewhere; if KMS keys of their own encrypt them, their policies must admit the
        role.
        """
        stack = Stack.of(self)
        arns = {
            name: stack.format_arn(service="s3", region="", account="", resource=name)
            for name in (*reads, *writes)
        }
        both = list(arns.values())
        read, written = ([f"{arns[name]}/*" for name in names] for names in (reads, writes))
        if both:
            self._policy.add([_statement("ListData", ["s3:ListBucket"], both)])
        if read:
            self._policy.add([_statement("ReadData", ["s3:GetObject"], read)])
        if written:
            self._policy.add([_statement("WriteData", _WRITE_DATA, written)])
        acknowledge(self, {wildcard(self, arn): WHOLE_BUCKET for arn in (*read, *written)})

    def grant_read_plans(self, arns: Sequence[str]) -> None:
        """Let nodes ask when training plans end (lifecycle_scripts/files/lease_end.py): only controllers."""
        self._policy.add([_statement("ReadTrainingPlans", ["sagemaker:DescribeTrainingPlan"], [*arns])])

    def grant_read_secret(self, secret_arn: str, key_arn: str | None = None) -> None:
        """Let nodes read a user and password of the accounting database: only those that run slurmdbd."""
        self._policy.add([_statement("ReadDatabaseSecret", ["secretsmanager:GetSecretValue"], [secret_arn])])
        if key_arn:
            self._policy.add([_statement("DecryptDatabaseSecret", ["kms:Decrypt"], [key_arn])])


_WRITE_DATA = ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"]
WHOLE_BUCKET = "A bucket that the file names for the data of restricted groups, as a whole."
_WRITE_LOGS = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
_OWN_METRICS: dict[str, object] = {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/Clusters"}}
_FOR_AWS_RESOURCES: dict[str, object] = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
_ATTACH_TO_VPC = [
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DetachNetworkInterface",
]
_POD_ADDRESSES = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
]
_PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
_DESCRIBE_NODES = ["ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeTags"]
_DESCRIBE_NETWORK = [
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
]


WHOSE = "The nodes' own subnet and groups, by id; only the account is open: a shared one is its owner's."
NOT_TOLD = "The role was made without the nodes' subnet or groups (subnet=, security_groups=)."


def _accepted(scope: Construct, logs: str, place: InterfacePlace) -> dict[str, str]:
    return {
        "AwsSolutions-IAM5[Resource::*]": "Describe calls, ssmmessages and PutMetricData know no resources "
        "(Service Authorization Reference); PutMetricData is limited by namespace.",
        wildcard(scope, logs): "The cluster's id, part of the name, is not known before it is made.",
        wildcard(scope, f"{logs}:log-stream:*"): "One stream for each node.",
        wildcard(scope, place.interfaces): "Interfaces get their ids when nodes start; only those of the "
        "subnet can be changed, permitted to the service or ended.",
        wildcard(scope, instances(scope)): "HyperPod's instances are in an account of the service, whose "
        "number and ids AWS does not publish; an instance can only be attached to an interface of the "
        "subnet.",
    } | {
        wildcard(scope, arn): NOT_TOLD if arn.endswith("/*") else WHOSE
        for arn in (*place.subnets, *place.groups)
    }


def _statement(
    sid: str, actions: list[str], resources: list[str], conditions: dict[str, object] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
