"""The parts that every configuration model is made of."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Final, TypeGuard, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

T = TypeVar("T")

DISCRIMINATORS = ("kind", "deployment")
"""Keys that say which of several models is meant. A file names them; in Python the class has said it."""
FROM_FILE: Final = "from a file"
"""Context in which models are validated that were read from a file, where no CDK token can be."""
_BEGINS = "${Token["


class Model(BaseModel):
    """Strict (no conversions), frozen, closed to unknown keys.

    The docstring below a field is its description in the JSON Schema.
    """

    # Built on first use: one schema for a whole environment instead of one more for each of its parts.
    # Not `use_attribute_docstrings`, which parses sources at every start; `config.schema` does when asked.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


def is_token(value: object) -> TypeGuard[str]:
    """Whether it is, or holds, a CDK token: a text that is known only after deploy."""
    return isinstance(value, str) and _BEGINS in value


def _or_token(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    return value if info.context != FROM_FILE and is_token(value) else handler(value)


OR_TOKEN = WrapValidator(_or_token)
"""Of fields that CloudFormation takes as references: in an app they may be tokens of the CDK."""


def _network(text: str) -> str:
    try:
        ipaddress.IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"not an IPv4 network: {error}") from None
    return text


# YAML has lists; the models hold tuples, so that an environment cannot be changed after its rules ran.
Many = Annotated[tuple[T, ...], Field(strict=False)]

Cidr = Annotated[
    str, AfterValidator(_network), Field(examples=["10.0.0.0/16"], json_schema_extra={"format": "ipv4-cidr"})
]
"""An IPv4 network as `a.b.c.d/prefix`, no host bits set."""
AbsolutePath = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]*[A-Za-z0-9._-]$", max_length=4096)]
Arn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(\d{12})?:.+$"), OR_TOKEN]
AmiId = Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$"), OR_TOKEN]
ImageName = Annotated[
    str,
    Field(pattern=r"^(ami-[0-9a-f]{8,17}|(/[A-Za-z0-9._-]+)+(:[1-9]\d{0,9})?)$", max_length=1024),
    OR_TOKEN,
]
"""An AMI id, or a parameter of Systems Manager that holds one, with `:3` its version 3."""
SecurityGroupId = Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$"), OR_TOKEN]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$"), OR_TOKEN]
VpcId = Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$"), OR_TOKEN]
BucketName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"), OR_TOKEN]
TimeOfDay = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$", examples=["03:00"])]
"""`HH:MM`, UTC."""


def s3_place(uri: str) -> tuple[str, str]:
    """Bucket and prefix of an `s3://bucket/prefix`; the prefix is empty where there is none, and has no slash
    at its end."""
    bucket, _, prefix = uri.removeprefix("s3://").rstrip("/").partition("/")
    return bucket, prefix
