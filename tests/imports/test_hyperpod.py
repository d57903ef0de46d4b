"""Requests of HyperPod's CreateCluster as environments: whole samples, and single keys."""

from __future__ import annotations

from typing import Any

import pytest
from import_samples import imported

from ultracluster.imports import hyperpod
from ultracluster.imports.ledger import ImportRefusedError
from ultracluster.imports.outcome import Imported, finished
from ultracluster.imports.surroundings import Asked


def group(name: str, kind: str, node_type: str = "", **changes: Any) -> dict[str, Any]:
    slurm = {"SlurmConfig": {"NodeType": node_type}} if node_type else {}
    return {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": 1, **slurm, **changes}


HEAD = group("head", "ml.m5.4xlarge", "Controller")


def made(*groups: Any, parameters: dict[str, Any] | None = None, **changes: Any) -> Imported:
    request = {
        "ClusterName": "small",
        "InstanceGroups": list(groups),
        "NodeProvisioningMode": "Continuous",
        **changes,
    }
    draft = hyperpod.drafted(request, "small", Asked(region="us-west-2"), parameters)
    return finished(draft, "small.json")


@pytest.mark.parametrize("sample", ["hyperpod-api", "hyperpod-lifecycle", "hyperpod-eks", "groups-array"])
def test_samples_are_what_they_were_with_every_loss(sample: str, request: pytest.FixtureRequest) -> None:
    imported(
        sample, request, Asked(region="us-west-2" if sample in ("hyperpod-lifecycle", "groups-array") else "")
    )


def test_the_smallest_loses_nothing() -> None:
    found = made(HEAD, group("gpu", "ml.g5.12xlarge", "Compute"))

    assert {row.where for row in found.rows} == {"network.zone_id", "software.release"}
    assert found.environment.node_groups["gpu"].partition == "gpu"


def test_what_groups_are_may_stand_in_the_older_file() -> None:
    old = {
        "workload_manager": "slurm",
        "controller_group": "head",
        "worker_groups": [{"instance_group_name": "gpu", "partition_name": "dev1"}],
    }
    found = made(group("head", "ml.m5.4xlarge"), group("gpu", "ml.g5.12xlarge"), parameters=old)

    assert found.environment.node_groups["gpu"].partition == "dev1"


GPU = group("gpu", "ml.g5.12xlarge", "Compute")
REFUSED: list[tuple[list[Any], dict[str, Any], str, str]] = [
    ([], {}, "InstanceGroups", "no group"),
    (
        [HEAD, group("gpu", "ml.g5.12xlarge")],
        {},
        "InstanceGroups[1].SlurmConfig.NodeType",
        "provisioning_parameters",
    ),
    (
        [HEAD, group("gpu", "ml.g5.12xlarge", "Worker")],
        {},
        "InstanceGroups[1].SlurmConfig.NodeType",
        "nothing says",
    ),
    ([HEAD, {**GPU, "InstanceCount": "two"}], {}, "InstanceGroups[1].InstanceCount", "whole number"),
    ([HEAD, {**GPU, "InstanceType": None}], {}, "InstanceGroups[1].InstanceType", "missing"),
    ([HEAD, "gpu"], {}, "InstanceGroups[1]", "keys and values"),
    ([HEAD, GPU], {"InstanceGroups": "many"}, "InstanceGroups", "not a list"),
    ([HEAD, {**GPU, "InstanceType": "ml.g5.13xlarge"}], {}, "node_groups.gpu.instance_type", "g5.12xlarge"),
    (
        [HEAD, {**GPU, "TrainingPlanArn": "${PLAN}"}],
        {},
        "InstanceGroups[1].TrainingPlanArn",
        "is the placeholder",
    ),
    (
        [HEAD, GPU],
        {"parameters": {"controller_group": "haed"}},
        "provisioning_parameters.json",
        "one of head, gpu",
    ),
]


@pytest.mark.parametrize(("groups", "changes", "where", "telling"), REFUSED)
def test_what_cannot_be_carried_over_is_refused(
    groups: list[Any], changes: dict[str, Any], where: str, telling: str
) -> None:
    with pytest.raises(ImportRefusedError) as refused:
        made(*groups, **changes)

    assert any(where in row.where for row in refused.value.wrong)
    assert telling in str(refused.value)


LOST: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    ({}, {"NodeProvisioningMode": None}, "NodeProvisioningMode", "changed", "classic"),
    ({}, {"ClusterRole": "x"}, "ClusterRole", "left out", "governance"),
    ({"ImageId": "resolve:ssm:x"}, {}, "ImageId", "left out", "newest"),
    (
        {"AutoPatchConfig": {"PatchingStrategy": "DrainFirst"}},
        {},
        "PatchingStrategy",
        "left out",
        "when-idle",
    ),
    ({"NewSetting": 1}, {}, "InstanceGroups[1].NewSetting", "left out", "no such setting"),
    ({}, {"RestrictedInstanceGroups": [{}]}, "RestrictedInstanceGroups", "left out", "restricted"),
]


@pytest.mark.parametrize(("own", "changes", "where", "outcome", "telling"), LOST)
def test_a_loss_says_where_why_and_what_to_do(
    own: dict[str, Any], changes: dict[str, Any], where: str, outcome: str, telling: str
) -> None:
    rows = [row for row in made(HEAD, {**GPU, **own}, **changes).rows if where in row.where]

    assert [row.outcome for row in rows] == [outcome]
    assert telling in f"{rows[0].why} {rows[0].todo}"
