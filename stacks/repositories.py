"""The stack of the data repository associations. Nothing waits for it: nodes see S3's objects as they appear.

An association that fails (a bucket without rights, a prefix in use) is rolled back and deployed again by
itself: it takes neither the file system nor the cluster with it.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from constructs import Construct

from ultracluster.model import Cluster
from ultracluster.storage.data_repositories import DataRepositories


class RepositoryStack(Stack):
    """What ties folders of the Lustre file system to S3."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        file_system_id: str,
        data_bucket: str | None,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: data repository associations",
        )  # fmt: skip
        DataRepositories(
            self,
            "Lustre",
            file_system_id=file_system_id,
            repositories=cluster.environment.data_repositories,
            own_bucket=data_bucket,
        )
