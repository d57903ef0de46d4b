"""The role of the function that uploads lifecycle scripts, for a stack that is deployed before it."""

from __future__ import annotations

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.principals import service


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
        assumed_by=service("lambda.amazonaws.com"),
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
    assets = f"{published}/*"
    # the key of that bucket, where it was bootstrapped with one; only through S3 and for that bucket
    keys = here.format_arn(service="kms", account="*", resource="key", resource_name="*")
    target = bucket.arn_for_objects(f"{folder}/*")
    for sid, actions, resources in (
        ("WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [logs]),
        ("ReadAssets", ["s3:GetObject"], [assets]),
        ("FindScripts", ["s3:ListBucket"], [bucket.bucket_arn]),
        ("WriteScripts", ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], [target]),
    ):
        role.add_to_policy(iam.PolicyStatement(sid=sid, actions=actions, resources=resources))
    role.add_to_policy(
        iam.PolicyStatement(
            sid="DecryptAssets",
            actions=["kms:Decrypt"],
            resources=[keys],
            conditions={
                "StringEquals": {"kms:ViaService": f"s3.{here.region}.{here.url_suffix}"},
                "ArnLike": {"kms:EncryptionContext:aws:s3:arn": [published, assets]},
            },
        )
    )
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
            wildcard(scope, assets): "The CDK names its assets by hash; read-only.",
            wildcard(scope, keys): "The key of the CDK's bootstrap bucket, which no template knows.",
            wildcard(scope, target): "The folders of this cluster's scripts only.",
        },
    )
    return role
