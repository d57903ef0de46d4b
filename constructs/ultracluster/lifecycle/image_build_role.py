"""The role of the instances that build and test an image.

AWS asks to attach EC2InstanceProfileForImageBuilder and AmazonSSMManagedInstanceCore (EC2 Image Builder User
Guide, "Get set up to build custom images"). They are written out here from their text (v12 of February 2026),
less what this pipeline never does: containers, Windows, imports, and reading every parameter of the account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.node_statements import SESSION_CHANNELS, read_below
from ultracluster.security.principals import trusted

_AGENT = [
    "ssm:DescribeAssociation",
    "ssm:DescribeDocument",
    "ssm:GetDeployablePatchSnapshotForInstance",
    "ssm:GetDocument",
    "ssm:GetManifest",
    "ssm:ListAssociations",
    "ssm:ListInstanceAssociations",
    "ssm:PutComplianceItems",
    "ssm:PutConfigurePackageResult",
    "ssm:PutInventory",
    "ssm:UpdateAssociationStatus",
    "ssm:UpdateInstanceAssociationStatus",
    "ssm:UpdateInstanceInformation",
]
# of agents before 3.3.40.0, which a base may still have
_MESSAGES = [
    f"ec2messages:{name}"
    for name in (
        "AcknowledgeMessage",
        "DeleteMessage",
        "FailMessage",
        "GetEndpoint",
        "GetMessages",
        "SendReply",
    )
]


class BuildRole(Construct):
    """What an instance that builds or tests an image may do.

    Attributes:
        role: the IAM role.
        instance_profile: carries it.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, components: str, log_group_arn: str, name: str
    ) -> None:
        """Make role and instance profile.

        Args:
            components: ARN of the components, with a wildcard for their versions.
            log_group_arn: where Image Builder's agent writes.
            name: of the pipeline, for the description.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self.role = iam.Role(
            self,
            "Resource",
            assumed_by=trusted(self, "ec2.amazonaws.com"),
            description=f"Instances that build and test the image {name}",
        )
        self.instance_profile = iam.InstanceProfile(self, "Profile", role=cast("iam.IRole", self.role))
        # Image Builder's agent (User Guide, "Custom policies for S3 bucket access")
        program = f"arn:{stack.partition}:s3:::ec2imagebuilder-toe-{stack.region}-prod/*"
        streams = f"{log_group_arn}:log-stream:*"
        self.allow("SystemsManager", [*_AGENT, *SESSION_CHANNELS, *_MESSAGES], ["*"])
        self.allow("ReadComponents", ["imagebuilder:GetComponent"], [components])
        self.allow("FetchImageBuilder", ["s3:GetObject"], [program])
        self.allow("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group_arn, streams])
        acknowledge(
            self,
            {
                "AwsSolutions-IAM5[Resource::*]": "Calls of Systems Manager's agent know no resources.",
                wildcard(self, components): "Versions of the two components of this pipeline.",
                wildcard(self, program): "AWS's own bucket with Image Builder's agent, read-only.",
                wildcard(self, streams): "All streams of one log group.",
            },
        )

    def allow(self, sid: str, actions: Sequence[str], resources: Sequence[str]) -> None:
        """Add one statement; `sid` says what for."""
        self.role.add_to_policy(
            iam.PolicyStatement(sid=sid, actions=list(actions), resources=list(resources))
        )

    def allow_read(self, uri: str, sid: str, why: str) -> None:
        """Let the build read what lies below an `s3://bucket/prefix`."""
        statements, files = read_below(self, uri, sid)
        for statement in statements:
            self.role.add_to_policy(statement)
        acknowledge(self, {wildcard(self, files): why})

    def allow_logs(self, bucket: s3.IBucket, prefix: str) -> None:
        """Let the build put its logs below `prefix`."""
        files = bucket.arn_for_objects(f"{prefix}/*")
        self.allow("PutLogs", ["s3:PutObject"], [files])
        acknowledge(self, {wildcard(self, files): "Logs of this pipeline, which Image Builder names."})
        if bucket.encryption_key:
            self.allow("EncryptLogs", ["kms:GenerateDataKey"], [bucket.encryption_key.key_arn])
