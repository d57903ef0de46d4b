"""What changes do to the templates of shipped environments: nothing that jobs need goes without a word."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from project import ENVIRONMENTS, ROOT
from templates import templates_alone

from ultracluster.change import Verdict, blast_radius, worst
from ultracluster.change.ways_and_rights import RULES
from ultracluster.config import load
from ultracluster.config.kubernetes import Eks

pytestmark = pytest.mark.slow

Get = Callable[[str], Any]
WAYS = RULES | {"AWS::EC2::VPCEndpoint", "AWS::EC2::Route", "AWS::EC2::SubnetRouteTableAssociation"}
NODES = ("ec2.amazonaws.com", "sagemaker.amazonaws.com")


def removed(templates: dict[str, Any], stack: str, name: str) -> dict[str, Any]:
    resources = {one: value for one, value in templates[stack]["Resources"].items() if one != name}
    return {**templates, stack: {**templates[stack], "Resources": resources}}


def of_types(templates: dict[str, Any], types: frozenset[str] | set[str]) -> Iterator[tuple[str, str]]:
    for stack, template in templates.items():
        for name, resource in template["Resources"].items():
            if resource["Type"] in types:
                yield stack, name


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_rule_route_and_endpoint_is_missed(name: str, synthesised: Get) -> None:
    templates = synthesised(name).templates
    found = list(of_types(templates, WAYS))

    assert found
    for stack, one in found:
        changes = blast_radius(templates, removed(templates, stack, one))
        (own,) = [change for change in changes if change.logical_id == one]
        stays = templates[stack]["Resources"][one].get("DeletionPolicy", "").startswith("Retain")
        assert own.verdict is (Verdict.IN_PLACE if stays else Verdict.AT_RISK), one
        assert ("retained, no longer managed" in own.reason) == stays


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_statement_of_a_role_of_nodes_is_missed(name: str, synthesised: Get) -> None:
    templates = synthesised(name).templates
    judged = 0
    for stack, one in of_types(templates, {"AWS::IAM::Policy"}):
        resources = templates[stack]["Resources"]
        role = resources.get(resources[one]["Properties"]["Roles"][0].get("Ref"), {})
        trust = json.dumps(role.get("Properties", {}).get("AssumeRolePolicyDocument"))
        if not any(service in trust for service in NODES):
            continue
        for number in range(len(resources[one]["Properties"]["PolicyDocument"]["Statement"])):
            after = copy.deepcopy(templates)
            policy = after[stack]["Resources"][one]["Properties"]["PolicyDocument"]
            gone = policy["Statement"].pop(number)
            (change,) = [c for c in blast_radius(templates, after) if c.logical_id == one]
            if gone["Effect"] == "Deny":
                assert change.verdict == "in place", gone
                continue
            # another statement may grant the same; what is left then says so
            assert change.verdict is Verdict.AT_RISK or "no right ends" in change.reason, gone
            judged += change.verdict is Verdict.AT_RISK
    assert judged or "parallelcluster" in name


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_retention_that_goes_needs_acceptance(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    after = copy.deepcopy(made.templates)
    held: set[tuple[str, str]] = set()
    for stack, template in after.items():
        for one, resource in template["Resources"].items():
            if resource.get("DeletionPolicy", "").startswith("Retain"):
                resource["DeletionPolicy"] = resource["UpdateReplacePolicy"] = "Delete"
                held.add((stack, one))
    changes = blast_radius(made.templates, after)

    assert {(c.stack, c.logical_id) for c in changes} == held
    protected = bool(made.resources("Custom::AWS")) and any(stack.endswith("-protection") for stack in after)
    if protected:
        assert worst(changes) is Verdict.DATA_AT_RISK
        data = {(c.stack, c.logical_id) for c in changes if c.verdict is Verdict.DATA_AT_RISK}
        kinds = {made.templates[stack]["Resources"][one]["Type"] for stack, one in data}
        assert {"AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::Logs::LogGroup"} <= kinds


def test_the_guards_of_a_protected_environment_are_missed(synthesised: Get) -> None:
    templates = synthesised("prod").templates
    (stack,) = [one for one in templates if one.endswith("-protection")]
    guards = [one for _, one in of_types({stack: templates[stack]}, {"Custom::AWS"})]

    assert len(guards) == 5  # the database, and the policies of four stacks
    for one in guards:
        assert worst(blast_radius(templates, removed(templates, stack, one))) is Verdict.DATA_AT_RISK


def test_another_way_to_efa_interfaces_puts_jobs_at_risk_and_replaces_nothing() -> None:
    claimed = load(ROOT / "environments/wishes/efa-dra.yaml").environment
    assert isinstance(claimed.orchestrator, Eks)
    counting = claimed.orchestrator.model_copy(update={"efa_devices": "device-plugin"})
    counted = claimed.model_copy(update={"orchestrator": counting})
    driver = templates_alone(claimed)
    plugin = templates_alone(counted)

    for before, after, asked in (
        (plugin, driver, "ask for `vpc.amazonaws.com/efa` stay pending"),
        (driver, plugin, "end only when the driver is there again; those that claim one stay pending"),
    ):
        found = blast_radius(before, after)
        assert worst(found) is Verdict.AT_RISK
        (gone,) = [one for one in found if one.verdict is Verdict.AT_RISK]
        assert asked in gone.reason and "submit these jobs anew" in gone.reason
