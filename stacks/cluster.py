"""The stack of the cluster itself. It holds no data: it may be deleted and created again."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

import aws_cdk as cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.parts import NetworkParts, ObservabilityParts, StorageParts
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import Cluster
from ultracluster.model.orchestrators import ORCHESTRATOR_OUTPUT, VERSION_OUTPUT
from ultracluster.stacks.part import PartStack
from ultracluster.version import __version__


class AddCluster(Protocol):
    """What a module of this package has for its orchestrator."""

    def __call__(
        self,
        stack: Stack,
        cluster: Cluster,
        *,
        network: NetworkParts,
        storage: StorageParts,
        key: kms.IKey,
        observability: ObservabilityParts | None,
    ) -> None:
        """Add the cluster and its outputs."""
        ...


class ClusterStack(PartStack):
    """A cluster, the roles of its nodes and its lifecycle scripts."""

    def __init__(
        self,
        scope: Construct,
        cluster: Cluster,
        *,
        env: cdk.Environment,
        network: NetworkParts,
        storage: StorageParts,
        key_arn: str,
        observability: ObservabilityParts | None = None,
    ) -> None:
        super().__init__(
            scope,
            cluster,
            "cluster",
            env=env,
            holds=cluster.traits.title,
            # of 100 groups' network cards, white space is a third of CloudFormation's limit of 1 MB
            suppress_template_indentation=True,
        )
        CfnOutput(
            self, ORCHESTRATOR_OUTPUT, value=cluster.traits.kind, description="A deploy of another is refused"
        )
        CfnOutput(
            self,
            VERSION_OUTPUT,
            value=__version__,
            description="What deployed it: `ultracluster diff --deployed`",
        )
        key = kms.Key.from_key_arn(self, "Key", key_arn)
        _add_cluster(cluster.traits.kind)(
            self, cluster, network=network, storage=storage, key=key, observability=observability
        )


def _add_cluster(kind: OrchestratorKind) -> AddCluster:
    # loaded when it is needed: each brings CDK modules that the others do not need
    module = import_module(f"ultracluster.stacks.{kind.replace('-', '_')}")
    return cast("AddCluster", module.add_cluster)
