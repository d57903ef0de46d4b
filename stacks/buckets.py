"""The stack of the buckets, and of the role that uploads the scripts. It waits for the key only."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.config.storage import Storage
from ultracluster.guard import already_judged
from ultracluster.lifecycle.upload_role import upload_role
from ultracluster.model import Cluster
from ultracluster.stacks.parts import BucketParts, crossing
from ultracluster.storage.buckets import DataBucket, LogBucket


class BucketStack(Stack):
    """Buckets for scripts, data and access logs that do not exist yet.

    The role that uploads scripts is here, so that HyperPod's nodes, the slowest of all, wait for the upload
    and not for its role, too.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        key_arn: str,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: buckets",
        )  # fmt: skip
        already_judged(self)
        key = kms.Key.from_key_arn(self, "Key", key_arn)
        storage = cluster.environment.storage
        if storage.log_bucket:
            log: s3.IBucket = s3.Bucket.from_bucket_name(self, "Log", storage.log_bucket.name)
        else:
            log = LogBucket(self, "Log").bucket

        def bucket(name: str, prefix: str) -> s3.Bucket:
            return DataBucket(self, name, key=key, log_bucket=log, log_prefix=prefix).bucket

        scripts, role_arn, data = storage.scripts_bucket, None, None
        if scripts:
            name = scripts.name
        else:
            new = bucket("Scripts", "scripts/")
            name = crossing(self, "ScriptsBucketName", new.bucket_name)
            if cluster.traits.hyperpod:
                role = upload_role(
                    self, "Upload", bucket=new, folder=cluster.environment.cluster_name,
                    stack=cluster.environment.stack_name("cluster"),
                )  # fmt: skip
                role_arn = crossing(self, "UploadRoleArn", role.role_arn)
        if cluster.environment.makes_data_bucket:
            data = crossing(self, "DataBucketName", bucket("Data", "data/").bucket_name)
        self.parts = BucketParts(scripts=name, data=data, upload_role_arn=role_arn)


def existing_buckets(storage: Storage) -> BucketParts:
    """The parts where there is no bucket to make."""
    assert storage.scripts_bucket
    return BucketParts(scripts=storage.scripts_bucket.name)
