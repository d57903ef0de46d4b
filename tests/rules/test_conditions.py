"""Conditions of the catalogue's rows."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.model import Group, resolve
from ultracluster.rules.conditions import holds


def group(**settings: Any) -> Group:
    changes = {f"node_groups.gpu.{key}": value for key, value in settings.items()}
    return resolve(loaded(changed(environment_data(), changes)).environment).groups["gpu"]


@pytest.mark.parametrize(
    ("where", "settings", "answer"),
    [
        ({}, {}, True),
        ({"settings.deep_health_checks": "set"}, {}, False),
        ({"settings.deep_health_checks": "unset"}, {}, True),
        ({"settings.deep_health_checks": "set"}, {"deep_health_checks": ["instance-stress"]}, True),
        ({"capacity.kind": ["spot", "on-demand"]}, {"capacity": {"kind": "spot"}}, True),
        ({"capacity.kind": "spot", "in_service": True}, {}, False),
        ({"type.ultraserver": "set"}, {"instance_type": "p7.48xlrage"}, None),
        ({"type.ultraserver": "set", "role": "login"}, {"instance_type": "p7.48xlrage"}, False),
        ({"type.accelerator": "unset"}, {"instance_type": "m5.xlarge"}, True),
        ({"type.accelerator.manufacturer": "AWS"}, {"instance_type": "m5.xlarge"}, False),
        ({"type.spot": True}, {"instance_type": "p5.48xlarge"}, True),
        ({"type.local_nvme_disks": "set"}, {"instance_type": "m99.xlarge"}, None),
        ({"type.local_nvme_disks": "set"}, {"instance_type": "m5.xlarge"}, False),
        ({"most_nodes": {"above": "settings.count"}}, {"count": 4}, False),
        ({"settings.count": {"above": 3}}, {"count": 4}, True),
        ({"settings.no_such_setting": "set"}, {}, False),
    ],
)
def test_a_condition_is_true_false_or_unknown(
    where: dict[str, Any], settings: dict[str, Any], answer: bool | None
) -> None:
    assert holds(where, group(**settings)) is answer
