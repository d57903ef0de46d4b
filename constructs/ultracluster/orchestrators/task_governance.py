"""HyperPod's task governance: the cluster's scheduler policy.

Quotas of teams are not here: CloudFormation has no type for them (`AWS::SageMaker::ComputeQuota` is in no
resource specification of October 2026). `ultracluster render compute-quotas` prints the calls that make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct


class TaskGovernance(Construct):
    """The one scheduler policy of a HyperPod cluster: priorities, and how what is idle is shared.

    Attributes:
        resource: the `AWS::SageMaker::ClusterSchedulerConfig`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        hyperpod_cluster_arn: str,
        scheduler_config: Mapping[str, Any],
        after: Sequence[IConstruct] = (),
    ) -> None:
        """Make the policy.

        Args:
            name: of the policy, unique in the cluster.
            hyperpod_cluster_arn: the cluster.
            scheduler_config: from `ultracluster.rendering.task_governance.scheduler_config`.
            after: the add-on, whose Kueue the service writes to.
        """
        super().__init__(scope, construct_id)
        policy = sagemaker.CfnClusterSchedulerConfig
        self.resource = policy(
            self,
            "Resource",
            name=name,
            cluster_arn=hyperpod_cluster_arn,
            scheduler_config=policy.SchedulerConfigProperty(
                fair_share=scheduler_config["FairShare"],
                idle_resource_sharing=scheduler_config["IdleResourceSharing"],
                priority_classes=[
                    policy.PriorityClassProperty(name=one["Name"], weight=one["Weight"])
                    for one in scheduler_config["PriorityClasses"]
                ],
            ),
        )
        for one in after:
            self.resource.node.add_dependency(one)
