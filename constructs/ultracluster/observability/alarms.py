"""CloudWatch alarms on what the nodes' own metrics cannot show: AWS's services, and the watchers."""

from __future__ import annotations

from collections.abc import Mapping

from constructs import Construct

from ultracluster.config.lustre import LustreFacts
from ultracluster.config.orchestrator import ParallelCluster
from ultracluster.config.storage import FIRST_LUSTRE
from ultracluster.model import Cluster
from ultracluster.observability.alarm import Reckoned, Value, add_alarm
from ultracluster.observability.log_patterns import LogWatch, log_watches, lustre_watch, namespace

GIB = 2**30
FULL_PERCENT = 90
"""Of the fullest of Lustre's disks. A full one fails writes while others have room (FSx for Lustre User
Guide, "Managing storage capacity")."""
BUSY_PERCENT = 90
EXPORT_LATE_SECONDS = 3600
"""Age of the oldest change that is still to reach S3, or to come from there."""
DATABASE_LEFT_PERCENT = 10
SERIES_PERCENT = 80
"""Of the limit of the workspace's active series: beyond it, new series are refused."""


def add_alarms(
    scope: Construct,
    cluster: Cluster,
    *,
    topic_arn: str,
    lustre_ids: Mapping[str, str] | None = None,
    database_id: str | None = None,
    workspace_arn: str | None = None,
) -> None:
    """Add the alarms. They name things by ids, so they are there after the cluster; nothing waits for them.

    Args:
        scope: of a stack that comes last.
        cluster: what the environment comes to.
        topic_arn: is told.
        lustre_ids: file systems, `fs-...`, by name; the first is `storage.lustre`.
        database_id: instance of the accounting database that is made here.
        workspace_arn: Prometheus workspace that is made here; one that exists is watched by its owner.
    """
    settings = cluster.environment.observability
    if settings is None:
        return
    home = Construct(scope, "Alarms")
    for watch in log_watches(cluster):
        _logs(home, cluster, watch, topic_arn)
    if lustre_ids and (watch := lustre_watch(cluster)):
        _logs(home, cluster, watch, topic_arn)
    for name, lustre_id in (lustre_ids or {}).items():
        first = name == FIRST_LUSTRE
        place = home if first else Construct(home, f"{name.capitalize()}Lustre")
        facts = cluster.lustres.get(name) or cluster.lustre
        if facts:
            _lustre(place, cluster, facts, lustre_id, topic_arn, name="lustre" if first else f"lustre-{name}")
    if database_id:
        _database(home, cluster, database_id, topic_arn)
    if workspace_arn:
        _workspace(home, cluster, workspace_arn.rpartition("/")[2], settings.max_series, topic_arn)
    if isinstance(cluster.settings, ParallelCluster) and cluster.settings.monitoring.dashboard:
        _parallelcluster(home, cluster, topic_arn)


def _logs(scope: Construct, cluster: Cluster, watch: LogWatch, topic_arn: str) -> None:
    add_alarm(
        scope,
        watch.metric,
        cluster,
        name=_name(watch.metric),
        text=watch.text.format(name=cluster.name),
        topic_arn=topic_arn,
        value=Value(namespace=namespace(cluster), metric=watch.metric),
    )


def _name(metric: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in metric).lstrip("-")


