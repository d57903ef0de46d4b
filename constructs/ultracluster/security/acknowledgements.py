"""Reasons for security findings that stand, kept beside the resource they are about."""

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


def acknowledge_sdk_calls(construct: IConstruct) -> None:
    """Accept what is found about the CDK's own function behind `AwsCustomResource`, one in each stack."""
    if provider := Stack.of(construct).node.try_find_child("AWS679f53fac002430cb0da5b7982bd2287"):
        acknowledge(provider, _SDK_CALLS)


_LOG_POLICY = "service-role/AWSLambdaBasicExecutionRole"
_SDK_CALLS = {
    f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{_LOG_POLICY}]": (
        "The CDK's own provider function: the policy only lets it write its log."
    ),
    "AwsSolutions-L1": "The runtime of the CDK's own provider function is chosen by the CDK release.",
}


def _as_nag_writes(value: Any) -> str:
    if isinstance(value, str):
        return value
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
