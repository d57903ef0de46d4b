"""One small stack for each orchestrator, with the rules and alarms that it would get, made once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from cdk_nag import AwsSolutionsChecks
from project import ROOT
from templates import Synthesised, app_in, finish

from ultracluster.config import Environment, load
from ultracluster.config.observability import Observability
from ultracluster.model import Cluster, resolve
from ultracluster.observability.alarms import add_alarms
from ultracluster.observability.events import add_events

ENVIRONMENTS = ROOT / "environments"
ACCOUNT, REGION = "111122223333", "us-east-1"


def watched(name: str, *, groups: dict[str, Any] | None = None, **asked: Any) -> Cluster:
    """A shipped environment that asks for observability, in a known account and Region.

    Args:
        groups: instead of its own.
        asked: fields of `observability`.
    """
    environment = load(ENVIRONMENTS / f"{name}.yaml").environment
    changed: dict[str, Any] = {
        "observability": Observability(**{"monthly_budget_usd": 50_000, "max_series": 2_000_000, **asked}),
        "account": ACCOUNT,
        "region": REGION,
    }
    if groups:
        changed["node_groups"] = groups
    return resolve(Environment.model_validate(environment.model_dump() | changed))


def resolved(value: Any) -> Any:
    """A value of a template without its functions."""
    if isinstance(value, list):
        return [resolved(one) for one in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["Fn::Join"]:
        return value["Fn::Join"][0].join(resolved(one) for one in value["Fn::Join"][1])
    if list(value) == ["Ref"]:
        return {"AWS::Partition": "aws"}.get(value["Ref"], value["Ref"])
    if list(value) == ["Fn::GetAtt"]:
        return ".".join(value["Fn::GetAtt"])
    return {key: resolved(one) for key, one in value.items()}


@pytest.fixture(scope="session")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Synthesised]:
    """Rules and alarms of a shipped environment in a stack of their own, judged strictly and by cdk-nag."""
    known: dict[str, Synthesised] = {}

    def make(name: str) -> Synthesised:
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            cluster, app = watched(name), app_in(folder)
            stack = cdk.Stack(app, "Watching", env=cdk.Environment(account=ACCOUNT, region=REGION))
            key = cast("kms.IKey", kms.Key(stack, "Key", enable_key_rotation=True))
            topic = sns.Topic(stack, "Topic", master_key=key, enforce_ssl=True)
            add_events(stack, cluster, topic_arn=topic.topic_arn, key=key)
            add_alarms(
                stack,
                cluster,
                topic_arn=topic.topic_arn,
                lustre_ids={"storage.lustre": "fs-0123456789abcdef0"},
                database_id="accounting",
                workspace_arn=f"arn:aws:aps:{REGION}:{ACCOUNT}:workspace/ws-1",
            )
            cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
            known[name] = finish(app, folder)
        return known[name]

    return make


def properties(made: Synthesised, kind: str) -> dict[str, dict[str, Any]]:
    """Properties of the resources of one kind, without functions, by logical id."""
    return {
        logical_id.partition("/")[2]: resolved(json.loads(json.dumps(resource["Properties"])))
        for logical_id, resource in made.resources(kind).items()
    }
