"""Rules on: what AWS's events, logs and budgets can tell."""

from __future__ import annotations

from ultracluster.catalog import Region
from ultracluster.config.base import is_token
from ultracluster.config.lustre import NewLustre
from ultracluster.config.observability import Observability
from ultracluster.config.parallelcluster import ParallelClusterMonitoring
from ultracluster.config.remedy import DROP, drop, relative, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.observability.workspace import DATE
from ultracluster.rules.sets import OBS, PCL
from ultracluster.rules.sources import PCLUSTER


@OBS.error(32, "AWS Cost Management User Guide, Creating an Amazon SNS topic for budget notifications", DATE)
def budget_topic_account(wanted: Observability, cluster: Cluster) -> Breaches:
    """AWS Budgets tells a topic of its own account."""
    topic, account = wanted.alerts.topic_arn, cluster.environment.account
    if wanted.monthly_budget_usd is None or topic is None or is_token(topic) or account is None:
        return
    other = topic.split(":")[4]
    if other != account:
        yield at("monthly_budget_usd").breach(
            f"the topic of alerts is of account {other}: a budget of {account} cannot tell it.",
            drop() | relative({("alerts", "topic_arn"): DROP}, up=1).noting("a topic is made then"),
        )


@OBS.error(35, "CloudFormation registry schemas (AWS::Budgets::Budget)", DATE)
def budgets_region(wanted: Observability, home: Region) -> Breaches:
    """CloudFormation makes budgets in the Region."""
    if wanted.monthly_budget_usd is not None and home.budgets is False:
        yield at("monthly_budget_usd").breach(
            f"in {home.name} CloudFormation cannot make a budget.",
            drop().noting(
                "make it by hand: a monthly budget on the environment's tag, which tells the topic"
            ),
        )


@OBS.warning(33, "FSx for Lustre User Guide, Data repository event logs: logging is off by default", DATE)
def repository_event_log(lustre: NewLustre, cluster: Cluster) -> Breaches:
    """What S3 refuses is told."""
    if cluster.environment.observability and lustre.log_level == "disabled" and _tied(lustre):
        yield at("log_level").breach(
            "folders are tied to S3, and Lustre logs nothing: a file that is not exported is told by nobody.",
            write("warn-error"),
        )


def _tied(lustre: NewLustre) -> bool:
    return bool(getattr(lustre, "data_repositories", None))


@OBS.warning(
    34,
    f"{PCLUSTER}, templates/cw_dashboard_builder.py and cluster_stack.py",
    DATE,
    kinds=PCL.kinds,
)
def alarm_targets(monitoring: ParallelClusterMonitoring, cluster: Cluster) -> Breaches:
    """ParallelCluster makes what alarms listen to."""
    if cluster.environment.observability is None:
        return
    for field, on, loses in (
        ("dashboard", monitoring.dashboard, "metrics of failed launches, nodes and scripts come with it"),
        ("alarms", monitoring.alarms, "nothing watches the head node then"),
    ):
        if not on:
            yield at(field).breach(f"without ParallelCluster's own {field}, {loses}.", write(True))
