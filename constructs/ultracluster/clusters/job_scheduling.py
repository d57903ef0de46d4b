"""The scheduler of a Kubernetes cluster with its queues, and who may use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2 as eks_v2
from constructs import Construct, IConstruct

from ultracluster.kubernetes.charts import Chart
from ultracluster.kubernetes.scheduling import Scheduling


class Applies(Protocol):
    """`EksControlPlane`, or `Kubectl` in another stack."""

    def add_manifest(self, construct_id: str, *objects: Mapping[str, Any]) -> eks_v2.KubernetesManifest: ...

    def add_chart(self, construct_id: str, chart: Chart, *, wait: bool = False) -> eks_v2.HelmChart: ...


class JobScheduling(Construct):
    """Installs a scheduler, waits until it runs, and gives it its objects; namespaces and rights of teams.

    Attributes:
        chart: the scheduler's chart; None without a scheduler.
        namespaces: what claims in teams' namespaces wait for; None without teams.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kubectl: Applies,
        cluster_name: str,
        scheduling: Scheduling,
        after: Sequence[IConstruct] = (),
    ) -> None:
        """Make what `ultracluster.kubernetes.scheduling.scheduling` says.

        Args:
            kubectl: the way into the cluster.
            cluster_name: of the EKS cluster.
            scheduling: the scheduler and its teams.
            after: groups of CPU nodes that the scheduler runs on; it never starts without one.
        """
        super().__init__(scope, construct_id)
        self.chart: eks_v2.HelmChart | None = None
        self.namespaces: eks_v2.KubernetesManifest | None = None
        if scheduling.chart:
            self.chart = kubectl.add_chart(f"Chart-{scheduling.chart.name}", scheduling.chart, wait=True)
            for dependency in after:
                self.chart.node.add_dependency(dependency)
        if scheduling.namespaces:
            self.namespaces = kubectl.add_manifest("TeamNamespaces", *scheduling.namespaces)
        if scheduling.rights:
            rights = kubectl.add_manifest("TeamMembers", *scheduling.rights)
            if self.namespaces:
                rights.node.add_dependency(self.namespaces)
        if scheduling.objects:
            objects = kubectl.add_manifest("Scheduling", *scheduling.objects)
            for first in (self.chart, self.namespaces):
                if first:
                    objects.node.add_dependency(first)
        for number, (principal, groups) in enumerate(scheduling.members.items(), start=1):
            eks.CfnAccessEntry(
                self,
                f"Member{number}",
                cluster_name=cluster_name,
                principal_arn=principal,
                kubernetes_groups=list(groups),
                type="STANDARD",
            )
