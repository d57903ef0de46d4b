"""Buckets for scripts, data and access logs, and the role that uploads the scripts. They wait for the key.

The role that uploads scripts is here, so that HyperPod's nodes, the slowest of all, wait for the upload and
not for its role, too.
"""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import BucketParts, Cross
from ultracluster.config.storage import Storage
from ultracluster.lifecycle.upload_role import upload_role
from ultracluster.model import Cluster
from ultracluster.model.perimeter import perimeter_of
from ultracluster.storage.buckets import DataBucket, LogBucket


def add_buckets(
    scope: Construct,
    cluster: Cluster,
    *,
    key: kms.IKey,
    cross: Cross,
    uploaded_by: str,
    scripts: s3.IBucket | None = None,
) -> BucketParts:
    """Add the buckets that do not exist yet.

    Args:
        uploaded_by: name of the stack that uploads the scripts.
        scripts: takes the place of the environment's own bucket for scripts.
    """
    storage = cluster.environment.storage
    key, perimeter = key_for(scope, cluster.environment, "buckets", key), perimeter_of(cluster)
    if storage.log_bucket:
        log: s3.IBucket = s3.Bucket.from_bucket_name(scope, "Log", storage.log_bucket.name)
    else:
        log = LogBucket(scope, "Log", perimeter=perimeter).bucket
    own: dict[str, s3.IBucket] = {}
    role: iam.IRole | None = None
    role_arn: str | None = None
    data: str | None = None
    if scripts:
        own["scripts"] = scripts
        name = scripts.bucket_name
    elif storage.scripts_bucket:
        name = storage.scripts_bucket.name
    else:
        scripts = DataBucket(
            scope,
            "Scripts",
            key=key,
            log_bucket=log,
            log_prefix="scripts/",
            perimeter=perimeter,
            scripts_of=cluster.cluster_name,
        ).bucket
        own["scripts"] = scripts
        name = cross(scope, "ScriptsBucketName", scripts.bucket_name)
        if cluster.traits.hyperpod:
            made_role = upload_role(
                scope, "Upload", bucket=scripts, folder=cluster.cluster_name, stack=uploaded_by
            )
            # it has what it needs; a bucket's own grants would be wider
            role = made_role.without_policy_updates()
            role_arn = cross(scope, "UploadRoleArn", role.role_arn)
    if cluster.environment.makes_data_bucket:
        bucket = DataBucket(
            scope, "Data", key=key, log_bucket=log, log_prefix="data/", perimeter=perimeter
        ).bucket
        own["data"] = bucket
        data = cross(scope, "DataBucketName", bucket.bucket_name)
    return BucketParts(scripts=name, data=data, upload_role_arn=role_arn, made=own, made_upload_role=role)


def existing_buckets(storage: Storage) -> BucketParts:
    """The parts where there is no bucket to make."""
    assert storage.scripts_bucket
    return BucketParts(scripts=storage.scripts_bucket.name)
