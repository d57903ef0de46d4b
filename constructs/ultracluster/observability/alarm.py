"""One CloudWatch alarm that tells a topic, in words that name the cluster and what to run next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ultracluster.model import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One number over time."""

    namespace: str
    metric: str
    dimensions: Mapping[str, str] = field(default_factory=dict[str, str])
    statistic: str = "Sum"
    seconds: int = 300
    """Of one data point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoned:
    """A number worked out of others by CloudWatch's metric math, or asked for in its SQL."""

    expression: str
    of: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """By the names that `expression` uses; none for SQL."""
    seconds: int = 300


def add_alarm(
    scope: Construct,
    construct_id: str,
    cluster: Cluster,
    *,
    name: str,
    text: str,
    topic_arn: str,
    value: Value | Reckoned,
    when: Literal["at least", "above", "below"] = "at least",
    threshold: float = 1,
    points: int = 1,
    missing: Literal["notBreaching", "breaching", "ignore"] = "notBreaching",
    tell_end: bool = False,
) -> cloudwatch.CfnAlarm:
    """Add an alarm.

    Args:
        name: of the alarm, behind the environment's name: it is the subject of the mail.
        text: what is wrong, and what to run.
        value: that is watched.
        when: how it compares with `threshold` when something is wrong.
        points: data points in a row that say so.
        missing: what no data means.
        tell_end: also tell when it is over; not for what happens at one moment.
    """
    sql = isinstance(value, Reckoned)
    return cloudwatch.CfnAlarm(
        scope,
        construct_id,
        alarm_name=f"{cluster.environment.governance.stack_prefix or ''}{cluster.name}-{name}",
        alarm_description=f"Ultracluster {cluster.name}: {text}",
        comparison_operator=_OPERATORS[when],
        threshold=threshold,
        evaluation_periods=points,
        datapoints_to_alarm=points,
        treat_missing_data=missing,
        alarm_actions=[topic_arn],
        ok_actions=[topic_arn] if tell_end else None,
        metrics=_metrics(value) if sql else None,
        namespace=None if sql else value.namespace,
        metric_name=None if sql else value.metric,
        dimensions=None if sql else _dimensions(value),
        statistic=None if sql else value.statistic,
        period=None if sql else value.seconds,
    )


_OPERATORS = {
    "at least": "GreaterThanOrEqualToThreshold",
    "above": "GreaterThanThreshold",
    "below": "LessThanThreshold",
}


def _dimensions(value: Value) -> list[cloudwatch.CfnAlarm.DimensionProperty]:
    return [
        cloudwatch.CfnAlarm.DimensionProperty(name=name, value=text)
        for name, text in value.dimensions.items()
    ]


def _metrics(value: Reckoned) -> list[cloudwatch.CfnAlarm.MetricDataQueryProperty]:
    reckoned = cloudwatch.CfnAlarm.MetricDataQueryProperty(
        id="reckoned",
        expression=value.expression,
        # SQL has no metric whose period it could take
        period=None if value.of else value.seconds,
        return_data=True,
    )
    return [
        reckoned,
        *(
            cloudwatch.CfnAlarm.MetricDataQueryProperty(
                id=name,
                return_data=False,
                metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                    metric=cloudwatch.CfnAlarm.MetricProperty(
                        namespace=part.namespace, metric_name=part.metric, dimensions=_dimensions(part)
                    ),
                    period=part.seconds,
                    stat=part.statistic,
                ),
            )
            for name, part in value.of.items()
        ),
    ]
