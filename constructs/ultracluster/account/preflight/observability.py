"""What exists of Prometheus, of Grafana and of the topic that alerts are told to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from ultracluster.account.aws import existing
from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.config.observability import workspace_place
from ultracluster.model.observability import observability_of
from ultracluster.rules.observability.grafana import OLDEST

SETUP = "docs/observability-setup.md"


def questions(situation: Situation) -> Iterator[Question]:
    wanted = observability_of(situation.cluster)
    if wanted is None:
        return
    if wanted.workspace:
        arn = wanted.workspace.arn
        yield Question("account", "Prometheus workspace", lambda: _workspace(situation, arn))
    if (key := situation.environment.storage.key) and wanted.makes_topic:
        yield Question("account", "key of alerts", lambda: _key(situation, key.arn))
    if topic := wanted.alerts.topic_arn:
        yield Question("account", "topic of alerts", lambda: _topic(situation, topic))
    if wanted.grafana and wanted.grafana.workspace_id:
        there = wanted.grafana.workspace_id
        yield Question("account", f"Grafana {there}", lambda: _grafana(situation, there))
    elif wanted.grafana and wanted.grafana.authentication == "AWS_SSO":
        yield Question("account", "IAM Identity Center", lambda: _identity_center(situation))


def _workspace(situation: Situation, arn: str) -> Iterator[Row]:
    region, account, workspace = workspace_place(arn)
    what = f"Prometheus workspace {workspace}"
    if account != situation.account.identity().account:
        yield Row(what, "unknown", f"is of account {account}, which is not asked", f"see {SETUP}")
        return
    amp = situation.account.client("amp", region)
    answer = existing(lambda: amp.describe_workspace(workspaceId=workspace), "ResourceNotFoundException")
    if answer is None:
        yield Row(what, "red", f"is not in {region}", "check id, account and Region, or leave workspace out")
        return
    yield _state(what, str(answer["workspace"]["status"]["statusCode"]))


def _state(what: str, state: str) -> Row:
    if state == "ACTIVE":
        return Row(what, "green", "is active")
    if state in ("CREATING", "UPDATING", "UPGRADING", "VERSION_UPDATING"):
        return Row(what, "yellow", f"is {state}", "wait until it is ACTIVE")
    if state in ("DELETING", "CREATION_FAILED", "DELETION_FAILED", "FAILED"):
        return Row(what, "red", f"is {state}", "name another one")
    return Row(what, "unknown", f"is {state}, unknown to this release")


def _topic(situation: Situation, arn: str) -> Iterator[Row]:
    what = f"topic {arn.rpartition(':')[2]}"
    sns = situation.client("sns")
    answer = existing(lambda: sns.get_topic_attributes(TopicArn=arn), "NotFound", "NotFoundException")
    if answer is None:
        yield Row(what, "red", "is not there", "check name, account and Region, or leave topic_arn out")
        return
    attributes = answer["Attributes"]
    if attributes.get("KmsMasterKeyId", "").endswith("alias/aws/sns"):
        yield Row(
            what,
            "red",
            "is encrypted with the key of SNS itself, which lets no service publish",
            f"encrypt it with a key of your own that lets in what {SETUP} lists",
        )
        return
    silent = [name for name in _publishers(situation) if name not in _let_in(attributes.get("Policy", ""))]
    if silent:
        yield Row(
            what,
            "yellow",
            f"its policy does not name {', '.join(silent)}",
            f"let them sns:Publish ({SETUP}), or nobody is told of what they say",
        )
    else:
        yield Row(what, "green", "is there, and its policy names who publishes")


def _key(situation: Situation, arn: str) -> Iterator[Row]:
    what = "key of alerts"
    policy = situation.client("kms").get_key_policy(KeyId=arn, PolicyName="default")["Policy"]
    if silent := [name for name in _publishers(situation) if name not in _let_in(policy)]:
        yield Row(
            what,
            "red",
            f"storage.key encrypts the topic, and its policy does not name {', '.join(silent)}",
            f"add the statements of {SETUP} to it, or nobody is told of what they say",
        )
    else:
        yield Row(what, "green", "its policy names who publishes")


def _publishers(situation: Situation) -> list[str]:
    wanted = observability_of(situation.cluster)
    assert wanted
    names = ["cloudwatch.amazonaws.com", "events.amazonaws.com"]
    names += ["aps.amazonaws.com"] if wanted.makes_workspace else []
    return [*names, "budgets.amazonaws.com"] if wanted.monthly_budget_usd else names


def _let_in(policy: str) -> set[str]:
    """Services that a statement of a topic's policy allows something."""
    try:
        document = json.loads(policy)
    except ValueError:
        return set()
    found: set[str] = set()
    for one in _many(_mapping(document).get("Statement")):
        if _mapping(one).get("Effect") == "Allow":
            named = _mapping(_mapping(one).get("Principal")).get("Service")
            found |= {str(name) for name in _many(named)}
    return found


def _mapping(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _many(value: object) -> list[object]:
    """IAM's one-or-many as a list."""
    if value is None:
        return []
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _grafana(situation: Situation, workspace: str) -> Iterator[Row]:
    what = f"Grafana {workspace}"
    grafana = situation.client("grafana")
    answer = existing(lambda: grafana.describe_workspace(workspaceId=workspace), "ResourceNotFoundException")
    if answer is None:
        yield Row(what, "red", f"is not in {situation.environment.region}", "check id, account and Region")
        return
    found = answer["workspace"]
    yield _state(what, str(found["status"]))
    version = str(found.get("grafanaVersion", ""))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if len(numbers) == len(OLDEST) and numbers < OLDEST:
        yield Row(
            f"{what} version", "red", f"is {version}, which does not take our dashboards", "raise it to 10.4"
        )


def _identity_center(situation: Situation) -> Iterator[Row]:
    what = "IAM Identity Center"
    instances = situation.client("sso-admin").list_instances()["Instances"]
    if instances:
        yield Row(what, "green", "is there: people log in to Grafana with it")
    else:
        yield Row(
            what,
            "yellow",
            "this account sees no instance in this Region",
            "switch it on, or use authentication: SAML; that of an organization may be in another Region",
        )
