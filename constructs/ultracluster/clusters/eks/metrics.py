"""Collection of metrics in a Kubernetes cluster: our agent with its role, or the collector that AWS runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import Fn
from aws_cdk import aws_aps as aps
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.interface import IEksControlPlane
from ultracluster.clusters.eks.roles import addon_role
from ultracluster.kubernetes.isolation import AGENT, METRICS_NAMESPACE
from ultracluster.kubernetes.metrics.objects import metrics_objects
from ultracluster.kubernetes.metrics.scrape import scraper_configuration
from ultracluster.model import Cluster
from ultracluster.model.observability import collects, observability_of
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.principals import trusted

GROUPS_OF_A_MANIFEST = 20
"""Node groups whose objects are applied at once: a function's event has 256 KB (Lambda quotas, asynchronous
invocation)."""


def add_metrics(
    scope: Construct,
    cluster: Cluster,
    *,
    plane: IEksControlPlane,
    metrics: MetricsDestination | None,
    subnets: Sequence[ec2.ISubnet],
    security_groups: Sequence[ec2.ISecurityGroup],
    after: Sequence[IConstruct] = (),
) -> IConstruct | None:
    """Add what scrapes nodes and pods, where the environment asks for collection of ours.

    Args:
        scope: a stack or a construct of the system's own.
        cluster: what it is worked out to be.
        plane: the control plane.
        metrics: the workspace that is written to.
        subnets: in two zones or more, for the interfaces of AWS's collector.
        security_groups: of the nodes; each admits itself, and with it AWS's collector.
        after: groups of CPU nodes for the agent.

    Returns:
        What others with the same priority wait for; None where nothing is collected.
    """
    settings = observability_of(cluster)
    if settings is None or metrics is None or not collects(cluster):
        return None
    managed = settings.collector == "managed"
    url = None if managed else metrics.remote_write_url
    shared, *parts = metrics_objects(cluster, remote_write_url=url)
    first = plane.kubectl.add_manifest("Metrics", *shared)
    agents = None if managed else parts.pop()
    for number, start in enumerate(range(0, len(parts), GROUPS_OF_A_MANIFEST)):
        some = [manifest for part in parts[start : start + GROUPS_OF_A_MANIFEST] for manifest in part]
        plane.kubectl.add_manifest(f"MetricsOfNodes{number or ''}", *some).node.add_dependency(first)
    if agents is not None:
        identity = _identity(scope, plane, metrics)
        agent = plane.kubectl.add_manifest("MetricsAgent", *agents)
        # a pod gets a role when it is made
        agent.node.add_dependency(first, identity, *after)
    else:
        _scraper(scope, cluster, plane, metrics, subnets, security_groups)
    return first


def _identity(scope: Construct, plane: IEksControlPlane, metrics: MetricsDestination) -> IConstruct:
    role = addon_role(scope, "MetricsRole", cluster_arn=plane.cluster_arn, addon="metrics agent")
    role.add_to_policy(metrics.write_statement())
    association = eks.CfnPodIdentityAssociation(
        scope,
        "MetricsIdentity",
        cluster_name=plane.cluster_name,
        namespace=METRICS_NAMESPACE,
        service_account=AGENT,
        role_arn=role.role_arn,
    )
    association.node.add_dependency(role)
    return association


def _scraper(
    scope: Construct,
    cluster: Cluster,
    plane: IEksControlPlane,
    metrics: MetricsDestination,
    subnets: Sequence[ec2.ISubnet],
    security_groups: Sequence[ec2.ISecurityGroup],
) -> None:
    """AWS's collector. It gives itself an access entry, and outlives a cluster that is deleted without it.

    It writes as a role, because a workspace with a key of the customer's takes nothing otherwise: the role
    that it comes as may assume the one that writes, which in another account is the workspace's own.
    """
    comes_as = iam.Role(
        scope,
        "ScraperRole",
        assumed_by=trusted(scope, "scraper.aps.amazonaws.com"),
        description="Managed collector of metrics",
    )
    if metrics.role_arn:
        writes_as = metrics.role_arn
    else:
        writer = iam.Role(
            scope,
            "ScraperWriterRole",
            # the CDK's class and interface differ in names of arguments
            assumed_by=cast("iam.IPrincipal", iam.ArnPrincipal(comes_as.role_arn)),
            description="Managed collector of metrics, as it writes",
        )
        writer.add_to_policy(metrics.write_statement())
        writes_as = writer.role_arn
    comes_as.add_to_policy(
        iam.PolicyStatement(sid="AssumeMetricsWriter", actions=["sts:AssumeRole"], resources=[writes_as])
    )
    made = aps.CfnScraper
    scraper = made(
        scope,
        "Scraper",
        alias=cluster.environment.cluster_name,
        scrape_configuration=made.ScrapeConfigurationProperty(
            configuration_blob=Fn.base64(scraper_configuration(cluster))
        ),
        source=made.SourceProperty(
            eks_configuration=made.EksConfigurationProperty(
                cluster_arn=plane.cluster_arn,
                subnet_ids=[subnet.subnet_id for subnet in subnets],
                security_group_ids=[group.security_group_id for group in security_groups],
            )
        ),
        destination=made.DestinationProperty(
            amp_configuration=made.AmpConfigurationProperty(workspace_arn=metrics.workspace_arn)
        ),
        role_configuration=made.RoleConfigurationProperty(
            source_role_arn=comes_as.role_arn, target_role_arn=writes_as
        ),
    )
    scraper.node.add_dependency(comes_as)
