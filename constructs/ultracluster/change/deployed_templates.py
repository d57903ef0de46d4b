"""The templates of deployed stacks, as CloudFormation gives them back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast

from ultracluster.account.aws import AWS_ERRORS, Account, code, explain, message
from ultracluster.change.template import Template
from ultracluster.change.template_files import parse_template


@dataclass(slots=True)
class Deployed:
    """What could be read, and what could not be."""

    templates: dict[str, Template] = field(default_factory=dict[str, Template])
    """By stack name."""
    absent: list[str] = field(default_factory=list[str])
    """Expected stacks that are not deployed."""
    unread: dict[str, str] = field(default_factory=dict[str, str])
    """Stacks that could not be read, each with the reason."""
    doubtful: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By reason: stacks that the environment no longer has, and of which AWS does not say whether they are
    deployed."""


def deployed_templates(account: Account, expected: Collection[str], possible: Collection[str]) -> Deployed:
    """Read the templates of stacks (`cloudformation:GetTemplate`); one that cannot be read leaves the others
    readable.

    Args:
        expected: stacks that the environment has.
        possible: stacks that it may have had; most of them are not there.

    Raises:
        AccountError: there is no client for CloudFormation.
    """
    cloudformation = account.client("cloudformation")
    found = Deployed()
    for name in (*expected, *possible):
        try:
            body = cloudformation.get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
            found.templates[name] = (
                cast("Template", body) if isinstance(body, dict) else parse_template(str(body))
            )
        except AWS_ERRORS as error:
            # CloudFormation has no error code of its own for a stack that is not there
            if code(error) == "ValidationError" and "does not exist" in message(error):
                if name in expected:
                    found.absent.append(name)
            elif name in possible:
                found.doubtful.setdefault(explain(error), []).append(name)
            else:
                found.unread[name] = explain(error)
        except ValueError as error:
            found.unread[name] = f"its template cannot be read: {error}"
    return found


def protected_stacks(account: Account, stacks: Collection[str]) -> tuple[set[str], dict[str, list[str]]]:
    """Which stacks are protected from deletion (`cloudformation:DescribeStacks`), and those of which AWS does
    not say so, by reason.

    Raises:
        AccountError: there is no client for CloudFormation.
    """
    cloudformation = account.client("cloudformation")
    found: set[str] = set()
    unknown: dict[str, list[str]] = {}
    for name in stacks:
        try:
            answer: dict[str, Any] = cloudformation.describe_stacks(StackName=name)
            if any(stack.get("EnableTerminationProtection") for stack in answer["Stacks"]):
                found.add(name)
        except AWS_ERRORS as error:
            unknown.setdefault(explain(error), []).append(name)
    return found, unknown


def as_given_back(value: Any) -> Any:
    """A template as CloudFormation gives it back: every character beyond ASCII is a question mark."""
    if isinstance(value, str):
        return value.encode("ascii", "replace").decode()
    if isinstance(value, list):
        return [as_given_back(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {as_given_back(key): as_given_back(one) for key, one in cast("dict[str, Any]", value).items()}
    return value
