"""The stack of the buckets, and of the role that uploads the scripts. It waits for the key only."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.buckets import add_buckets
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack, cross, stack_name


class BucketStack(PartStack):
    """Buckets for scripts, data and access logs that do not exist yet."""

    def __init__(self, scope: Construct, cluster: Cluster, *, env: cdk.Environment, key_arn: str) -> None:
        super().__init__(scope, cluster, "buckets", env=env, holds="buckets")
        self.parts = add_buckets(
            self,
            cluster,
            key=kms.Key.from_key_arn(self, "Key", key_arn),
            cross=cross,
            uploaded_by=stack_name(cluster, "cluster"),
        ).ids_only()
