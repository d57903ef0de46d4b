"""The role of the function that uploads lifecycle scripts, for a stack that is deployed before it."""

from __future__ import annotations

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.assets import allow_reading_assets
from ultracluster.security.principals import trusted


def upload_role(
    scope: Construct, construct_id: str, *, bucket: s3.IBucket, folder: str, stack: str
) -> iam.Role:
    """What `ScriptBundle` otherwise makes itself.

    Args:
        bucket: where the scripts go, with its key.
        folder: first part of the prefix, the name of the cluster.
        stack: name of the stack that has the function; its log group is called after it.
    """
    here = Stack.of(scope)
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=trusted(scope, "lambda.amazonaws.com"),
        description="Uploads lifecycle scripts",
    )
    logs = here.format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{stack}-*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    # what the CDK's default synthesizer publishes to, without a look-up
    published = f"arn:{here.partition}:s3:::cdk-*-assets-{Aws.ACCOUNT_ID}-{Aws.REGION}"
    target = bucket.arn_for_objects(f"{folder}/*")
    for sid, actions, resources in (
        ("WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [logs]),
        ("FindScripts", ["s3:ListBucket"], [bucket.bucket_arn]),
        ("WriteScripts", ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], [target]),
    ):
        role.add_to_policy(iam.PolicyStatement(sid=sid, actions=actions, resources=resources))
    allow_reading_assets(role, published, "*")
    if bucket.encryption_key:
        role.add_to_policy(
            iam.PolicyStatement(
                sid="UseKey",
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[bucket.encryption_key.key_arn],
            )
        )
    acknowledge(
        role,
        {
            wildcard(
                scope, logs
            ): "The log group of the function, which CloudFormation names after its stack.",
            wildcard(scope, target): "The folders of this cluster's scripts only.",
        },
    )
    return role
