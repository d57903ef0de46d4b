"""CloudFormation's resource schemas, as cfn-lint installs them, as judges of resolved properties."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import regress
from jsonschema import Draft7Validator, TypeChecker, ValidationError
from jsonschema.validators import extend

from emulated_account.refusal import ApiError, say_not_judged

SCHEMAS = importlib.resources.files("cfnlint.data.schemas")


def _is_number(_: TypeChecker, value: object) -> bool:
    return _is_integer(_, value) or isinstance(value, float) or (isinstance(value, str) and _float(value))


def _float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_integer(_: TypeChecker, value: object) -> bool:
    if isinstance(value, str):
        return value.removeprefix("-").isdigit()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_boolean(_: TypeChecker, value: object) -> bool:
    return isinstance(value, bool) or value in ("true", "false")


def _is_string(_: TypeChecker, value: object) -> bool:
    # Moto hands some resources over as objects where a template refers to their names.
    return isinstance(value, str | int | float) or hasattr(value, "name")


@cache
def regex(pattern: str) -> regress.Regex:
    """A pattern of a schema or a model, written for other engines than Python's."""
    try:
        return regress.Regex(pattern.replace(r"\Z", "$"), "u" if r"\p{" in pattern else "")
    except regress.RegressError:
        say_not_judged(f"the pattern {pattern}: no engine here reads it")
        return regress.Regex("")


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not regex(pattern).find(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    judge: Any, patterns: dict[str, Any], value: Any, _: Any
) -> Iterator[ValidationError]:
    for pattern, below in patterns.items():
        for key, item in value.items() if isinstance(value, dict) else ():
            if regex(pattern).find(key):
                yield from judge.descend(item, below, path=key, schema_path=pattern)


def _additional_properties(
    judge: Any, below: Any, value: Any, of: dict[str, Any]
) -> Iterator[ValidationError]:
    patterns = [regex(pattern) for pattern in of.get("patternProperties", {})]
    for key, item in value.items() if isinstance(value, dict) else ():
        if key in of.get("properties", {}) or any(pattern.find(key) for pattern in patterns):
            continue
        if below is False:
            yield ValidationError(f"extraneous key [{key}] is not permitted")
        elif isinstance(below, dict):
            yield from judge.descend(item, below, path=key)


# CloudFormation reads "true" as a boolean and "3" as a number, and the other way round.
Judge: Any = extend(
    Draft7Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    },
    type_checker=Draft7Validator.TYPE_CHECKER.redefine_many(
        {"number": _is_number, "integer": _is_integer, "boolean": _is_boolean, "string": _is_string}
    ),
)


@cache
def types(region: str) -> dict[str, str]:
    """Resource types that a region has, each with the name of its schema's file."""
    return json.loads((SCHEMAS / "providers" / f"{region}.json").read_text(encoding="utf-8"))


@cache
def schema(region: str, resource_type: str) -> dict[str, Any]:
    return json.loads(
        (SCHEMAS / "resources" / f"{types(region)[resource_type]}.json").read_text(encoding="utf-8")
    )


def names(region: str, resource_type: str, key: str) -> list[str]:
    """Names of top-level properties that a list of the schema (`readOnlyProperties`) points at."""
    return [path.split("/")[2] for path in schema(region, resource_type).get(key, []) if path.count("/") == 2]


def attributes(region: str, resource_type: str) -> list[str]:
    """Attributes that Fn::GetAtt may ask for; a nested one is written with dots."""
    found = schema(region, resource_type).get("readOnlyProperties", [])
    return [path.removeprefix("/properties/").replace("/", ".") for path in found]


def judge(region: str, resource_type: str, properties: dict[str, Any]) -> None:
    """Refuses properties that the published schema of the type does not allow."""
    problems = sorted(
        f"#/{'/'.join(str(part) for part in error.absolute_path)}: {error.message[:200]}"
        for error in Judge(_without_formats(schema(region, resource_type))).iter_errors(properties)
    )
    read_only = set(names(region, resource_type, "readOnlyProperties")) & set(properties)
    problems += [f"#: Encountered unsupported property: [{name}] is read-only" for name in sorted(read_only)]
    if problems:
        raise ApiError("InvalidRequest", f"Properties validation failed: {'; '.join(problems[:5])}")


def _without_formats(of: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in of.items() if key not in ("readOnlyProperties", "handlers")}
