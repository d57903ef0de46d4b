"""Configurations of ParallelCluster as environments: whole samples, and single keys."""

from __future__ import annotations

from typing import Any

import pytest
from import_samples import imported

from ultracluster.imports import pcluster
from ultracluster.imports.ledger import ImportRefusedError
from ultracluster.imports.outcome import Imported, finished
from ultracluster.imports.surroundings import Asked


def configuration(**changes: Any) -> dict[str, Any]:
    """The smallest that ParallelCluster takes, with changes of its queue and its compute resource."""
    resource = {"Name": "gpu", "InstanceType": "p4d.24xlarge", "MaxCount": 4, **changes.pop("resource", {})}
    queue = {"Name": "train", "ComputeResources": [resource], **changes.pop("queue", {})}
    settings = changes.pop("settings", {})
    return {
        "Region": "us-east-1",
        "Image": {"Os": "ubuntu2204"},
        "HeadNode": {"InstanceType": "m5.2xlarge"},
        "Scheduling": {"Scheduler": "slurm", "SlurmSettings": settings, "SlurmQueues": [queue]},
        **changes,
    }


def made(**changes: Any) -> Imported:
    return finished(pcluster.drafted(configuration(**changes), "small", Asked()), "small.yaml")


@pytest.mark.parametrize("sample", ["pcluster-capacity-block", "pcluster-queues"])
def test_samples_are_what_they_were_with_every_loss(sample: str, request: pytest.FixtureRequest) -> None:
    imported(sample, request)


def test_the_smallest_loses_nothing() -> None:
    found = made(resource={"Efa": {"Enabled": True}})

    assert {row.outcome for row in found.rows} == {"assumed"}
    assert found.environment.node_groups["gpu"].max_count == 4
    assert not found.environment.orchestrator.partitions["train"].exclusive  # pyright: ignore  # ParallelCluster


def test_a_head_node_of_an_unknown_cpu_type_is_kept_with_an_estimate() -> None:
    found = made(HeadNode={"InstanceType": "r7a.2xlarge"})

    assert found.environment.node_groups["head"].instance_type == "r7a.2xlarge"
    assert [finding.code for finding in found.findings if finding.path[:2] == ("node_groups", "head")] == [
        "ENV035"
    ]


def test_a_lost_export_is_read_first() -> None:
    lustre = {"StorageCapacity": 1200, "DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 200}
    lustre |= {"ImportPath": "s3://data", "ExportPath": "s3://data/checkpoints/", "AutoExportPolicy": "NEW"}
    storage = {"MountDir": "/fsx", "Name": "fsx", "StorageType": "FsxLustre", "FsxLustreSettings": lustre}
    found = made(SharedStorage=[storage])

    assert found.rows[0].where == "SharedStorage[0].FsxLustreSettings.ExportPath"
    assert "no longer exported to s3://data/checkpoints" in found.rows[0].why


def test_what_is_dropped_beside_a_reservation_is_told() -> None:
    target = {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}
    queue = {"Networking": {"PlacementGroup": {"Enabled": True}}, "CapacityReservationTarget": target}
    found = made(resource={"MinCount": 4, "Efa": {"Enabled": True}}, queue=queue)

    assert "Scheduling.SlurmQueues[0].Networking.PlacementGroup.Enabled" in {row.where for row in found.rows}


@pytest.mark.parametrize(
    ("changes", "where", "telling"),
    [
        ({"SlurmQueues": []}, "SlurmQueues", "stands at the top, and belongs below Scheduling"),
        (
            {"queue": {"MaxCount": 4}},
            "Scheduling.SlurmQueues[0].MaxCount",
            "Scheduling.SlurmQueues.ComputeResources",
        ),
        ({"Os": "ubuntu2204"}, "Os", "belongs below Image"),
    ],
)
def test_a_key_at_the_wrong_level_is_named_with_its_place(
    changes: dict[str, Any], where: str, telling: str
) -> None:
    with pytest.raises(ImportRefusedError) as refused:
        made(**changes)

    (wrong,) = (one for one in refused.value.wrong if one.where == where)
    assert telling in wrong.message


def test_another_operating_system_is_the_nearest() -> None:
    assert made(Image={"Os": "ubuntu2004"}).environment.orchestrator.os.startswith("ubuntu")  # pyright: ignore  # ParallelCluster


CAPACITIES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({}, {}, {"kind": "on-demand"}),
    ({"CapacityType": "SPOT"}, {}, {"kind": "spot", "allocation": None}),
    (
        {"CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}},
        {"MinCount": 4},
        {"kind": "reservation", "id": "cr-0a1b2c3d4e5f60718"},
    ),
    (
        {"CapacityType": "CAPACITY_BLOCK"},
        {"MinCount": 4, "CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d4e5f60718"}},
        {"kind": "capacity-block", "id": "cr-0a1b2c3d4e5f60718"},
    ),
]


