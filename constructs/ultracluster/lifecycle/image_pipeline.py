"""An EC2 Image Builder pipeline that makes an AMI with a software release in it.

Built on the L1: the L2 is an alpha package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast

import jsii
from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_imagebuilder as imagebuilder
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultracluster.catalog.image_bases import Accelerator, build_type
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.guard.objects import HoldsSecurityGroup, plain_groups, take_objects
from ultracluster.lifecycle.image_build_role import BuildRole
from ultracluster.lifecycle.image_execution_role import ExecutionRole, parameter_arn
from ultracluster.lifecycle.image_recipe_resources import (
    build_security_group,
    image_recipe,
    newest_base,
    not_uploaded,
    private_subnet,
)
from ultracluster.scripts_folder import scripts_folder
from ultracluster.security.cdk_tree import policy_of
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.software.image_recipe import Recipe

PARAMETERS = "/ultracluster/images"
"""Below it are the parameters with the ids of images; `image` of a node group takes one."""
_TEST_MINUTES = 180
_FAILURES = 3  # of a schedule in a row, after which it stops: each costs an hour of an instance


@jsii.implements(ec2.IConnectable)
class ImageBuilderPipeline(Construct):
    """Bakes a software release into an orchestrator's image, tests it, and puts its id into an SSM parameter.

    A build starts an instance from the base, runs the lifecycle scripts of this package on it, proves that a
    second run has nothing left to install, cleans up and makes the image; then an instance of the image
    proves the same. Deploying builds nothing: start the pipeline (`aws imagebuilder
    start-image-pipeline-execution`) or give it a schedule. The parameter is there after the first build. It
    and the images outlive the stack.

    Attributes:
        parameter_name: SSM parameter with the id of the newest image.
        resource: the L1.
        pipeline_arn: the pipeline.
        recipe: what is baked.
        security_groups: of the instances that build.
        build_role: their role.
        execution_role: Image Builder's.
        log_group: what builds print, `/aws/imagebuilder/<name>`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        release: str,
        orchestrator: OrchestratorKind,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | HoldsSecurityGroup] = (),
        key: kms.IKey | ClusterKey | None = None,
        os: str = "",
        architecture: Literal["x86_64", "arm64"] = "x86_64",
        accelerator: Accelerator = "nvidia",
        kubernetes: str = "",
        parent_image: str | None = None,
        mirror: str = "",
        instance_types: Sequence[str] = (),
        root_volume_gib: int | None = None,
        parameter_name: str | None = None,
        schedule: str | None = None,
        log_bucket: s3.IBucket | None = None,
        topic: sns.ITopic | None = None,
        assets_key: kms.IKey | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Make the pipeline and all that it needs.

        Args:
            name: of the pipeline and the last part of the parameter; lower case, unique in account and
                Region.
            release: the software release, e.g. `2026.11`.
            orchestrator: whose image is the base.
            vpc: where builds run.
            subnet: a private one; by default the VPC's first. Builds need Systems Manager, Image Builder, S3
                and what the release downloads, or endpoints and a mirror.
            security_groups: of the instances; by default one that lets nothing in, and HTTP and HTTPS out.
            key: encrypts the image. Whoever starts nodes must be allowed to use it. By default the account's
                key for EBS encrypts it; HyperPod's images are then not encrypted, and with a key the root
                volumes of the cluster need the same one.
            os: operating system as the orchestrator writes it; by default its usual one.
            architecture: of the nodes; the build runs on the same; by default `x86_64`.
            accelerator: of the nodes; by default `nvidia`.
            kubernetes: of EKS, the release of the base, e.g. `1.34`. By default none.
            parent_image: the base: an AMI id, or `ssm:` and the name of a parameter. By default the newest
                that AWS publishes; HyperPod on EKS and ParallelCluster publish no parameter, so it must be
                given.
            mirror: `s3://bucket/prefix` of the mirrored release; by default the makers' own addresses.
            instance_types: to build on, the first that is to be had; no accelerator is needed; by default
                types that fit the architecture.
            root_volume_gib: at least that of the base; by default it with room for the release. Not on
                HyperPod.
            parameter_name: SSM parameter for the id; by default `/ultracluster/images/<name>`.
            schedule: cron or rate expression, e.g. `cron(0 3 ? * sun)`, in UTC; by default builds are started
                by hand. It stops itself after three failures in a row.
            log_bucket: gets the logs of builds, too, below `<name>/`; by default none.
            topic: hears of each build; by default none.
            assets_key: the key of the CDK's bootstrap bucket, if it has one of its own; by default none.
            tags: of the image and of what a build starts; by default none.

        Raises:
            ValueError: there is no such base or release, or AWS would refuse the combination; the text says
                why.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        key = ClusterKey.of(self, key) if key else None
        if not re.fullmatch(r"[a-z][a-z0-9-]{1,100}", name):
            raise ValueError(f"name has to be lower-case letters, digits and dashes, got {name!r}")
        scripts = assets.Asset(
            self, "Scripts", path=str(scripts_folder()), exclude=not_uploaded(scripts_folder())
        )
        self.recipe = Recipe(
            release=release,
            orchestrator=orchestrator,
            os=os,
            architecture=architecture,
            accelerator=accelerator,
            kubernetes=kubernetes,
            scripts=scripts.s3_object_url,
            archive=True,
            mirror=mirror.rstrip("/"),
        )
        self.recipe.check_release()
        self.parameter_name = parameter_name or f"{PARAMETERS}/{name}"
        self._name, self._stack = name, Stack.of(self)
        parent = parent_image or newest_base(self.recipe)
        where = subnet or private_subnet(vpc)
        self.security_groups = plain_groups(security_groups) or [build_security_group(self, vpc, name)]
        self.log_group = self._add_log_group()
        log_group_arn = self._log_group_arn()
        self.build_role = self._make_build_role(scripts, assets_key, log_bucket, log_group_arn)
        self.execution_role = self._make_execution_role(parent, where, key, topic, log_group_arn)
        all_tags = self.recipe.tags | dict(tags or {})
        recipe = image_recipe(
            self, self.recipe, name=name, parent=parent, key=key, gib=root_volume_gib, tags=all_tags
        )
        infrastructure = self._infrastructure(where, list(instance_types), log_bucket, topic, all_tags)
        distribution = self._distribution(all_tags)
        pipeline = imagebuilder.CfnImagePipeline(
            self,
            "Resource",
            name=name,
            description=f"{_description(self.recipe)}; id in {self.parameter_name}",
            image_recipe_arn=recipe.attr_arn,
            infrastructure_configuration_arn=infrastructure.attr_arn,
            distribution_configuration_arn=distribution.attr_arn,
            execution_role=self.execution_role.role.role_arn,
            enhanced_image_metadata_enabled=True,
            image_tests_configuration=_PIPELINE.ImageTestsConfigurationProperty(
                image_tests_enabled=True, timeout_minutes=_TEST_MINUTES
            ),
            schedule=_schedule(schedule),
            status="ENABLED",
        )
        # a build that starts before them could do nothing
        pipeline.node.add_dependency(
            policy_of(self.execution_role.role),
            policy_of(self.build_role.role),
            self.log_group,
        )
        self.pipeline_arn = pipeline.attr_arn
        self.resource = pipeline

    def _add_log_group(self) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/imagebuilder/{self._name}",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _infrastructure(
        self,
        subnet: ec2.ISubnet,
        instance_types: list[str],
        log_bucket: s3.IBucket | None,
        topic: sns.ITopic | None,
        tags: Mapping[str, str],
    ) -> imagebuilder.CfnInfrastructureConfiguration:
        return imagebuilder.CfnInfrastructureConfiguration(
            self,
            "Infrastructure",
            name=self._name,
            instance_profile_name=self.build_role.instance_profile.instance_profile_name,
            instance_types=instance_types or [build_type(self.recipe.architecture)],
            subnet_id=subnet.subnet_id,
            security_group_ids=[group.security_group_id for group in self.security_groups],
            instance_metadata_options=_INFRASTRUCTURE.InstanceMetadataOptionsProperty(
                http_tokens="required", http_put_response_hop_limit=1
            ),
            logging=_INFRASTRUCTURE.LoggingProperty(
                s3_logs=_INFRASTRUCTURE.S3LogsProperty(
                    s3_bucket_name=log_bucket.bucket_name, s3_key_prefix=self._name
                )
            )
            if log_bucket
            else None,
            sns_topic_arn=topic.topic_arn if topic else None,
            terminate_instance_on_failure=True,
            resource_tags=tags,
        )

    def _distribution(self, tags: Mapping[str, str]) -> imagebuilder.CfnDistributionConfiguration:
        return imagebuilder.CfnDistributionConfiguration(
            self,
            "Distribution",
            name=self._name,
            distributions=[
                _DISTRIBUTION.DistributionProperty(
                    region=self._stack.region,
                    # the CDK passes this one on as it is, so its keys are CloudFormation's
                    ami_distribution_configuration={
                        "Name": f"{self._name}-{{{{ imagebuilder:buildDate }}}}",
                        "Description": _description(self.recipe),
                        "AmiTags": tags,
                    },
                    ssm_parameter_configurations=[
                        _DISTRIBUTION.SsmParameterConfigurationProperty(
                            parameter_name=self.parameter_name, data_type="aws:ec2:image"
                        )
                    ],
                )
            ],
        )

    @property
    def connections(self) -> ec2.Connections:
        """Of the instances that build."""
        return ec2.Connections(security_groups=self.security_groups)

    def grant_start(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone start a build, e.g. a schedule or a repository's workflow."""
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["imagebuilder:StartImagePipelineExecution"],
            resource_arns=[self.pipeline_arn],
        )

    def grant_read_image_id(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone read the parameter with the id of the newest image."""
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:GetParameter"],
            resource_arns=[parameter_arn(self._stack, self.parameter_name)],
        )

    def _log_group_arn(self) -> str:
        return self._stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"/aws/imagebuilder/{self._name}",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def _make_build_role(
        self,
        scripts: assets.Asset,
        assets_key: kms.IKey | None,
        log_bucket: s3.IBucket | None,
        log_group_arn: str,
    ) -> BuildRole:
        components = self._stack.format_arn(
            service="imagebuilder", resource="component", resource_name=f"{self._name}-*"
        )
        role = BuildRole(
            self, "BuildRole", components=components, log_group_arn=log_group_arn, name=self._name
        )
        role.allow("ReadScripts", ["s3:GetObject"], [scripts.bucket.arn_for_objects(scripts.s3_object_key)])
        if assets_key:
            role.allow("DecryptScripts", ["kms:Decrypt"], [assets_key.key_arn])
        if self.recipe.mirror:
            role.allow_read(self.recipe.mirror, "Mirror", "The files of mirrored releases, read-only.")
        if log_bucket:
            role.allow_logs(log_bucket, self._name)
        return role

    def _make_execution_role(
        self,
        parent: str,
        subnet: ec2.ISubnet,
        key: kms.IKey | None,
        topic: sns.ITopic | None,
        log_group_arn: str,
    ) -> ExecutionRole:
        def arn(kind: str, name: str) -> str:
            return self._stack.format_arn(service="ec2", resource=kind, resource_name=name)

        base = parent.removeprefix("ssm:") if parent.startswith("ssm:") else None
        return ExecutionRole(
            self,
            "ExecutionRole",
            build_role=cast("iam.IRole", self.build_role.role),
            subnet_arn=arn("subnet", subnet.subnet_id),
            security_group_arns=[
                arn("security-group", group.security_group_id) for group in self.security_groups
            ],
            log_group_arn=log_group_arn,
            parameter_arn=parameter_arn(self._stack, self.parameter_name),
            parent_parameter_arn=parameter_arn(self._stack, base) if base else None,
            key=key,
            topic_arn=topic.topic_arn if topic else None,
        )


_DISTRIBUTION = imagebuilder.CfnDistributionConfiguration
_INFRASTRUCTURE = imagebuilder.CfnInfrastructureConfiguration
_PIPELINE = imagebuilder.CfnImagePipeline


def _description(recipe: Recipe) -> str:
    return f"Ultracluster release {recipe.release} for {recipe.orchestrator}"


def _schedule(expression: str | None) -> imagebuilder.CfnImagePipeline.ScheduleProperty | None:
    if not expression:
        return None
    return _PIPELINE.ScheduleProperty(
        schedule_expression=expression,
        pipeline_execution_start_condition="EXPRESSION_MATCH_ONLY",
        auto_disable_policy=_PIPELINE.AutoDisablePolicyProperty(failure_count=_FAILURES),
    )
