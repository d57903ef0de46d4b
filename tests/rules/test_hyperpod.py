"""Rules on HyperPod, with Slurm and on EKS alike, each broken and mended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from recipes import catalogue_with_new_type
from rules_table import cases, found, table_tests, world_tests

from ultracluster.rules.sets import HYP

PLAN = {
    "kind": "training-plan",
    "arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/spring",
}
SPOT = {"kind": "spot"}
TYPE, TRAIN, SYSTEM = "node_groups.gpu.instance_type", "node_groups.train", "node_groups.system"


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With a type of which it is unknown whether HyperPod has it."""
    with catalogue_with_new_type(monkeypatch):
        yield


def patching(schedule: str) -> dict[str, str]:
    return {"kind": "scheduled", "schedule": schedule}


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("hyperpod"))
test_the_examples_of_a_world_of_their_own = world_tests(HYP)


def test_types_that_nobody_knows_are_left_to_others() -> None:
    changes = {
        TYPE: "p99.metal",
        "node_groups.gpu.threads_per_core": 2,
        "node_groups.gpu.deep_health_checks": ["instance-stress"],
        "node_groups.gpu.capacity": SPOT,
    }
    assert found(HYP, changes) == []


def test_a_declared_type_is_taken_for_one_that_hyperpod_knows() -> None:
    declared = {
        "vcpu": 144, "memory_gib": 960, "accelerator": "Trainium3", "accelerators": 4,
        "network_gbps": 1600, "network_cards": 17, "efa_interfaces": 8, "addresses": 17,
        "source": "announcement of the type",
    }  # fmt: skip
    changes = {
        "instance_types": {"trn3.48xlarge": declared},
        TYPE: "trn3.48xlarge",
        "node_groups.gpu.capacity": PLAN,
    }
    assert found(HYP, changes) == []


def schedule_pattern() -> str:
    """The pattern in CloudFormation's own schema, as cfn-lint ships it."""
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    manager = PROVIDER_SCHEMA_MANAGER
    schema = manager.get_resource_schema("us-east-1", "AWS::SageMaker::Cluster").schema
    (pattern,) = re.findall(r'"pattern": "(cron[^"]*)"', json.dumps(schema))[:1]
    return json.loads(f'"{pattern}"')


def test_schedules_are_those_of_cloudformation() -> None:
    pattern = schedule_pattern()
    values = [
        ("0", "00", "59", "60", "*", "5"),
        ("3", "03", "23", "24", "*", "19"),
        ("?", "1", "09", "31", "32", "*"),
        ("*", "1", "09", "12", "13", "*/3", "*/13"),
        ("?", "SUN", "L", "2", "8", "2#1", "2#6", "3L", "*", "MON-FRI"),
        ("*", "2026", "2019", "?"),
    ]
    ordinary = ["0", "3", "?", "*", "SUN", "*"]
    for place, texts in enumerate(values):
        for text in texts:
            fields = [*ordinary[:place], text, *ordinary[place + 1 :]]
            expression = f"cron({' '.join(fields)})"
            changes = {"node_groups.gpu.patching": patching(expression)}
            refused = [one.code for one in found(HYP, changes)] == ["HYP053"]
            assert refused == (re.fullmatch(pattern, expression) is None), expression
