"""The data repository associations. Nothing waits for them: nodes see S3's objects as they appear.

An association that fails (a bucket without rights, a prefix in use) is rolled back and deployed again by
itself: it takes neither the file system nor the cluster with it.
"""

from __future__ import annotations

from constructs import Construct

from ultracluster.clusters.composition.parts import StorageParts
from ultracluster.config.storage import FIRST_LUSTRE
from ultracluster.model import Cluster
from ultracluster.storage.data_repositories import DataRepositories


def add_repositories(scope: Construct, cluster: Cluster, *, storage: StorageParts) -> list[DataRepositories]:
    """Tie folders of the Lustre file systems to S3."""
    files, bucket = storage.file_systems, storage.buckets.data_bucket(scope)
    first, further = files.lustre_in(scope, "FileSystem"), files.further_lustre_in(scope, "FileSystem")
    file_systems = {**({FIRST_LUSTRE: first} if first else {}), **further}
    return [
        DataRepositories(
            scope,
            "Lustre" if name == FIRST_LUSTRE else f"{name.capitalize()}Lustre",
            file_system=file_systems[name],
            repositories=links,
            bucket=bucket,
        )
        for name, links in cluster.environment.all_data_repositories.items()
    ]