@pytest.mark.parametrize(("queue", "resource", "capacity"), CAPACITIES)
def test_capacity_comes_along(
    queue: dict[str, Any], resource: dict[str, Any], capacity: dict[str, Any]
) -> None:
    group = made(queue=queue, resource=resource).environment.node_groups["gpu"]

    assert group.capacity.model_dump().items() >= capacity.items()


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"Region": None}, "region", "--region"),
    ({"Region": "us-eest-1"}, "region", "us-east-1"),
    ({"HeadNode": {}}, "HeadNode.InstanceType", "is missing"),
    ({"HeadNode": "m5.2xlarge"}, "HeadNode", "must hold keys and values"),
    ({"Scheduling": {"Scheduler": "awsbatch"}}, "Scheduling.Scheduler", "slurm"),
    (
        {"resource": {"MaxCount": "many"}},
        "Scheduling.SlurmQueues[0].ComputeResources[0].MaxCount",
        "whole number",
    ),
    ({"resource": {"MaxCount": "--4"}}, "ComputeResources[0].MaxCount", "whole number"),
    ({"resource": {"MaxCount": float("inf")}}, "ComputeResources[0].MaxCount", "whole number"),
    ({"resource": {"Efa": {"Enabled": "maybe"}}}, "ComputeResources[0].Efa.Enabled", "true or false"),
    ({"resource": {"InstanceType": None}}, "ComputeResources[0].InstanceType", "is missing"),
    ({"queue": {"ComputeResources": "p5"}}, "ComputeResources", "not a list"),
    (
        {"resource": {"InstanceType": "p4d.25xlarge", "Efa": {"Enabled": True}}},
        "instance_type",
        "p4d.24xlarge",
    ),
    ({"settings": {"CustomSlurmSettings": "KillWait=60"}}, "CustomSlurmSettings", "not a list"),
    ({"queue": {"CapacityType": "CAPACITY_BLOCK"}}, "CapacityReservationId", "cr-"),
    (
        {"SharedStorage": [{"Name": "a", "StorageType": "FsxLustre", "FsxLustreSettings": {}}]},
        "StorageCapacity",
        "is missing",
    ),
]


@pytest.mark.parametrize(("changes", "where", "telling"), REFUSED)
def test_what_cannot_be_carried_over_is_refused(changes: dict[str, Any], where: str, telling: str) -> None:
    with pytest.raises(ImportRefusedError) as refused:
        made(**changes)

    assert any(where in row.where for row in refused.value.wrong)
    assert telling in str(refused.value)


def test_all_reasons_are_told_at_once() -> None:
    with pytest.raises(ImportRefusedError) as refused:
        made(Region=None, HeadNode={}, resource={"MaxCount": []})

    assert len(refused.value.wrong) == 3


LOST: list[tuple[dict[str, Any], str, str, str]] = [
    ({"settings": {"CustomSlurmSettings": [{"Epilog": "/a b"}]}}, "Epilog", "left out", "one word"),
    ({"settings": {"QueueUpdateStrategy": "COMPUTE_FLEET_STOP"}}, "QueueUpdateStrategy", "changed", "drain"),
    ({"Image": {"Os": "centos7"}}, "Image.Os", "changed", "alinux2023"),
    ({"queue": {"Networking": {"SubnetIds": ["subnet-1"]}}}, "SubnetIds", "left out", "network.subnet"),
    ({"Unheard": {"Of": 1}}, "Unheard.Of", "left out", "no such setting"),
    ({"Tags": [{"Key": "aws:x", "Value": "y"}]}, "tags", "changed", "keeps for tags of its own"),
]


@pytest.mark.parametrize(("changes", "where", "outcome", "telling"), LOST)
def test_a_loss_says_where_why_and_what_to_do(
    changes: dict[str, Any], where: str, outcome: str, telling: str
) -> None:
    rows = [row for row in made(**changes).rows if where in row.where]

    assert [row.outcome for row in rows] == [outcome]
    assert telling in f"{rows[0].why} {rows[0].todo}"
    assert rows[0].todo
