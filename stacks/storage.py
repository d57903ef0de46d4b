"""The stack of file systems and accounting database: what holds data and is slow to make.

It waits for the network and the key, knows nothing of the cluster, and holds nothing besides the data that
could fail: associations with S3 are in a stack of their own.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.parts import NetworkParts
from ultracluster.clusters.composition.storage import add_storage
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack, cross


class StorageStack(PartStack):
    """File systems and accounting database that do not exist yet."""

    def __init__(
        self, scope: Construct, cluster: Cluster, *, env: cdk.Environment, network: NetworkParts, key_arn: str
    ) -> None:
        super().__init__(scope, cluster, "storage", env=env, holds="file systems, accounting database")
        key = kms.Key.from_key_arn(self, "Key", key_arn)
        self.parts = add_storage(self, cluster, network=network, key=key, cross=cross).ids_only()
