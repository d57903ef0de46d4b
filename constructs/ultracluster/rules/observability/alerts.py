"""Rules on: who is told of alerts."""

from __future__ import annotations

from ultracluster.config.observability import Alerts
from ultracluster.config.remedy import DROP, ask, beside, drop
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.observability.workspace import DATE
from ultracluster.rules.sets import OBS


@OBS.warning(7, "SNS Developer Guide, Subscribing: a topic without subscriptions drops its messages", DATE)
def alert_recipients(alerts: Alerts) -> Breaches:
    """Alerts have at least one recipient."""
    if not alerts.emails and alerts.topic_arn is None:
        yield at().breach(
            "a topic is made, and nobody is subscribed to it: alerts fire unheard.",
            ask("fact", "alerts.emails: [oncall@example.com], or alerts.topic_arn of a topic of yours"),
        )


@OBS.error(8, "docs/observability-setup.md: subscriptions are made with the topic", DATE)
def existing_topic_subscribers(alerts: Alerts) -> Breaches:
    """A topic that exists has its own subscribers."""
    if alerts.emails and alerts.topic_arn:
        yield at("emails").breach(
            "the topic exists, and its owner decides who is subscribed: these addresses would not be told.",
            drop() | beside(topic_arn=DROP).noting("subscribe them to the topic by hand"),
        )


@OBS.error(9, "SNS API Reference, Subscribe: the same endpoint of a topic has one subscription", DATE)
def alert_emails_unique(alerts: Alerts) -> Breaches:
    """Each address is subscribed once."""
    for index, address in enumerate(alerts.emails):
        if address in alerts.emails[:index]:
            yield at("emails", index).breach(f"{address} is named twice.", drop())
