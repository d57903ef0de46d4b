"""The stack of the data repository associations. Nothing waits for it: nodes see S3's objects as they appear.

An association that fails (a bucket without rights, a prefix in use) is rolled back and deployed again by
itself: it takes neither the file system nor the cluster with it.
"""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from ultracluster.clusters.composition.parts import StorageParts
from ultracluster.clusters.composition.repositories import add_repositories
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack


class RepositoryStack(PartStack):
    """What ties folders of the Lustre file system to S3."""

    def __init__(
        self, scope: Construct, cluster: Cluster, *, env: cdk.Environment, storage: StorageParts
    ) -> None:
        super().__init__(scope, cluster, "repositories", env=env, holds="data repository associations")
        add_repositories(self, cluster, storage=storage)
