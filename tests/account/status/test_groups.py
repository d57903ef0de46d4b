"""Groups whose nodes are instances of the account, beside the file."""

from __future__ import annotations

from typing import Any

import pytest
from hyperpod_service import BORN, account, answer
from project import ROOT

from ultracluster.account.status.groups import group_rows
from ultracluster.account.status.rows import Difference, GroupState
from ultracluster.config import load
from ultracluster.model import resolve

PCS = resolve(load(ROOT / "environments" / "pcs-p6-b200.yaml").environment)
TAG = "aws:pcs:compute-node-group-id"


def look(monkeypatch: pytest.MonkeyPatch, running: dict[str, int], extra: tuple[str, ...] = ()) -> list[Any]:
    """PCS with the groups of the file and some more, and running instances by group."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = account(PCS.environment.region)
    names = (*PCS.groups, *extra)
    arn = "arn:aws:pcs:us-east-2:111122223333:cluster/x"

    def described(name: str) -> dict[str, Any]:
        count = PCS.groups[name].settings.count
        return {
            "name": name, "id": name, "arn": arn, "clusterId": "x", "createdAt": BORN, "modifiedAt": BORN,
            "status": "ACTIVE", "subnetIds": ["subnet-1"], "iamInstanceProfileArn": arn,
            "instanceConfigs": [], "customLaunchTemplate": {"id": "lt-1", "version": "1"},
            "scalingConfiguration": {"minInstanceCount": count, "maxInstanceCount": count},
        }  # fmt: skip

    listed = [
        {
            "name": one, "id": one, "arn": arn, "clusterId": "x", "createdAt": BORN, "modifiedAt": BORN,
            "status": "ACTIVE",
        }
        for one in names
    ]  # fmt: skip
    instances: list[dict[str, Any]] = [
        {
            "State": {"Name": "running"}, "ImageId": "ami-1",
            "Tags": [{"Key": TAG, "Value": name}],
        }
        for name, count in running.items()
        for _ in range(count)
    ]  # fmt: skip
    for number, row in enumerate(instances):
        row["InstanceId"] = f"i-{number:017x}"
    pcs = made.client("pcs")
    answer(pcs, "ListComputeNodeGroups", lambda asked: {"computeNodeGroups": listed})
    answer(
        pcs,
        "GetComputeNodeGroup",
        lambda asked: {"computeNodeGroup": described(asked["computeNodeGroupIdentifier"])},
    )
    answer(
        made.client("ec2"), "DescribeInstances", lambda asked: {"Reservations": [{"Instances": instances}]}
    )
    return list(group_rows(made, PCS))


def test_instances_are_counted_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {name: group.settings.count for name, group in PCS.groups.items()}
    name = max(counts, key=lambda one: counts[one])

    rows = look(monkeypatch, {**counts, name: counts[name] - 1})

    groups = {one.name: one for one in rows if isinstance(one, GroupState)}
    assert groups.keys() == counts.keys()
    assert (groups[name].running, groups[name].asked) == (counts[name] - 1, counts[name])
    assert not [one for one in rows if isinstance(one, Difference)]
    assert all(one.source.startswith("EC2 DescribeInstances") for one in groups.values())


def test_instances_of_a_group_that_the_file_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = look(monkeypatch, {"by-hand": 2}, extra=("by-hand",))

    (found,) = [one for one in rows if isinstance(one, Difference)]
    assert (found.kind, found.where, found.actual) == ("group", "by-hand", "is there with 2 nodes")
