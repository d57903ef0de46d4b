"""Botocore's models as judges of a request: required members, types, enumerations, lengths, patterns."""

# Botocore computes attributes of shapes once; its decorator has no types.
# pyright: reportArgumentType=false, reportIndexIssue=false, reportAttributeAccessIssue=false
# pyright: reportOperatorIssue=false, reportOptionalMemberAccess=false, reportCallIssue=false
from __future__ import annotations

from functools import cache
from typing import Any

import botocore.session
from botocore.model import ListShape, MapShape, OperationModel, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

from emulated_account.refusal import ApiError
from emulated_account.schemas import regex


@cache
def operation(service: str, name: str) -> OperationModel:
    return botocore.session.get_session().get_service_model(service).operation_model(name)


def known_to(service: str, name: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Properties of a resource that are parameters of an operation as well, spelled as the operation does."""
    return spelled(operation(service, name).input_shape, properties)


def spelled(shape: Shape | None, value: Any) -> Any:
    """A value with the model's names: templates begin them with capitals, and write tags as lists."""
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        names: Any = shape.members
        members = {member.lower(): member for member in names}
        known = {members[key.lower()]: item for key, item in value.items() if key.lower() in members}
        return {key: spelled(shape.members[key], item) for key, item in known.items()}
    if isinstance(shape, ListShape) and isinstance(value, list):
        return [spelled(shape.member, item) for item in value]
    if isinstance(shape, MapShape) and isinstance(value, list):
        return {item["Key"]: item["Value"] for item in value}
    return value


def typed(shape: Shape, value: Any) -> Any:
    """A value with the types that the model asks for: templates may write numbers as text."""
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        return {
            key: typed(shape.members[key], item) if key in shape.members else item
            for key, item in value.items()
        }
    if isinstance(shape, ListShape) and isinstance(value, list):
        return [typed(shape.member, item) for item in value]
    if (
        shape.type_name in ("integer", "long")
        and isinstance(value, str)
        and value.removeprefix("-").isdigit()
    ):
        return int(value)
    if shape.type_name == "boolean" and value in ("true", "false"):
        return value == "true"
    if shape.type_name == "string" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def judge(service: str, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters with the model's types; refuses what the model does not allow."""
    shape = operation(service, name).input_shape
    parameters = typed(shape, parameters)
    report = ParamValidator().validate(parameters, shape)
    problems = [report.generate_report()] if report.has_errors() else _problems(shape, parameters, name)
    if problems:
        raise ApiError("ValidationException", f"{name}: {'; '.join(problems[:5])}")
    return parameters


def _problems(shape: Shape, value: Any, path: str) -> list[str]:
    if isinstance(shape, StructureShape):
        members = ((shape.members[key], item, f"{path}.{key}") for key, item in value.items())
        return [problem for member in members for problem in _problems(*member)]
    found = _bounds(shape, value, path)
    if isinstance(shape, ListShape):
        return found + [
            one
            for number, item in enumerate(value)
            for one in _problems(shape.member, item, f"{path}[{number}]")
        ]
    if isinstance(shape, MapShape):
        return found + [
            one for key, item in value.items() for one in _problems(shape.value, item, f"{path}.{key}")
        ]
    if not isinstance(shape, StringShape):
        return found
    if shape.enum and value not in shape.enum:
        found.append(f"{path}: {value!r} is none of {', '.join(shape.enum[:12])}")
    pattern = shape.metadata.get("pattern")
    if pattern and not regex(pattern).find(value):
        found.append(f"{path}: {value!r} does not match {pattern}")
    return found


def _bounds(shape: Shape, value: Any, path: str) -> list[str]:
    size = value if isinstance(value, int) else len(value) if hasattr(value, "__len__") else None
    if size is None or isinstance(value, bool):
        return []
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if (low is not None and size < low) or (high is not None and size > high):
        return [f"{path}: {size} is not between {low} and {high}"]
    return []
