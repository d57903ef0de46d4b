"""S3 buckets: encrypted, private, TLS only, retained once they were made (S3 User Guide, "Security best
practices")."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.guard.objects import plain_bucket
from ultracluster.security.acknowledgements import acknowledge
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.security.perimeter import Perimeter, bucket_statement
from ultracluster.security.principals import anyone, service


class LogBucket(Construct):
    """Where S3 writes the access logs of other buckets; a log is kept for a year.

    Attributes:
        bucket: the bucket.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        perimeter: Perimeter | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """Make the bucket.

        Args:
            perimeter: whose principals it answers; by default this account's.
            removal_policy: what happens to it when it leaves the stack. By default it stays, but for a
                creation that is rolled back.
        """
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Resource",
            # S3 delivers access logs only to buckets with its own keys, not with KMS keys
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(365))],
            removal_policy=removal_policy,
        )
        self.bucket.add_to_resource_policy(
            # the CDK would fall back to an ACL here, unless the app sets a feature flag
            iam.PolicyStatement(
                sid="AccessLogDelivery",
                principals=[service("logging.s3.amazonaws.com")],
                actions=["s3:PutObject"],
                resources=[self.bucket.arn_for_objects("*")],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )
        _confine(self.bucket, perimeter)


class DataBucket(Construct):
    """A bucket for data sets and checkpoints, or for the lifecycle scripts of nodes.

    S3 refuses to delete a bucket that holds objects, and its content outlives clusters: it is retained.

    Attributes:
        bucket: the bucket.
        key: encrypts every object.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        key: kms.IKey | ClusterKey | None = None,
        log_bucket: s3.IBucket | LogBucket | None = None,
        log_prefix: str | None = None,
        perimeter: Perimeter | None = None,
        scripts_of: str | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """Make the bucket.

        Args:
            key: encrypts every object; by default a `ClusterKey`.
            log_bucket: receives the access logs; by default a `LogBucket` of its own.
            log_prefix: key prefix of those logs, ending in a slash; by default the construct's id.
            perimeter: whose principals it answers; by default this account's. A partner whom a statement of
                yours lets in must be in one of its accounts, or of its organization.
            scripts_of: name of a cluster whose scripts it holds: no credentials of an instance change them.
                By default none.
            removal_policy: what happens to it when it leaves the stack. By default it stays, but for a
                creation that is rolled back.
        """
        super().__init__(scope, construct_id)
        self.key = ClusterKey.of(self, key)
        if log_bucket is None:
            log_bucket = LogBucket(self, "Log", perimeter=perimeter, removal_policy=removal_policy)
        logs = s3.Bucket.from_bucket_name(self, "Logs", plain_bucket(log_bucket).bucket_name)
        self.bucket = s3.Bucket(
            self,
            "Resource",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            server_access_logs_bucket=logs,
            server_access_logs_prefix=log_prefix or f"{self.node.id.lower()}/",
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=Duration.days(7),
                    noncurrent_version_expiration=Duration.days(30),
                )
            ],
            removal_policy=removal_policy,
        )
        _confine(self.bucket, perimeter)
        if scripts_of:
            self.bucket.add_to_resource_policy(_scripts_are_read(self.bucket, scripts_of))
        acknowledge(
            self.bucket,
            {
                "@aws-cdk/aws-s3:accessLogsPolicyNotAdded": "LogBucket's own policy lets S3 deliver; "
                "that of a log bucket made elsewhere is its owner's (rule DATA008)."
            },
        )


class CertificateBucket(Construct):
    """A bucket for TLS certificates that clients read: public halves of keys, no data.

    Attributes:
        bucket: the bucket.
    """

    def __init__(self, scope: Construct, construct_id: str, *, perimeter: Perimeter | None = None) -> None:
        """Make the bucket.

        Args:
            perimeter: whose principals it answers; by default this account's.
        """
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Resource",
            # S3's own keys: load balancers write access logs beside the certificates with no other
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=Duration.days(7),
                    noncurrent_version_expiration=Duration.days(30),
                )
            ],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        _confine(self.bucket, perimeter)
        acknowledge(
            self.bucket,
            {"AwsSolutions-S1": "It holds certificates, which are public."},
        )


def _scripts_are_read(bucket: s3.Bucket, cluster_name: str) -> iam.PolicyStatement:
    """A statement that keeps nodes from writing what nodes run as root, whatever their roles come to allow.

    IAM User Guide, "AWS global condition context keys": the key is there where the credentials are those of
    an EC2 instance's role. Documents of people (`state/`) and mirrors are not meant: an administrator may
    write them from an instance.
    """
    folders = ("?" * 12, "current", "tools")  # the name of a content hash has twelve digits
    return iam.PolicyStatement(
        sid="NodesOnlyReadScripts",
        effect=iam.Effect.DENY,
        principals=[anyone()],
        actions=["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObject"],
        resources=[bucket.arn_for_objects(f"{cluster_name}/{folder}/*") for folder in folders],
        conditions={"Null": {"aws:Ec2InstanceSourceVpc": "false"}},
    )


def _confine(bucket: s3.Bucket, perimeter: Perimeter | None) -> None:
    bucket.add_to_resource_policy(bucket_statement(bucket, bucket.bucket_arn, perimeter or Perimeter()))
