"""The role of nodes that are EC2 instances of our own account, written out.

What one orchestrator's nodes need beyond it is added by its construct.
"""

from __future__ import annotations

from collections.abc import Collection

import jsii
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.config.nodes import Role
from ultracluster.guard.objects import take_objects
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.security.node_statements import (
    EVERY_NODE,
    SESSION_CHANNELS,
    NodeRights,
    named,
)


@jsii.implements(iam.IGrantable)
class NodeRole(NodeRights):
    """What an EC2 node may do: sessions through Systems Manager, our key, asking for file systems.

    Attributes:
        role: the IAM role, made here or given.
        instance_profile: carries the role to instances; same path.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        key: kms.IKey | ClusterKey,
        nodes: Collection[Role] = EVERY_NODE,
        path: str = "/",
        role: iam.IRole | None = None,
    ) -> None:
        """Make role and instance profile.

        Args:
            cluster_name: the cluster whose nodes have it, for the description.
            key: decrypts the lifecycle scripts, and the data of sessions.
            nodes: roles of the nodes that have it; all by default.
            path: IAM path of both, with slashes around. PCS asks for `/aws-pcs/`, or a name of its own form.
                By default `/`.
            role: gets the statements, instead of a role that is made; EC2 must be able to assume it; by
                default one is made.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        key = key.key if isinstance(key, ClusterKey) else key
        stack = Stack.of(self)
        self._take_role(role, "ec2.amazonaws.com", f"{named(nodes)} of the cluster {cluster_name}", path)
        self.instance_profile = iam.InstanceProfile(self, "Profile", role=self.role, path=path)
        instances = stack.format_arn(service="ec2", resource="instance", resource_name="*")
        self.allow("SessionManager", SESSION_CHANNELS, ["*"])
        self.allow("RegisterWithSystemsManager", ["ssm:UpdateInstanceInformation"], [instances])
        if "compute" in nodes:
            # without this, EFA for Lustre is silently off (awslabs/awsome-distributed-ai#1202)
            self.allow("DescribeFileSystems", ["fsx:DescribeFileSystems"], ["*"])
        self.allow("UseKey", ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"], [key.key_arn])
        acknowledge(
            self,
            {
                "AwsSolutions-IAM5[Resource::*]": "Describe calls and ssmmessages know no resources "
                "(Service Authorization Reference).",
                wildcard(self, instances): "Instances do not exist when the role is written; the call only "
                "tells Systems Manager what runs on a node.",
            },
        )

    def allow(
        self, sid: str, actions: list[str], resources: list[str], conditions: dict[str, object] | None = None
    ) -> None:
        """Add one statement; `sid` says what for."""
        self._policy.add(
            [iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)]
        )

    def grant_read_scripts(self, bucket: s3.IBucket, cluster_name: str) -> None:
        """Let nodes copy the lifecycle scripts of a cluster, whichever content hash they are asked for.

        The policy changes before the node groups do: nodes that are launched meanwhile read the older one.
        """
        within: dict[str, object] = {"StringLike": {"s3:prefix": [cluster_name, f"{cluster_name}/*"]}}
        self.allow("ListScripts", ["s3:ListBucket"], [bucket.bucket_arn], within)
        scripts = bucket.arn_for_objects(f"{cluster_name}/*")
        self.allow("ReadScripts", ["s3:GetObject"], [scripts])
        acknowledge(self, {wildcard(self, scripts): "Every content hash of this cluster's scripts."})
