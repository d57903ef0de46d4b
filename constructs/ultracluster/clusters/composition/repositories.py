"""The data repository associations. Nothing waits for them: nodes see S3's objects as they appear.

An association that fails (a bucket without rights, a prefix in use) is rolled back and deployed again by
itself: it takes neither the file system nor the cluster with it.
"""

from __future__ import annotations

from constructs import Construct

from ultracluster.clusters.composition.parts import StorageParts
from ultracluster.model import Cluster
from ultracluster.storage.data_repositories import DataRepositories


def add_repositories(scope: Construct, cluster: Cluster, *, storage: StorageParts) -> DataRepositories:
    """Tie folders of the Lustre file system to S3."""
    file_system = storage.file_systems.lustre_in(scope, "FileSystem")
    assert file_system, "the rules reject associations without a Lustre file system"
    return DataRepositories(
        scope,
        "Lustre",
        file_system=file_system,
        repositories=cluster.environment.data_repositories,
        bucket=storage.buckets.data_bucket(scope),
    )
