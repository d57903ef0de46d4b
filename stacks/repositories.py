"""The stack of the data repository associations. Nothing waits for it: nodes see S3's objects as they appear.

An association that fails (a bucket without rights, a prefix in use) is rolled back and deployed again by
itself: it takes neither the file system nor the cluster with it.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.model.mounts import LustreMount
from ultracluster.storage.data_repositories import DataRepositories
from ultracluster.storage.lustre_file_system import LustreFileSystem


class RepositoryStack(Stack):
    """What ties folders of the Lustre file system to S3."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        lustre: LustreMount,
        data_bucket: str | None,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: data repository associations",
        )  # fmt: skip
        already_judged(self)
        DataRepositories(
            self,
            "Lustre",
            file_system=LustreFileSystem.from_lustre_attributes(
                self,
                "FileSystem",
                file_system_id=lustre.file_system_id,
                dns_name=lustre.dns_name,
                mount_name=lustre.mount_name,
                efa=lustre.efa,
            ),
            repositories=cluster.environment.data_repositories,
            bucket=s3.Bucket.from_bucket_name(self, "DataBucket", data_bucket) if data_bucket else None,
        )