def _lustre(
    scope: Construct, cluster: Cluster, facts: LustreFacts, file_system: str, topic_arn: str, *, name: str
) -> None:
    """FSx for Lustre User Guide, "Amazon FSx for Lustre metrics and dimensions"."""
    of, at = {"FileSystemId": file_system}, "Lustre" if name == "lustre" else f"Lustre at {facts.mount_path}"
    if capacity := facts.capacity_gib:
        used = [
            Value(namespace="AWS/FSx", metric="PhysicalDiskUsage", dimensions=of, statistic=how, seconds=60)
            for how in ("Maximum", "SampleCount")
        ]
        add_alarm(
            scope,
            "LustreFull",
            cluster,
            name=f"{name}-full",
            text=f"the fullest disk of {at} is above {FULL_PERCENT} %: writes fail once it is full, "
            "though others have room. Run on a node: lfs df -h; then release files, or raise capacity_gib.",
            topic_arn=topic_arn,
            # in a minute each disk reports once, and all are of one size
            value=Reckoned(
                expression=f"100 * fullest * disks / {capacity * GIB}",
                of=dict(zip(("fullest", "disks"), used, strict=True)),
            ),
            when="above",
            threshold=FULL_PERCENT,
            points=5,
            tell_end=True,
        )
    add_alarm(
        scope,
        "LustreMetadata",
        cluster,
        name=f"{name}-metadata-busy",
        text=f"a metadata server of {at} has been above {BUSY_PERCENT} % for 15 minutes: something opens "
        "or lists very many files. Run on the nodes: lctl get_param mdc.*.stats",
        topic_arn=topic_arn,
        value=Reckoned(
            expression=_select(
                "MAX(CPUUtilization)",
                'SCHEMA("AWS/FSx", FileServer, FileSystemId)',
                FileSystemId=file_system,
            )
        ),
        when="above",
        threshold=BUSY_PERCENT,
        points=3,
        tell_end=True,
    )
    if facts.data_repositories:
        _data_repositories(scope, cluster, of, topic_arn, name=name)


def _data_repositories(
    scope: Construct, cluster: Cluster, of: Mapping[str, str], topic_arn: str, *, name: str
) -> None:
    for publisher, does in (("AutoExport", "exported to S3"), ("AutoImport", "imported from S3")):
        add_alarm(
            scope,
            f"{publisher}Late",
            cluster,
            name=f"{name}-{publisher.lower()}-late",
            text=f"changes have waited to be {does} for more than an hour. "
            f"Run: ultracluster preflight {cluster.name}",
            topic_arn=topic_arn,
            value=Value(
                namespace="AWS/FSx",
                metric="AgeOfOldestQueuedMessage",
                dimensions={**of, "Publisher": publisher},
                statistic="Maximum",
            ),
            when="above",
            threshold=EXPORT_LATE_SECONDS,
            points=3,
            tell_end=True,
        )


def _database(scope: Construct, cluster: Cluster, database: str, topic_arn: str) -> None:
    """Amazon RDS User Guide, "Amazon CloudWatch metrics for Amazon RDS"."""
    size = getattr(cluster.environment.storage.accounting_database, "storage_gib", None)
    if not size:
        return
    add_alarm(
        scope,
        "DatabaseFull",
        cluster,
        name="accounting-database-full",
        text=f"less than {DATABASE_LEFT_PERCENT} % of the accounting database's {size} GiB is left; slurmdbd "
        "stops when it is full. Raise its storage, or purge old jobs.",
        topic_arn=topic_arn,
        value=Value(
            namespace="AWS/RDS",
            metric="FreeStorageSpace",
            dimensions={"DBInstanceIdentifier": database},
            statistic="Minimum",
        ),
        when="below",
        threshold=size * GIB * DATABASE_LEFT_PERCENT // 100,
        points=3,
        tell_end=True,
    )


_WORKSPACE = (
    (
        "samples-discarded",
        "DiscardedSamples",
        "the Prometheus workspace refuses samples; AWS/Prometheus, DiscardedSamples has the reason.",
    ),
    (
        "rules-failed",
        "RuleEvaluationFailures",
        "rules of Prometheus fail, so alerts may be silent. The workspace's log group says which rule.",
    ),
    (
        "alerts-undelivered",
        "AlertManagerNotificationsFailed",
        "alerts of the Prometheus workspace do not reach the topic. Its log group says why.",
    ),
    (
        "alerts-throttled",
        "AlertManagerNotificationsThrottled",
        "the Prometheus workspace holds alerts back: too many at once.",
    ),
)
"""Alarms of a Prometheus workspace: name, metric and text."""


