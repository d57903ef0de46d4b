"""Reading files that the CDK uploaded: what its bootstrap bucket asks of a role of ours."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from ultracluster.security.acknowledgements import acknowledge, wildcard


def allow_reading_assets(
    role: iam.IRole | iam.Role, bucket_arn: str, objects: str, *, sid: str = "ReadAssets"
) -> None:
    """Let a role read objects of the bootstrap bucket, whichever key encrypts it.

    `cdk bootstrap --bootstrap-customer-key` makes a key whose policy admits everyone in the account who
    comes through S3, and `--bootstrap-kms-key-id` takes one of yours, whose policy may leave that to IAM.
    Which of them it is, no template knows. So the role may decrypt with any key, but only what S3 reads for
    it, and only objects of that bucket: S3 names the bucket or the object in the encryption context
    (S3 User Guide, "Using server-side encryption with AWS KMS keys", "Encryption context").

    Args:
        bucket_arn: the bootstrap bucket; may be a pattern.
        objects: key, or pattern of keys.
    """
    stack = Stack.of(role)
    files = f"{bucket_arn}/{objects}"
    keys = stack.format_arn(service="kms", account="*", resource="key", resource_name="*")
    role.add_to_principal_policy(iam.PolicyStatement(sid=sid, actions=["s3:GetObject"], resources=[files]))
    role.add_to_principal_policy(
        iam.PolicyStatement(
            sid=sid.replace("Read", "Decrypt"),
            actions=["kms:Decrypt"],
            resources=[keys],
            conditions={
                "StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"},
                "ArnLike": {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, files]},
            },
        )
    )
    acknowledge(
        role,
        {
            wildcard(role, files): "The CDK names its assets by hash; read-only.",
            wildcard(role, keys): "The key of the CDK's bootstrap bucket, which no template knows; only "
            "through S3 and for that bucket's objects.",
        },
    )
