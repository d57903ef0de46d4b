"""The parts that every configuration model is made of."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeGuard, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ultracluster.config.plain_text import named, unseen_in

T = TypeVar("T")


@dataclass(frozen=True)
class Without:
    """A number inside a range that the API excludes in words: metadata beside `Field(ge=..., le=...)`."""

    value: int
    nearest: int
    """The nearest number that the API takes."""
    why: str
    """Words behind the number: `is no ...`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._other, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "not": {"const": self.value}}

    def _other(self, number: int) -> int:
        if number == self.value:
            raise PydanticCustomError("excluded", "{why}", {"why": self.why, "nearest": self.nearest})
        return number


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

    if not TYPE_CHECKING:  # the signature is that of the fields

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                # loaded when a model is refused: it reads the models
                words = import_module("ultracluster.config.shape_findings")
                raise ValueError(words.refusal_of(type(self), data, error)) from None

        # so that the models within a model are made by pydantic, which says in one error what is wrong
        __init__.__pydantic_base_init__ = True


def is_token(value: object) -> TypeGuard[str]:
    """Whether it is, or holds, a CDK token: a text that is known only after deploy."""
    return isinstance(value, str) and _BEGINS in value


def is_number_token(value: object) -> bool:
    """Recognise a number of the CDK that is known only after deploy."""
    return isinstance(value, float) and -1.8882e289 < value < -1.8881e289


def named_by(*attributes: str) -> BeforeValidator:
    """Take an object of the CDK in the place of the text that it has under one of these names."""

    def text(value: object) -> object:
        for name in attributes:
            if (found := getattr(value, name, None)) is not None:
                return found() if callable(found) else found
        return value

    return BeforeValidator(text)


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


def _one_line(text: str) -> str:
    if (found := unseen_in(text)) is not None:
        raise PydanticCustomError("unseen", "the text holds {character}", {"character": named(found)})
    return text


def _lines(text: str) -> str:
    for line in text.split("\n"):
        _one_line(line.replace("\t", " "))
    return text


def _setting(value: str | float) -> str | float:
    return _one_line(value) if isinstance(value, str) else value


def _plain_values(value: object) -> object:
    """Values of any shape, as those of a chart: each key and each line of their texts is seen as it is."""
    if isinstance(value, str):
        _lines(value)
    elif isinstance(value, dict):
        for key, one in cast("dict[Any, Any]", value).items():
            _one_line(str(key))
            _plain_values(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            _plain_values(one)
    return cast("object", value)


SEEN = r"[^\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
"""In a pattern: a character that shows, and ends no line. `.` takes others, and `\\d` that of any script."""
ON_ONE_LINE = AfterValidator(_one_line)
"""Behind other conditions of a text: `Annotated[str, Field(min_length=1), ON_ONE_LINE]`."""
IN_LINES = AfterValidator(_lines)
"""The same for text with lines."""
Line = Annotated[
    str,
    ON_ONE_LINE,
    Field(json_schema_extra={"pattern": f"^{SEEN}*$"}),
]
"""Text on one line in any language. It ends up in settings, manifests, tags and scripts, where a line break
would begin another setting: so nothing is in it that does not show."""
Prose = Annotated[str, IN_LINES]
"""Text for people; it may have lines. Nothing but a report shows it."""
Setting = Annotated[bool | int | float | str, AfterValidator(_setting)]
"""A value of a file in which each setting is a line."""
Values = Annotated[Any, AfterValidator(_plain_values)]
"""What is passed on as it is; its texts may have lines."""


class _AsTuple:
    """A list as YAML and Python have it, kept as a tuple: no environment changes after its rules ran."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (element,) = get_args(source)
        return cast("CoreSchema", {**handler.generate_schema(tuple[element, ...]), "strict": False})


Many = Annotated[Sequence[T], _AsTuple()]

Cidr = Annotated[
    str, AfterValidator(_network), Field(examples=["10.0.0.0/16"], json_schema_extra={"format": "ipv4-cidr"})
]
"""An IPv4 network as `a.b.c.d/prefix`, no host bits set."""
AbsolutePath = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]*[A-Za-z0-9._-]$", max_length=4096)]
Arn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:([0-9]{12})?:[!-~]+$"), OR_TOKEN]
AmiId = Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$"), OR_TOKEN]
ImageName = Annotated[
    str,
    Field(pattern=r"^(ami-[0-9a-f]{8,17}|(/[A-Za-z0-9._-]+)+(:[1-9][0-9]{0,9})?)$", max_length=1024),
    OR_TOKEN,
]
"""An AMI id, or a parameter of Systems Manager that holds one, with `:3` its version 3."""
SecurityGroupId = Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$"), OR_TOKEN]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$"), OR_TOKEN]
VpcId = Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$"), OR_TOKEN]
BucketName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"), OR_TOKEN]
TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["03:00"])]
"""`HH:MM`, UTC."""


def s3_place(uri: str) -> tuple[str, str]:
    """Bucket and prefix of an `s3://bucket/prefix`; the prefix is empty where there is none, and has no slash
    at its end."""
    bucket, _, prefix = uri.removeprefix("s3://").rstrip("/").partition("/")
    return bucket, prefix
