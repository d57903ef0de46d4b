"""The stack of what everything else is encrypted with. It waits for nothing."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from ultracluster.clusters.composition.foundation import add_foundation
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack, cross


class FoundationStack(PartStack):
    """The key, and the log group of a Kubernetes control plane."""

    def __init__(self, scope: Construct, cluster: Cluster, *, env: cdk.Environment) -> None:
        super().__init__(scope, cluster, "foundation", env=env, holds="key")
        self.key_arn = cross(self, "KeyArn", add_foundation(self, cluster).key_arn)
