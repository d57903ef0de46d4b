"""Parents and children of a resource: by reference, across exports, and by a cluster's name in plain text."""

from __future__ import annotations

from typing import Any

import pytest
from blast_radius_support import resource

from ultracluster.change.surroundings import Surroundings

PLANE, GROUP = "AWS::EKS::Cluster", "AWS::EKS::Nodegroup"
PLANES: dict[str, Any] = {
    "Resources": {
        "Plane": resource(PLANE, {"Name": "prod", "Version": "1.35"}),
        "Other": resource(PLANE, {"Name": "dev", "Version": "1.30"}),
    },
    "Outputs": {"Name": {"Value": {"Ref": "Plane"}, "Export": {"Name": "plane-Name"}}},
}


@pytest.mark.parametrize(
    ("name", "version"),
    [({"Fn::ImportValue": "plane-Name"}, "1.35"), ("prod", "1.35"), ("dev", "1.30"), ("staging", None)],
)
def test_a_child_in_another_stack_has_its_parent(name: Any, version: str | None) -> None:
    groups = {"Resources": {"Group": resource(GROUP, {"ClusterName": name})}}
    templates = {"a-groups": groups, "b-plane": PLANES}
    found = list(Surroundings(templates, templates).relatives("a-groups", "Group", PLANE))

    assert [new["Version"] for _, new in found] == ([version] if version else [])


def test_a_parent_has_its_children_before_and_after() -> None:
    def templates(*versions: str) -> dict[str, Any]:
        rows = {
            f"Group{number}": resource(GROUP, {"ClusterName": {"Ref": "Plane"}, "Version": version})
            for number, version in enumerate(versions)
        }
        return {"s": {"Resources": {**PLANES["Resources"], **rows}}}

    around = Surroundings(templates("1.33"), templates("1.34", "1.35"))
    found = list(around.relatives("s", "Plane", GROUP))

    assert [(old.get("Version"), new["Version"]) for old, new in found] == [("1.33", "1.34"), (None, "1.35")]
    assert list(around.relatives("s", "Other", GROUP)) == []