def _workspace(
    scope: Construct, cluster: Cluster, workspace: str, max_series: int | None, topic_arn: str
) -> None:
    """Amazon Managed Service for Prometheus User Guide, "Use CloudWatch metrics to monitor Amazon Managed
    Service for Prometheus resources" (a metric that is not there is zero); dimensions as in
    aws-observability/terraform-aws-observability-accelerator."""
    for name, metric, text in _WORKSPACE:
        add_alarm(
            scope,
            metric,
            cluster,
            name=f"prometheus-{name}",
            text=text,
            topic_arn=topic_arn,
            # over all reasons and groups of rules, which are dimensions of their own
            value=Reckoned(expression=_select(f"SUM({metric})", '"AWS/Prometheus"', Workspace=workspace)),
            points=2,
            tell_end=True,
        )
    if max_series:
        add_alarm(
            scope,
            "ActiveSeries",
            cluster,
            name="prometheus-series",
            text=f"more than {SERIES_PERCENT} % of max_series ({max_series}) is in use; further ones are "
            f"refused. Run: ultracluster plan {cluster.name}",
            topic_arn=topic_arn,
            value=_usage(workspace, "ActiveSeries"),
            when="above",
            threshold=max_series * SERIES_PERCENT // 100,
            points=2,
            tell_end=True,
        )
    add_alarm(
        scope,
        "NothingArrives",
        cluster,
        name="prometheus-silent",
        text="no metrics have arrived for half an hour: no node, no agent, or no way to the workspace. "
        "A cluster that is new says so until its first node reports. Run: "
        f"ultracluster doctor {cluster.name}",
        topic_arn=topic_arn,
        value=_usage(workspace, "IngestionRate"),
        when="below",
        threshold=0.01,
        points=6,
        missing="breaching",
        tell_end=True,
    )


def _usage(workspace: str, resource: str) -> Value:
    return Value(
        namespace="AWS/Usage",
        metric="ResourceCount",
        dimensions={
            "Type": "Resource",
            "ResourceId": workspace,
            "Resource": resource,
            "Service": "Prometheus",
            "Class": "None",
        },
        statistic="Maximum",
    )


def _select(what: str, where: str, **dimension: str) -> str:
    """Metrics Insights of CloudWatch, over all other dimensions; made of words of ours and ids of AWS."""
    ((name, value),) = dimension.items()
    return f"SELECT {what} FROM {where} WHERE {name} = '{value}'"  # noqa: S608


_LAUNCH = (
    "InsufficientCapacityErrors",
    "VcpuLimitErrors",
    "VolumeLimitErrors",
    "IamPolicyErrors",
    "OtherInstanceLaunchFailures",
)
_NODES = (
    "InstanceBootstrapTimeoutErrors",
    "EC2HealthCheckErrors",
    "ScheduledEventHealthCheckErrors",
    "SlurmNodeNotRespondingErrors",
)
_SCRIPTS = (
    "OnNodeStartDownloadErrors",
    "OnNodeStartRunErrors",
    "OnNodeConfiguredDownloadErrors",
    "OnNodeConfiguredRunErrors",
)


def _parallelcluster(scope: Construct, cluster: Cluster, topic_arn: str) -> None:
    """On the metrics that ParallelCluster makes of its logs for its dashboard (aws-parallelcluster 3.16.1,
    templates/cw_dashboard_builder.py); some are there only where a queue has scripts."""
    doctor = f"Run: ultracluster doctor {cluster.name}"
    for name, metrics, text in (
        (
            "launch-failures",
            _LAUNCH,
            "ParallelCluster could not launch nodes: no capacity, a quota, or rights.",
        ),
        ("node-failures", _NODES, "ParallelCluster takes nodes away: not up in time, or not healthy."),
        ("lifecycle-failures", _SCRIPTS, "scripts have failed on nodes, which do not join."),
    ):
        add_alarm(
            scope,
            name.title().replace("-", ""),
            cluster,
            name=name,
            text=f"{text} {doctor}",
            topic_arn=topic_arn,
            value=Reckoned(
                expression="SUM(METRICS())",
                of={
                    f"m{at}": Value(
                        namespace="ParallelCluster",
                        metric=metric,
                        dimensions={"ClusterName": cluster.cluster_name},
                    )
                    for at, metric in enumerate(metrics)
                },
            ),
        )
