"""The stack of the cluster itself. It holds no data: it may be deleted and created again."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.stacks.admissions import admit_nodes
from ultracluster.stacks.parts import NetworkParts, StorageParts


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
    ) -> Sequence[IConstruct]:
        """Add the cluster and its outputs; gives what must wait until file systems admit the nodes."""
        ...


class ClusterStack(Stack):
    """A cluster, the roles of its nodes and its lifecycle scripts."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        network: NetworkParts,
        storage: StorageParts,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            # of 100 groups' network cards, white space is a third of CloudFormation's limit of 1 MB
            suppress_template_indentation=True,
            description=f"Ultracluster {cluster.name}: {cluster.traits.title}",
        )  # fmt: skip
        already_judged(self)
        key = kms.Key.from_key_arn(self, "Key", storage.keys.volumes)
        # pods mount, not nodes: there the rules are with the volumes
        mounts = cluster.traits.slurm
        admissions = (
            admit_nodes(self, cluster.environment.storage, network.security_group_id) if mounts else []
        )
        waiting = _add_cluster(cluster.traits.kind)(self, cluster, network=network, storage=storage, key=key)
        for resource in waiting:
            for admission in admissions:
                resource.node.add_dependency(admission)


def _add_cluster(kind: OrchestratorKind) -> AddCluster:
    # loaded when it is needed: each brings CDK modules that the others do not need
    module = import_module(f"ultracluster.stacks.{kind.replace('-', '_')}")
    return cast("AddCluster", module.add_cluster)
