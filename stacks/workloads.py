"""The stack of what jobs on Kubernetes are given: volumes of the file systems, and HyperPod's add-ons.

It is the last one: it needs the control plane, system nodes and file systems, and on HyperPod the cluster.
"""

from __future__ import annotations

from typing import assert_never

import aws_cdk as cdk
from aws_cdk import CfnOutput, CfnWaitConditionHandle, Fn, Stack
from constructs import Construct

from ultracluster.clusters.eks.volumes import DEFAULT, add_volumes
from ultracluster.clusters.hyperpod.addons import HyperPodAddons
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.stacks.admissions import admit_nodes
from ultracluster.stacks.control_plane import imported_control_plane
from ultracluster.stacks.parts import NetworkParts, StorageParts


class WorkloadStack(Stack):
    """Claims in the namespace `default` and in those of teams; add-ons that need HyperPod's nodes."""

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
            description=f"Ultracluster {cluster.name}: volumes for jobs",
        )  # fmt: skip
        already_judged(self)
        plane = imported_control_plane(self, cluster)
        claims = add_volumes(plane.kubectl, cluster, lustre=storage.lustre, open_zfs=storage.open_zfs)
        volumes = [volume for of_namespace in claims.values() for volume in of_namespace]
        for admission in admit_nodes(self, cluster.environment.storage, network.security_group_id):
            for volume in volumes:
                volume.node.add_dependency(admission)
        settings = cluster.kubernetes
        assert settings
        match settings:
            case Eks():
                pass  # its add-ons need no nodes of another service: they are with the system nodes
            case HyperPodEks():
                HyperPodAddons(
                    self,
                    "Addons",
                    config=settings,
                    cluster_name=plane.cluster_name,
                    eks_cluster_arn=plane.cluster_arn,
                    hyperpod_cluster_arn=Fn.import_value(
                        f"{cluster.environment.stack_name('cluster')}-ClusterArn"
                    ),
                )
            case _ as never:
                assert_never(never)
        if not any(cdk.CfnResource.is_cfn_resource(child) for child in self.node.find_all()):
            CfnWaitConditionHandle(self, "Nothing")  # CloudFormation refuses a stack without resources
        CfnOutput(
            self,
            "Claims",
            value=" ".join(claim.node.id.lower() for claim in claims[DEFAULT]) or "none",
            description="Volume claims in the namespace default",
        )
