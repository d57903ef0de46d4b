"""Templates that make a HyperPod cluster: functions that a file answers, and those of a deploy."""

from __future__ import annotations

from typing import Any

import pytest
from import_samples import imported

from ultracluster.imports import cloudformation
from ultracluster.imports.surroundings import Asked

TEMPLATE: dict[str, Any] = {
    "Parameters": {
        "Name": {"Type": "String", "Default": "a"},
        "Count": {"Type": "Number"},
        "Many": {"Type": "CommaDelimitedList", "Default": "x, y"},
    },
    "Mappings": {"Disks": {"gpu": {"gib": 500}}},
    "Conditions": {"IsA": {"Fn::Equals": [{"Ref": "Name"}, "a"]}},
}


def value(what: Any, **given: Any) -> Any:
    """Return what a property with this value comes to; None where it is left out."""
    resources = {"C": {"Type": cloudformation.CLUSTER, "Properties": {"It": what}}}
    found = cloudformation.resolved({**TEMPLATE, "Resources": resources}, "C", given, "us-west-2")
    assert not found.wrong
    assert ("It" in found.request) != any(
        row.where.startswith("Resources.C.Properties.It") for row in found.rows
    )
    return found.request.get("It")


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("plain", "plain"),
        ({"Key": "Ref"}, {"Key": "Ref"}),
        ({"Ref": "Name"}, "a"),
        ({"Ref": "Many"}, ["x", "y"]),
        ({"Ref": "AWS::Region"}, "us-west-2"),
        ({"Fn::Sub": "${Name}-${AWS::Region}-${!keep}"}, "a-us-west-2-${keep}"),
        ({"Fn::Sub": ["${Name}-${Own}", {"Own": {"Ref": "Name"}}]}, "a-a"),
        ({"Fn::Join": ["-", ["b", {"Ref": "Name"}]]}, "b-a"),
        ({"Fn::Select": [1, {"Fn::Split": [",", "p,q"]}]}, "q"),
        ({"Fn::FindInMap": ["Disks", "gpu", "gib"]}, 500),
        ({"Fn::If": ["IsA", "yes", "no"]}, "yes"),
        # only a deploy answers these
        ({"Fn::GetAtt": ["Role", "Arn"]}, None),
        ({"Ref": "Role"}, None),
        ({"Fn::Sub": "${Role}-x"}, None),
        ({"Fn::Join": ["-", [{"Ref": "Role"}, "b"]]}, None),
        ({"Fn::Select": [5, ["a"]]}, None),
        ({"Fn::FindInMap": ["Disks", "gpu", "none"]}, None),
        ({"Fn::If": ["Nowhere", "yes", "no"]}, None),
        ({"Fn::Transform": {}}, None),
    ],
)  # fmt: skip
def test_functions(what: Any, says: Any) -> None:
    assert value(what) == says


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"Fn::Not": [{"Condition": "IsA"}]}, False),
        ({"Fn::And": [{"Condition": "IsA"}, {"Fn::Equals": ["true", True]}]}, True),
        ({"Fn::Or": [{"Fn::Equals": ["a", {"Ref": "Role"}]}, {"Condition": "IsA"}]}, True),
        ({"Fn::Or": [{"Fn::Equals": ["a", {"Ref": "Role"}]}, {"Fn::Equals": ["a", "b"]}]}, None),
        ({"Fn::Equals": [{"Ref": "Role"}, "a"]}, None),
    ],
)
def test_conditions(condition: Any, holds: bool | None) -> None:
    template = {**TEMPLATE, "Conditions": {**TEMPLATE["Conditions"], "It": condition}}
    properties = {"It": {"Fn::If": ["It", True, False]}}
    template["Resources"] = {"C": {"Type": cloudformation.CLUSTER, "Properties": properties}}

    assert cloudformation.resolved(template, "C", {}, "").request.get("It") is holds


def test_a_parameter_without_a_value_is_asked_for() -> None:
    resources = {"C": {"Type": cloudformation.CLUSTER, "Properties": {"It": {"Ref": "Count"}}}}
    (wrong,) = cloudformation.resolved({**TEMPLATE, "Resources": resources}, "C", {}, "").wrong

    assert (wrong.where, "the parameter Count" in wrong.message) == ("Resources.C.Properties.It", True)
    assert value({"Ref": "Count"}, Count="4") == "4"


def test_a_template_with_its_stack_is_what_it_was(request: pytest.FixtureRequest) -> None:
    found = imported("cloudformation", request, Asked(region="us-east-2"))

    groups = found.environment.node_groups
    assert (groups["worker-frontier"].count, groups["worker-frontier"].volume_gib) == (4, 500)
    assert groups["worker-frontier"].partition == "frontier-gpu"
    assert "login" in groups
    assert {"Old", "InstanceGroups[0].ExecutionRole"} <= {row.where for row in found.rows}
