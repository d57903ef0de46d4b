"""Parameters of the HyperPod console's stacks as environments: whole samples, and single parameters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from import_samples import imported

from ultracluster.imports import console
from ultracluster.imports.ledger import ImportRefusedError
from ultracluster.imports.outcome import Imported, finished
from ultracluster.imports.reading import parameters_of
from ultracluster.imports.surroundings import Asked

GROUPS = [
    {"InstanceGroupName": "c", "InstanceGroupType": "Controller", "InstanceType": "ml.m5.4xlarge"},
    {"InstanceGroupName": "gpu", "InstanceGroupType": "Compute", "InstanceType": "ml.g5.12xlarge"},
]


def made(**changes: Any) -> Imported:
    groups = [{**group, "InstanceCount": 1, "TargetAvailabilityZoneId": "usw2-az2"} for group in GROUPS]
    parameters = {
        "HyperPodClusterName": "a",
        "InstanceGroupSettings1": json.dumps([groups]),
        "CreateFsxStack": "false",
        **changes,
    }
    return finished(console.drafted(parameters, "small", Asked()), "small.json")


@pytest.mark.parametrize("sample", ["console-slurm", "console-eks", "hyp-config"])
def test_samples_are_what_they_were_with_every_loss(sample: str, request: pytest.FixtureRequest) -> None:
    imported(sample, request)


def test_region_and_zone_are_those_of_the_groups() -> None:
    found = made().environment

    assert (found.region, found.network.zone_id) == ("us-west-2", "usw2-az2")
    assert found.storage.lustre is None


def test_zones_without_nodes_are_told() -> None:
    found = made(AvailabilityZoneIds="usw2-az2,usw2-az1,usw2-az3")

    assert "AvailabilityZoneIds" in {row.where for row in found.rows}


FORMS: list[tuple[Any, dict[str, Any] | None]] = [
    ([{"ParameterKey": "a", "ParameterValue": "1"}], {"a": "1"}),
    ({"Parameters": [{"ParameterKey": "a", "ParameterValue": "1"}]}, {"a": "1"}),
    ({"Stacks": [{"Parameters": [{"ParameterKey": "a", "ParameterValue": "1"}]}]}, {"a": "1"}),
    ({"Parameters": {"a": {"Default": "1"}, "b": {"Type": "String"}}}, {"a": "1", "b": None}),
    ([{"Key": "a"}], None),
    ([1], None),
    ({"Stacks": [1, 2]}, None),
    ({"Parameters": 7}, None),
]


@pytest.mark.parametrize(("data", "values"), FORMS)
def test_parameters_in_each_form(data: Any, values: dict[str, Any] | None) -> None:
    assert parameters_of(data) == values


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"InstanceGroupSettings1": "["}, "InstanceGroupSettings1", "not JSON"),
    ({"InstanceGroupSettings1": '{"a": 1}'}, "InstanceGroupSettings1", "not a list"),
    ({"InstanceGroupSettings1": "[1]"}, "InstanceGroupSettings1", "must hold groups"),
    ({"InstanceGroupSettings1": "[]"}, "InstanceGroupSettings1", "parameters that it was deployed with"),
    ({"InstanceGroupSettings1": "[" * 100_000}, "InstanceGroupSettings1", "not JSON"),
    ({"Tags": "[1"}, "Tags", "not JSON"),
    ({"CreateFsxStack": "perhaps"}, "CreateFsxStack", "true or false"),
]


@pytest.mark.parametrize(("changes", "where", "telling"), REFUSED)
def test_what_cannot_be_carried_over_is_refused(changes: dict[str, Any], where: str, telling: str) -> None:
    with pytest.raises(ImportRefusedError) as refused:
        made(**changes)

    assert any(where in row.where for row in refused.value.wrong)
    assert telling in str(refused.value)


LOST: list[tuple[dict[str, Any], str, str, str]] = [
    ({"RigSettings1": '[{"InstanceGroupName": "nova"}]'}, "RigSettings1", "left out", "restricted"),
    ({"FsxFileSystemId": "fs-0a1b2c3d4e5f60718"}, "FsxFileSystemId", "left out", "--cluster NAME"),
    (
        {"PrivateSubnetIds": "subnet-1", "CreateVPCStack": "false"},
        "PrivateSubnetIds",
        "left out",
        "network.vpc",
    ),
    ({"EnableHPInferenceFeature": "true"}, "EnableHPInferenceFeature", "left out", "inference: {}"),
    ({"NewParameter": "x"}, "NewParameter", "left out", "no such setting"),
]


@pytest.mark.parametrize(("changes", "where", "outcome", "telling"), LOST)
def test_a_loss_says_where_why_and_what_to_do(
    changes: dict[str, Any], where: str, outcome: str, telling: str
) -> None:
    rows = [row for row in made(**changes).rows if where in row.where]

    assert [row.outcome for row in rows] == [outcome]
    assert telling in f"{rows[0].why} {rows[0].todo}"
