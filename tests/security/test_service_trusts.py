"""Every service that may assume a role of ours may do so for this account only, where it says for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aws_cdk import aws_iam as iam
from foreign import HOME, foreign_stack, resources
from project import ENVIRONMENTS
from templates import Synthesised, Template, many

from ultracluster.catalog.service_trusts import service_trusts
from ultracluster.security.principals import trusted

Get = Callable[[str], Synthesised]
SOURCES = ("aws:SourceAccount", "aws:SourceArn")


def trusts(template: Template) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(logical id, service, conditions) of every service that a role of a template trusts."""
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::IAM::Role":
            continue
        for statement in resource["Properties"]["AssumeRolePolicyDocument"]["Statement"]:
            for service in many(statement["Principal"].get("Service", [])):
                yield name, service, statement.get("Condition", {})


def fault(service: str, conditions: dict[str, Any]) -> str:
    """What is wrong with a trust; empty if nothing."""
    row = service_trusts().get(service)
    if row is None:
        return f"{service} is not in catalog/service_trusts.json"
    asked = {key: operator for operator, keys in conditions.items() for key in keys if key in SOURCES}
    if row.says == "never":
        return f"{service} sends no {', '.join(asked)}" if asked else ""
    wanted = {"always": ("StringEquals", "ArnEquals", "ArnLike"), "unknown": ("StringEqualsIfExists",)}
    if not asked:
        return f"{service} may come for any account"
    wrong = [operator for operator in asked.values() if operator not in wanted[row.says]]
    return f"{service} is asked with {', '.join(wrong)}" if wrong else ""


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_service_comes_for_this_account_only(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        for role, service, conditions in trusts(template):
            assert not (found := fault(service, conditions)), f"{stack}/{role}: {found}"


def test_the_environments_have_all_kinds_of_trust(synthesised: Get) -> None:
    found = {
        service
        for name in ENVIRONMENTS
        for template in synthesised(name).templates.values()
        for _, service, _ in trusts(template)
    }
    assert {service_trusts()[one].says for one in found} == {"always", "unknown", "never"}
    assert found >= {"sagemaker.amazonaws.com", "vpc-flow-logs.amazonaws.com", "eks.amazonaws.com"}


@pytest.mark.parametrize("service", service_trusts())
def test_each_service_is_trusted_as_its_row_says(service: str) -> None:
    stack = foreign_stack(env=HOME)
    iam.Role(stack, "Role", assumed_by=trusted(stack, service))

    (role,) = resources(stack, "AWS::IAM::Role").values()
    (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    conditions = statement.get("Condition", {})

    assert statement["Principal"] == {"Service": service}
    assert fault(service, conditions) == ""
    named = [keys["aws:SourceAccount"] for keys in conditions.values() if "aws:SourceAccount" in keys]
    assert named == ([] if service_trusts()[service].says == "never" else ["123456789012"])


def test_a_service_of_which_nothing_is_known_is_not_trusted() -> None:
    with pytest.raises(KeyError, match="batch"):
        trusted(foreign_stack(), "batch.amazonaws.com")


@pytest.mark.parametrize(
    ("service", "conditions", "words"),
    [
        ("batch.amazonaws.com", {}, "is not in"),
        ("eks.amazonaws.com", {}, "any account"),
        ("eks.amazonaws.com", {"StringEqualsIfExists": {"aws:SourceAccount": "1"}}, "IfExists"),
        ("sagemaker.amazonaws.com", {"StringEquals": {"aws:SourceAccount": "1"}}, "StringEquals"),
        ("lambda.amazonaws.com", {"StringEquals": {"aws:SourceAccount": "1"}}, "sends no"),
    ],
)
def test_a_wrong_trust_is_found(service: str, conditions: dict[str, Any], words: str) -> None:
    assert words in fault(service, conditions)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_service_in_a_policy_of_a_resource_is_bound_as_well(name: str, synthesised: Get) -> None:
    """Keys, buckets and queues: by whose resource it is, or by what it encrypts."""
    for stack, template in synthesised(name).templates.items():
        for logical_id, resource in template["Resources"].items():
            told = resource.get("Properties", {})
            for document in (told.get("KeyPolicy"), told.get("PolicyDocument")):
                for statement in (document or {}).get("Statement", []):
                    principal = statement.get("Principal")
                    if statement["Effect"] != "Allow" or "Service" not in (principal or {}):
                        continue
                    text = str(statement.get("Condition", {}))
                    assert any(word in text for word in (*SOURCES, "kms:EncryptionContext")), (
                        f"{stack}/{logical_id}: {statement}"
                    )
