"""What tells people about a cluster without looking at its metrics: AWS's own events, and the budget."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultracluster.model import Cluster
from ultracluster.observability.alarm import Reckoned, Value, add_alarm
from ultracluster.observability.budget import add_budget
from ultracluster.observability.event_table import Watch, watches
from ultracluster.security.principals import service

_IN_ONE_ALARM = 10
"""Metrics of one alarm on metric math (CloudWatch User Guide, "Using metric math")."""


def add_events(scope: Construct, cluster: Cluster, *, topic_arn: str, key: kms.IKey) -> None:
    """Add rules, their alarms and the budget; all of it by names, so that the first deploy is told, too.

    Args:
        scope: of the stack that is there before the cluster.
        cluster: what the environment comes to.
        topic_arn: of the topic that people listen to. Its policy, and that of its key, let in
            `events.amazonaws.com`, `cloudwatch.amazonaws.com` and `budgets.amazonaws.com`.
        key: encrypts the topic of single events; its policy lets in `events.amazonaws.com`.
    """
    settings = cluster.environment.observability
    if settings is None:
        return
    home = Construct(scope, "Events")
    stacks = Stack.of(scope).format_arn(service="cloudformation", resource="stack", resource_name="")
    rules = watches(cluster, stacks=stacks)
    counted = [rule for rule in rules if rule.counted]
    each = _single_events(home, key) if counted else None
    cfn_rules: list[events.CfnRule] = []
    for watch in rules:
        rule = _rule(home, cluster, watch, each.topic_arn if watch.counted and each else topic_arn)
        cfn_rules.append(rule)
        if watch.counted:
            add_alarm(
                home,
                f"{_id(watch)}Alarm",
                cluster,
                name=watch.name,
                text=watch.text.removeprefix(f"Ultracluster {cluster.name}: "),
                topic_arn=topic_arn,
                value=Value(namespace="AWS/Events", metric="Invocations", dimensions={"RuleName": rule.ref}),
            )
    _undelivered(home, cluster, cfn_rules, topic_arn)
    if settings.monthly_budget_usd is not None:
        add_budget(home, cluster, topic_arn=topic_arn, usd=settings.monthly_budget_usd)


def _id(watch: Watch) -> str:
    return watch.name.title().replace("-", "")


def _rule(scope: Construct, cluster: Cluster, watch: Watch, target: str) -> events.CfnRule:
    words = (
        events.CfnRule.InputTransformerProperty(
            input_paths_map=watch.paths or None, input_template=json.dumps(watch.text)
        )
        if not watch.counted
        else None
    )
    return events.CfnRule(
        scope,
        _id(watch),
        description=f"Ultracluster {cluster.name}: {watch.name}",
        event_pattern=watch.pattern,
        targets=[events.CfnRule.TargetProperty(id="Topic", arn=target, input_transformer=words)],
    )


def _single_events(scope: Construct, key: kms.IKey) -> sns.Topic:
    """Gets each event of those that come by the hundred; nobody but machines should listen."""
    topic = sns.Topic(scope, "SingleEvents", master_key=key, enforce_ssl=True)
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="Events",
            principals=[service("events.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={
                "StringEquals": {"aws:SourceAccount": Stack.of(scope).account},
                "ArnLike": {"aws:SourceArn": _rules_of(scope)},
            },
        )
    )
    return topic


def _rules_of(scope: Construct) -> str:
    return Stack.of(scope).format_arn(
        service="events", resource="rule", resource_name="*", arn_format=ArnFormat.SLASH_RESOURCE_NAME
    )


def _undelivered(scope: Construct, cluster: Cluster, rules: Sequence[events.CfnRule], topic_arn: str) -> None:
    """Tell when EventBridge or SNS could not deliver: a wrong policy is silent otherwise."""
    doctor = f"Run: ultracluster doctor {cluster.name}"
    chunks = [rules[at : at + _IN_ONE_ALARM] for at in range(0, len(rules), _IN_ONE_ALARM)]
    for number, some in enumerate(chunks, start=1):
        last = "" if number == 1 else str(number)
        failed = {
            f"m{at}": Value(
                namespace="AWS/Events", metric="FailedInvocations", dimensions={"RuleName": rule.ref}
            )
            for at, rule in enumerate(some)
        }
        add_alarm(
            scope,
            f"EventsUndelivered{last}",
            cluster,
            name=f"events-undelivered{last and '-' + last}",
            text="EventBridge could not hand events to a topic: its policy, or that of its key, does not let "
            f"events.amazonaws.com in. {doctor}",
            topic_arn=topic_arn,
            value=Reckoned(expression="SUM(METRICS())", of=failed),
            tell_end=True,
        )
    add_alarm(
        scope,
        "NotificationsFailed",
        cluster,
        name="notifications-failed",
        text="SNS gave up on a subscriber of the alerts' topic. Look at the topic's subscriptions.",
        topic_arn=topic_arn,
        value=Value(
            namespace="AWS/SNS",
            metric="NumberOfNotificationsFailed",
            dimensions={
                "TopicName": Stack.of(scope).split_arn(topic_arn, ArnFormat.NO_RESOURCE_NAME).resource
            },
        ),
        tell_end=True,
    )
