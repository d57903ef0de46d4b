"""Reasons for security findings that stand, kept with the resource they are about."""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, findings: dict[str, str]) -> None:
    """Accept cdk-nag or CloudFormation findings below `construct`: `{id: reason}`."""
    Validations.of(construct).acknowledge(
        *(Acknowledgment(id=rule, reason=reason) for rule, reason in findings.items())
    )


def wildcard(scope: IConstruct, arn: str) -> str:
    """The id under which cdk-nag reports the wildcard resource `arn`, which may hold tokens."""
    return f"AwsSolutions-IAM5[Resource::{_as_nag_writes(Stack.of(scope).resolve(arn))}]"


def _as_nag_writes(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("${", "<").replace("}", ">")  # a variable of IAM, e.g. ${aws:PrincipalTag/team}
    function, argument = next(iter(cast("dict[str, Any]", value).items()))
    match function:
        case "Fn::Join":
            return argument[0].join(_as_nag_writes(part) for part in argument[1])
        case "Ref":
            return f"<{argument}>"
        case "Fn::GetAtt":
            return f"<{'.'.join(argument)}>"
        case "Fn::ImportValue":
            return argument
        case "Fn::Sub":
            return argument.replace("${", "<").replace("}", ">")
        case _:
            raise ValueError(f"no rule for how cdk-nag writes {function}")
