"""Ways to other networks that no security group shows, in every environment: the judge names each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from iam_proof.environments import CLOSED, NAMES, config_of
from project import SHIPPED
from reachability.flows import findings, network_of

Templates = dict[str, Any]
Get = Callable[[str], Templates]
WAYS: list[dict[str, Any]] = yaml.load(
    Path(__file__).with_name("ways_elsewhere.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
)["ways"]
ASKED = [name for name in NAMES if name in SHIPPED or CLOSED in name]


def of(name: str, templates: Templates, value: Any) -> Any:
    """A resource of the table with the environment's own network in it."""
    if isinstance(value, dict):
        return {key: of(name, templates, one) for key, one in value.items()}
    if isinstance(value, list):
        return [of(name, templates, one) for one in value]
    exports = {
        "VPC": "VpcId", "SUBNET": "NodeSubnetId", "GROUP": "NodeSecurityGroupId", "TABLE": "NodeRouteTableId",
    }  # fmt: skip
    environment = config_of(name).name
    if value in exports:
        return {"Fn::ImportValue": f"{environment}-network-{exports[value]}"}
    if value == "PUBLIC":
        resources = templates[f"{environment}-egress"]["Resources"]
        return {"Ref": next(one for one in resources if one.startswith("EgressPublicRoutes"))}
    return value


@pytest.mark.parametrize("row", WAYS, ids=[row["way"] for row in WAYS])
def test_a_way_elsewhere_is_found_everywhere(row: dict[str, Any], templates_of: Get) -> None:
    asked = [name for name in ASKED if "in" not in row or config_of(name).network.egress == "nat"]
    assert {config_of(name).network.egress for name in asked} >= {"nat"}
    for name in asked:
        templates, stack = dict(templates_of(name)), f"{config_of(name).name}-egress"
        wrong = {"Type": row["rows"]["Type"], "Properties": of(name, templates, row["rows"]["Properties"])}
        template = templates[stack]
        templates[stack] = {**template, "Resources": {**template["Resources"], "Wrong": wrong}}

        found = findings(network_of(templates, config_of(name)))

        assert any("Wrong" in one and row["finds"] in one for one in found), f"{name}: {found}"


@pytest.mark.parametrize("name", ["prod", "eks-p5en"])
def test_no_damage_ends_the_judge(name: str, templates_of: Get) -> None:
    """A property that is missing, or another's: findings that name resources, never a traceback."""
    seen = 0
    for templates, what in damaged(templates_of(name)):
        found = findings(network_of(templates, config_of(name)))
        assert not [one for one in found if one.startswith("the network cannot be judged")], what
        seen += 1
    assert seen > 100


def test_an_error_of_the_judge_is_a_finding(templates_of: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(templates_of("dev"), config_of("dev"))
    assert findings(network) == []
    monkeypatch.setattr(network.routes, "faults", lambda used: used[0])
    assert "the network cannot be judged: TypeError 'set' object is not subscriptable" in findings(network)


def damaged(templates: Templates) -> Iterator[tuple[Templates, str]]:
    """The templates with one property of the network missing or replaced by another's at a time."""
    seen: set[tuple[str, str]] = set()
    services = ("EC2", "EKS", "FSx", "Lambda", "PCS", "RDS", "SageMaker")
    for stack, template in templates.items():
        for logical, resource in template["Resources"].items():
            properties = resource.get("Properties", {})
            if resource["Type"].split("::")[1] not in services:
                continue
            for key in sorted(properties.keys() - {"Code", "Environment", "Tags"}):
                if (resource["Type"], key) in seen:
                    continue
                seen.add((resource["Type"], key))
                for foreign in (None, "sg-0123456789abcdef0"):
                    changed = {name: one for name, one in properties.items() if name != key}
                    if foreign and isinstance(properties[key], str | dict):
                        changed[key] = foreign
                    elif foreign:
                        continue
                    resources = {**template["Resources"], logical: {**resource, "Properties": changed}}
                    changed_template = {**template, "Resources": resources}
                    yield {**templates, stack: changed_template}, f"{stack}/{logical}.{key}"
