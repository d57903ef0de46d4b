"""The role with which EC2 Image Builder builds, tests and publishes an image.

The service-linked role writes parameters below `/imagebuilder/` only, so a role of one's own is needed, and
AWS asks to attach EC2ImageBuilderExecutionPolicy to it (EC2 Image Builder User Guide, "Prerequisites for SSM
output parameters"). It is written out here from its text (v2 of July 2026), less what this pipeline never
does: containers, Windows, imports and exports, other accounts, launch templates, scans, licences, and passing
any role.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.principals import trusted

_BY_IMAGE_BUILDER = "EC2 Image Builder"
_NO_RESOURCE = "These calls know no resources (Service Authorization Reference)."
_OWN = (
    "Ids are not known before; what is changed or ended has Image Builder's own tag, which, as in AWS's "
    "policy, it may put on any image and snapshot (docs/security.md, What is not promised)."
)
_LOOK = [
    f"ec2:Describe{name}"
    for name in (
        "Hosts",
        "Images",
        "InstanceAttribute",
        "Instances",
        "InstanceStatus",
        "InstanceTypeOfferings",
        "InstanceTypes",
        "Snapshots",
        "Subnets",
        "Tags",
    )
]


class ExecutionRole(Construct):
    """What Image Builder may do for one pipeline.

    Attributes:
        role: the IAM role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        build_role: iam.IRole,
        subnet_arn: str,
        security_group_arns: Sequence[str],
        log_group_arn: str,
        parameter_arn: str,
        parent_parameter_arn: str | None,
        key: kms.IKey | None,
        topic_arn: str | None,
    ) -> None:
        """Make the role.

        Args:
            build_role: the only role that it may pass.
            subnet_arn: where instances may be started.
            security_group_arns: the groups that they may have.
            log_group_arn: of the builds.
            parameter_arn: the only parameter that it may write.
            parent_parameter_arn: parameter with the base, if one names it.
            key: encrypts the image.
            topic_arn: hears of builds.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self.role = iam.Role(
            self,
            "Resource",
            assumed_by=trusted(self, "imagebuilder.amazonaws.com"),
            description="Image Builder builds, tests and publishes one image",
        )
        self._stack = stack
        self._wildcards: list[str] = []
        self._build(build_role, [subnet_arn, *security_group_arns])
        self._make_image()
        self._run_commands()
        streams = f"{log_group_arn}:log-stream:*"
        self._allow("WriteLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group_arn, streams])
        self._allow("PublishImage", ["ssm:GetParameter", "ssm:PutParameter"], [parameter_arn])
        if parent_parameter_arn:
            self._allow("FindBase", ["ssm:GetParameter"], [parent_parameter_arn])
        if topic_arn:
            self._allow("Notify", ["sns:Publish"], [topic_arn])
        if key:
            self._use_key(key)
        acknowledge(
            self,
            {
                "AwsSolutions-IAM5[Resource::*]": _NO_RESOURCE,
                wildcard(self, streams): "All streams of one log group.",
                **{wildcard(self, arn): _OWN for arn in self._wildcards},
            },
        )

    def _allow(
        self,
        sid: str,
        actions: Sequence[str],
        resources: Sequence[str],
        conditions: dict[str, object] | None = None,
    ) -> None:
        self.role.add_to_policy(
            iam.PolicyStatement(
                sid=sid, actions=list(actions), resources=list(resources), conditions=conditions
            )
        )

    def _arn(self, kind: str, *, ours: bool = True) -> str:
        """All of one kind in EC2; images and snapshots carry no account."""
        region, account = self._stack.region, self._stack.account if ours else ""
        arn = f"arn:{self._stack.partition}:ec2:{region}:{account}:{kind}/*"
        self._wildcards.append(arn)
        return arn

    def _build(self, build_role: iam.IRole, places: Sequence[str]) -> None:
        instances, volumes = self._arn("instance"), self._arn("volume")
        images, snapshots = self._arn("image", ours=False), self._arn("snapshot", ours=False)
        interfaces = self._arn("network-interface")
        self._allow("StartFrom", ["ec2:RunInstances"], [images, snapshots, interfaces, *places])
        self._allow("StartMarked", ["ec2:RunInstances"], [instances, volumes], _requested())
        self._allow(
            "PassBuildRole",
            ["iam:PassRole"],
            [build_role.role_arn],
            {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
        )
        self._allow(
            "EndInstances",
            ["ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances"],
            [instances],
            _marked(),
        )
        self._allow(
            "MarkWhatIsMade",
            ["ec2:CreateTags"],
            [instances, volumes, images, snapshots],
            {
                "StringEquals": {
                    "aws:RequestTag/CreatedBy": _BY_IMAGE_BUILDER,
                    "ec2:CreateAction": ["CreateImage", "RunInstances"],
                }
            },
        )

    def _make_image(self) -> None:
        images, snapshots = self._arn("image", ours=False), self._arn("snapshot", ours=False)
        instances = self._arn("instance")
        self._allow(
            "Look",
            _LOOK,
            ["*"],
        )
        self._allow("CopyImage", ["ec2:CopyImage"], ["*"])
        self._allow("CreateImage", ["ec2:CreateImage"], [images, snapshots], _requested())
        self._allow("ImageOfInstance", ["ec2:CreateImage"], [instances], _marked())
        self._allow("RegisterImage", ["ec2:RegisterImage"], [images], _requested())
        self._allow("ImageOfSnapshot", ["ec2:RegisterImage"], [snapshots], _marked())
        self._allow("DropImage", ["ec2:DeregisterImage"], [images], _marked())
        self._allow(
            "NameImage",
            ["ec2:ModifyImageAttribute", "ec2:ModifySnapshotAttribute"],
            [images, snapshots],
            _marked(),
        )
        self._allow("TagImage", ["ec2:CreateTags"], [images])
        self._allow("TagSnapshot", ["ec2:CreateTags"], [snapshots], _requested())

    def _run_commands(self) -> None:
        partition, region, account = self._stack.partition, self._stack.region, self._stack.account
        instances = self._arn("instance")
        associations = f"arn:{partition}:ssm:{region}:{account}:association/*"
        shell = f"arn:{partition}:ssm:{region}::document/AWS-RunShellScript"
        inventory = f"arn:{partition}:ssm:{region}::document/AWS-GatherSoftwareInventory"
        linked = f"arn:{partition}:iam::{account}:role/aws-service-role/ssm.amazonaws.com/*"
        self._wildcards += [associations, linked]
        self._allow(
            "FollowCommands",
            [
                "ssm:DescribeInstanceInformation",
                "ssm:GetCommandInvocation",
                "ssm:ListCommandInvocations",
                "ssm:ListInventoryEntries",
            ],
            ["*"],
        )
        self._allow("RunShell", ["ssm:SendCommand"], [shell])
        self._allow("RunOnInstances", ["ssm:SendCommand"], [instances], _marked())
        # the list of packages that Image Builder keeps with each image
        self._allow("ListPackages", ["ssm:CreateAssociation"], [associations, inventory])
        self._allow("ListOnInstances", ["ssm:CreateAssociation"], [instances], _marked())
        self._allow("MarkList", ["ssm:AddTagsToResource"], [associations], _requested())
        self._allow("EndList", ["ssm:DeleteAssociation", "ssm:DescribeAssociationExecutions"], [associations])
        self._allow(
            "StartSystemsManager",
            ["iam:CreateServiceLinkedRole"],
            [linked],
            {"StringEquals": {"iam:AWSServiceName": "ssm.amazonaws.com"}},
        )
        self._allow("FollowList", ["ssm:DescribeInstanceAssociationsStatus"], [instances])

    def _use_key(self, key: kms.IKey) -> None:
        through: dict[str, object] = {
            "StringEquals": {"kms:ViaService": f"ec2.{self._stack.region}.{self._stack.url_suffix}"}
        }
        actions = ["Decrypt", "DescribeKey", "Encrypt", "GenerateDataKeyWithoutPlaintext"]
        actions += ["ReEncryptFrom", "ReEncryptTo"]
        self._allow("UseKey", [f"kms:{name}" for name in actions], [key.key_arn], through)
        self._allow(
            "LetVolumesUseKey",
            ["kms:CreateGrant"],
            [key.key_arn],
            {**through, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        )


def parameter_arn(stack: Stack, name: str) -> str:
    """ARN of an SSM parameter; AWS's own have no account."""
    return stack.format_arn(
        service="ssm",
        account="" if name.startswith("/aws/service/") else None,
        resource="parameter",
        resource_name=name.lstrip("/"),
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )


def _requested() -> dict[str, object]:
    return {"StringEquals": {"aws:RequestTag/CreatedBy": _BY_IMAGE_BUILDER}}


def _marked() -> dict[str, object]:
    return {"StringEquals": {"aws:ResourceTag/CreatedBy": _BY_IMAGE_BUILDER}}
