"""Log groups that services make, or write to: how long, with which key, and what is counted in them.

What exists besides: the control plane's group of EKS is made here before EKS writes to it
(`clusters.eks.logs`), functions of the CDK have groups of their own, and ParallelCluster sets the retention
of its group by its configuration; it offers no key for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct, IDependable

from ultracluster.config.observability import LOG_RETENTION_DAYS
from ultracluster.model import Cluster
from ultracluster.observability.log_patterns import LogWatch, log_watches, lustre_watch, namespace
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.log_retention import retention
from ultracluster.security.sdk_calls import SdkCalls

DATABASE_LOGS = ("error", "slowquery")
"""What `storage.accounting_database` exports to CloudWatch."""


def add_service_logs(
    scope: Construct,
    cluster: Cluster,
    *,
    key: kms.IKey,
    service_id: str,
    service_arn: str,
    removal_policy: RemovalPolicy,
) -> None:
    """Add what is to be said of a cluster's log group, in the stack of the cluster: its name has an id that
    is known only there.

    What a service delivers is delivered to every environment: without it nobody could say why a first node
    does not come. A group that the service makes itself is changed, and lines are counted, only where the
    environment asks for observability.

    Args:
        scope: of the cluster's stack.
        cluster: what the environment comes to.
        key: encrypts the group.
        service_id: the cluster's id.
        service_arn: the cluster's ARN.
        removal_policy: of groups that are made here.
    """
    settings = cluster.environment.observability
    if cluster.traits.hyperpod and settings:
        home = Construct(scope, "ServiceLogs")
        name = f"{cluster.log_group}{service_id}"
        settled = _settle(
            home, name, below=f"{cluster.log_group}*", key=key, days=settings.log_retention_days
        )
        add_metric_filters(home, cluster, log_watches(cluster), log_group_name=name, after=[settled])
    elif cluster.traits.delivered_logs:
        home = Construct(scope, "ServiceLogs")
        group = logs.LogGroup(
            home,
            "Group",
            log_group_name=pcs_log_group(cluster, service_id),
            encryption_key=key,
            retention=retention(settings.log_retention_days if settings else LOG_RETENTION_DAYS),
            removal_policy=removal_policy,
        )
        _deliver(home, cluster, group, service_arn)
        if settings:
            add_metric_filters(
                home, cluster, log_watches(cluster), log_group_name=group.log_group_name, after=[group]
            )


def pcs_log_group(cluster: Cluster, cluster_id: str) -> str:
    """The name of the log group that PCS delivers to.

    Below `/aws/vendedlogs/` the service that delivers needs no policy of the account, of which there are ten;
    with the id a retained group is not in the way of the next cluster of the same name.
    """
    return f"/aws/vendedlogs/pcs/{cluster.cluster_name}-{cluster_id}"


def add_database_logs(scope: Construct, cluster: Cluster, *, key: kms.IKey, database_id: str | None) -> None:
    """Give the groups that RDS makes for the accounting database a key and an end.

    Args:
        scope: of a stack that comes after the database.
        cluster: what the environment comes to.
        key: encrypts the groups.
        database_id: of the instance that is made here; None where there is none.
    """
    settings = cluster.environment.observability
    if settings is None or database_id is None:
        return
    folder = f"/aws/rds/instance/{database_id}/"
    for log in DATABASE_LOGS:
        home = Construct(scope, f"Database{log.title()}Logs")
        _settle(home, f"{folder}{log}", below=f"{folder}*", key=key, days=settings.log_retention_days)


def add_lustre_errors(scope: Construct, cluster: Cluster, *, log_group: logs.ILogGroup | None) -> None:
    """Count what Lustre says of S3, where its log group is made."""
    watch = lustre_watch(cluster)
    if cluster.environment.observability and watch and log_group:
        add_metric_filters(
            scope, cluster, [watch], log_group_name=log_group.log_group_name, after=[log_group]
        )


def add_metric_filters(
    scope: Construct,
    cluster: Cluster,
    watches: Sequence[LogWatch],
    *,
    log_group_name: str,
    after: Sequence[IDependable],
) -> None:
    """Add the metric filters of one log group; their alarms are elsewhere, by the metrics' names."""
    for watch in watches:
        metric_filter = logs.CfnMetricFilter(
            scope,
            watch.metric,
            log_group_name=log_group_name,
            filter_pattern=watch.pattern,
            metric_transformations=[
                logs.CfnMetricFilter.MetricTransformationProperty(
                    metric_namespace=namespace(cluster),
                    metric_name=watch.metric,
                    metric_value="1",
                    unit="Count",
                )
            ],
        )
        metric_filter.node.add_dependency(*after)


def _settle(scope: Construct, name: str, *, below: str, key: kms.IKey, days: int) -> IDependable:
    """Give a log group that the service makes a key and an end; make it where no node has written yet. What
    it returns is there when the group is.

    What was written before, the first boot of the first nodes, stays encrypted with CloudWatch's own key.
    """
    # a policy names a group with what is below it (CloudWatch Logs User Guide, "Overview of managing access")
    calls, arn = SdkCalls.of(scope, key=key), _arn(scope, below)
    acknowledge(calls, {wildcard(calls, arn): "Log groups of one cluster or database, and their streams."})
    resources: list[IDependable] = []
    for construct_id, action, parameters, ignored in (
        ("Make", "createLogGroup", {"kmsKeyId": key.key_arn}, "ResourceAlreadyExistsException"),
        ("Encrypt", "associateKmsKey", {"kmsKeyId": key.key_arn}, None),
        ("Keep", "putRetentionPolicy", {"retentionInDays": days}, None),
    ):
        call = cr.AwsSdkCall(
            service="CloudWatchLogs",
            action=action,
            parameters={"logGroupName": name, **parameters},
            ignore_error_codes_matching=ignored,
            physical_resource_id=cr.PhysicalResourceId.of(f"{action}-{name}"),
        )
        right = f"logs:{action[0].upper()}{action[1:]}"
        resource = calls.add(scope, construct_id, may=(right, arn), always=call)
        if resources:  # the two others wait for the first, and not for each other
            resource.node.add_dependency(resources[0])
        resources.append(resource)
    return resources[0]


def _arn(scope: Construct, name: str) -> str:
    return Stack.of(scope).format_arn(
        service="logs", resource="log-group", resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
    )


def _deliver(scope: Construct, cluster: Cluster, group: logs.LogGroup, cluster_arn: str) -> None:
    destination = logs.CfnDeliveryDestination(
        scope,
        "Destination",
        name=f"{cluster.cluster_name}-pcs",
        destination_resource_arn=_arn(scope, group.log_group_name),
    )
    before: IDependable | None = None
    for kind in cluster.traits.delivered_logs:
        word = kind.removeprefix("PCS_").removesuffix("_LOGS").lower()
        source = logs.CfnDeliverySource(
            scope,
            f"{word.title()}Source",
            name=f"{cluster.cluster_name}-pcs-{word}",
            resource_arn=cluster_arn,
            log_type=kind,
        )
        delivery = logs.CfnDelivery(
            scope,
            f"{word.title()}Delivery",
            delivery_source_name=source.name,
            delivery_destination_arn=destination.attr_arn,
        )
        delivery.node.add_dependency(source)
        # two at once are refused as a conflict
        if before:
            delivery.node.add_dependency(before)
        before = delivery
