"""A group of another name on the same capacity: there is no room for both."""

from __future__ import annotations

from typing import Any

import pytest
from blast_radius_support import CLUSTER, changes, cluster, group, resource, stack

from ultracluster.change import blast_radius
from ultracluster.change.capacity_in_use import capacity_of

pytestmark = pytest.mark.slow

PLAN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/one"


def on_plan(name: str, plan: str = PLAN) -> dict[str, Any]:
    return group(InstanceGroupName=name, TrainingPlanArn=plan)


def test_a_renamed_group_on_a_plan_is_at_risk_and_says_how() -> None:
    found = {c.path: c for c in changes(CLUSTER, cluster(on_plan("old")), cluster(on_plan("new")))}

    new = found["InstanceGroups[new]"]
    assert new.verdict == "jobs at risk" and PLAN in new.reason
    assert "In two steps it works: deploy without `old` first" in new.reason


@pytest.mark.parametrize(
    "groups",
    [
        [
            on_plan("old"),
            on_plan("new"),
        ],  # the old one stays: whether the plan has room is preflight's to ask
        [on_plan("new", "arn:other")],
        [group(InstanceGroupName="new")],
    ],
)
def test_what_shares_nothing_with_what_goes_is_in_place(groups: list[dict[str, Any]]) -> None:
    found = {c.path: c for c in changes(CLUSTER, cluster(on_plan("old")), cluster(*groups))}

    assert found["InstanceGroups[new]"].verdict == "in place"


def template(reservation: str) -> dict[str, Any]:
    target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
    return resource(
        "AWS::EC2::LaunchTemplate", {"LaunchTemplateData": {"CapacityReservationSpecification": target}}
    )


def test_a_reservation_in_launch_templates() -> None:
    old, same, other = (template(one) for one in ("cr-1", "cr-1", "cr-2"))
    found = {c.logical_id: c for c in blast_radius(stack(Old=old), stack(New=same, Other=other))}

    assert found["New"].verdict == "jobs at risk" and "cr-1, which `Old` holds" in found["New"].reason
    assert found["Other"].verdict == "in place"


def test_a_queue_of_parallelcluster() -> None:
    old, new = (
        {"ClusterConfiguration": {"Scheduling": {"SlurmQueues": [
            {"Name": name, "CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}]}}}
        for name in ("old", "new")
    )  # fmt: skip
    found = {c.path: c for c in changes("Custom::PclusterCluster", old, new)}

    assert found["ClusterConfiguration.Scheduling.SlurmQueues[new]"].verdict == "jobs at risk"


def test_references_are_no_capacity_to_compare() -> None:
    assert capacity_of({"a": [{"TrainingPlanArn": {"Ref": "Plan"}}, {"CapacityReservationId": "cr-1"}]}) == {
        "cr-1"
    }
