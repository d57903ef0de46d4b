"""ClusterConfigs of eksctl as environments: a whole sample, and single keys."""

from __future__ import annotations

from typing import Any

import pytest
from import_samples import imported

from ultracluster.imports import eksctl
from ultracluster.imports.ledger import ImportRefusedError
from ultracluster.imports.outcome import Imported, finished
from ultracluster.imports.surroundings import Asked

GPU = {"name": "gpu", "instanceType": "g5.12xlarge", "desiredCapacity": 2, "efaEnabled": True}
CLOSED = {"clusterEndpoints": {"publicAccess": False}}
ADMIN = {"arn": "arn:aws:iam::111122223333:role/admins", "groups": ["system:masters"]}


def made(*groups: Any, **changes: Any) -> Imported:
    metadata = {"name": "small", "region": "us-west-2", **changes.pop("metadata", {})}
    config = {"apiVersion": "eksctl.io/v1alpha5", "kind": "ClusterConfig", "metadata": metadata}
    config |= {"vpc": CLOSED, "iamIdentityMappings": [ADMIN], "managedNodeGroups": list(groups), **changes}
    return finished(eksctl.drafted(config, "small", Asked()), "small.yaml")


def test_the_sample_is_what_it_was_with_every_loss(request: pytest.FixtureRequest) -> None:
    imported("eksctl-gpu", request)


def test_a_shrinking_group_and_tags_of_tools_are_told() -> None:
    tags = {"karpenter.sh/discovery": "a", "team": "research"}
    found = made({**GPU, "minSize": 1}, metadata={"tags": tags})

    assert {"managedNodeGroups[0].minSize", "metadata.tags.karpenter.sh/discovery"} <= {
        row.where for row in found.rows
    }
    assert found.environment.tags["team"] == "research"
    assert "karpenter.sh/discovery" not in found.environment.tags


def test_the_smallest_loses_nothing_and_gets_nodes_for_add_ons() -> None:
    found = made(GPU)

    assert {row.outcome for row in found.rows} == {"assumed"}
    assert {name: one.role for name, one in found.environment.node_groups.items()} == {
        "system": "system",
        "gpu": "compute",
    }


def test_without_accelerators_the_first_group_has_the_add_ons() -> None:
    found = made({"name": "a", "instanceType": "m5.2xlarge"}, {"name": "b", "instanceType": "c5.9xlarge"})

    assert [group.role for group in found.environment.node_groups.values()] == ["system", "compute"]


REFUSED: list[tuple[list[Any], dict[str, Any], str, str]] = [
    ([], {}, "managedNodeGroups", "no group"),
    ([GPU], {"metadata": {"region": None}}, "region", "--region"),
    ([{**GPU, "instanceType": None}], {}, "managedNodeGroups[0].instanceType", "missing"),
    ([{**GPU, "desiredCapacity": "two"}], {}, "managedNodeGroups[0].desiredCapacity", "whole number"),
    (
        [{**GPU, "instanceMarketOptions": {"marketType": "capacity-block"}}],
        {},
        "capacityReservationID",
        "cr-",
    ),
    ([{**GPU, "name": None}], {}, "managedNodeGroups[0].name", "missing"),
    ([{**GPU, "instanceType": "g5.13xlarge"}], {}, "node_groups.gpu.instance_type", "g5.12xlarge"),
    ([GPU], {"managedNodeGroups": {"gpu": {}}}, "managedNodeGroups", "not a list"),
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
    ({"maxSize": 9}, {}, "maxSize", "left out", "karpenter"),
    ({"ssh": {"allow": True}}, {}, "ssh", "left out", "Session Manager"),
    ({"preBootstrapCommands": ["x"]}, {}, "preBootstrapCommands", "left out", "own-steps"),
    ({}, {"vpc": {}}, "publicAccess", "changed", "within the VPC"),
    ({}, {"availabilityZones": ["us-west-2a"]}, "availabilityZones", "left out", "--zone-id"),
    ({}, {"metadata": {"version": "1.29"}}, "kubernetes_version", "changed", "now "),
    ({"neverHeardOf": 1}, {}, "neverHeardOf", "left out", "no such setting"),
]


@pytest.mark.parametrize(("own", "changes", "where", "outcome", "telling"), LOST)
def test_a_loss_says_where_why_and_what_to_do(
    own: dict[str, Any], changes: dict[str, Any], where: str, outcome: str, telling: str
) -> None:
    rows = [row for row in made({**GPU, **own}, **changes).rows if where in row.where]

    assert [row.outcome for row in rows] == [outcome]
    assert telling in f"{rows[0].why} {rows[0].todo}"
