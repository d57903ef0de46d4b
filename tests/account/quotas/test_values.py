"""What is in use of each quota, and what remains of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from preflight_account import OWNER, World, ask, furnish, shipped

from ultracluster.account.preflight import quotas
from ultracluster.account.quotas.values import quota_states
from ultracluster.catalog.quotas import quota
from ultracluster.model import resolve
from ultracluster.model.quota_needs import Need

pytestmark = pytest.mark.usefixtures("aws_account")
USAGE = "sagemaker: ml.g6e.12xlarge for cluster usage"


@pytest.fixture
def world() -> World:
    world = World(shipped("dev", account=OWNER))
    furnish(world)
    return world


@pytest.mark.parametrize(
    ("name", "value", "level", "says", "do"),
    [
        (USAGE.partition(": ")[2], 1, "red", "quota 1, in use 0, needed 2", "ask for 2"),
        (USAGE.partition(": ")[2], 2, "green", "quota 2, in use 0, needed 2", ""),
        (USAGE.partition(": ")[2], None, "unknown", "not listed in this Region; needed 2", "not zero"),
        ("EC2-VPC Elastic IPs", 0, "red", "quota 0, in use 0, needed 1 addresses", "ask for 1"),
        ("VPCs per Region", 1, "red", "quota 1, in use 1, needed 1 VPCs", "ask for 2"),
    ],
)
def test_quotas_are_held_against_need_and_use(
    world: World, name: str, value: float | None, level: str, says: str, do: str
) -> None:
    if value is None:
        del world.quotas[name]
    else:
        world.quotas[name]["Value"] = value
    row = next(row for what, row in ask(quotas, world).items() if what.endswith(name))
    assert row.level == level and says in row.found and do in row.do


def test_the_applied_value_comes_before_the_default_one(world: World) -> None:
    name = USAGE.partition(": ")[2]
    world.defaults[name] = {**world.quotas[name], "Value": 0}
    assert ask(quotas, world)[USAGE].level == "green"
    del world.quotas[name]
    row = ask(quotas, world)[USAGE]
    assert row.level == "red" and "quota 0 (default)" in row.found


def test_a_trusted_code_finds_a_quota_that_was_renamed_and_an_untrusted_one_does_not(world: World) -> None:
    world.quotas["EC2-VPC Elastic IPs"]["QuotaName"] = "Addresses"
    world.quotas[USAGE.partition(": ")[2]] |= {"QuotaName": "something else", "QuotaCode": "L-A15DF696"}
    rows = ask(quotas, world)
    assert rows["ec2: Addresses"].level == "green"
    assert rows[USAGE].level == "unknown"


def test_a_use_that_only_cloudwatch_knows_is_read_there(world: World) -> None:
    metric = {
        "MetricNamespace": "AWS/Usage",
        "MetricName": "ResourceCount",
        "MetricDimensions": {"Service": "Elastic IP"},
        "MetricStatisticRecommendation": "Maximum",
    }

    need = Need(quota=quota("groups-per-interface"), amount=1, why="a test")
    world.quotas[need.quota.name] = {
        "ServiceCode": "vpc", "QuotaCode": need.quota.code, "QuotaName": need.quota.name, "Value": 5,
        "UsageMetric": metric,
    }  # fmt: skip
    (state,) = quota_states(world.account, resolve(world.environment), [need])
    assert state.used is None and state.why_unknown
    boto3.client("cloudwatch", "us-west-2").put_metric_data(
        Namespace="AWS/Usage",
        MetricData=[
            {
                "MetricName": "ResourceCount",
                "Dimensions": [{"Name": "Service", "Value": "Elastic IP"}],
                "Value": 4,
                "Timestamp": datetime.now(UTC) - timedelta(minutes=5),
            }
        ],
    )
    (state,) = quota_states(world.account, resolve(world.environment), [need])
    assert state.used == 4 and not state.short
