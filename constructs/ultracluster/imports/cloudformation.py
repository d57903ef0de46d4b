"""A template of CloudFormation that makes a HyperPod cluster: its `AWS::SageMaker::Cluster` with parameters
in place, which has the keys of CreateCluster (names by the resource's schema)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ultracluster.imports.ledger import Row, Wrong

CLUSTER = "AWS::SageMaker::Cluster"
_VARIABLE = re.compile(r"\$\{([^!}][^}]*)\}")
_REGION = "AWS::Region"


class _Unknown:
    """A value that exists only after a deploy."""


_UNKNOWN = _Unknown()


@dataclass(slots=True)
class Resolved:
    """A template's cluster as a request."""

    request: dict[str, Any]
    """Keys of CreateCluster, without what exists only after a deploy."""
    rows: list[Row] = field(default_factory=list[Row])
    wrong: list[Wrong] = field(default_factory=list[Wrong])


def clusters(template: Mapping[str, Any]) -> list[str]:
    """Logical ids of the HyperPod clusters that a template makes."""
    return [
        name
        for name, one in _mapping(template.get("Resources")).items()
        if _mapping(one).get("Type") == CLUSTER
    ]


def resolved(template: Mapping[str, Any], name: str, given: Mapping[str, Any], region: str) -> Resolved:
    """A cluster of a template.

    Args:
        name: its logical id.
        given: parameters that the stack has, by name; those without one have the template's default.
        region: where it is deployed; empty where nobody says it.
    """
    found = Resolved({})
    parameters = _mapping(template.get("Parameters"))
    walk = _Walk(template, parameters, given, region, found)
    for other in sorted(set(given) - set(parameters)):
        found.rows.append(_row(other, "the template has no such parameter", "look whether it is of this one"))
    place = f"Resources.{name}.Properties"
    properties = _mapping(_mapping(template["Resources"][name]).get("Properties"))
    found.request = cast("dict[str, Any]", walk.value(properties, place))
    return found


@dataclass(slots=True)
class _Walk:
    """Functions of CloudFormation, as far as a file says what they answer."""

    template: Mapping[str, Any]
    parameters: Mapping[str, Any]
    given: Mapping[str, Any]
    region: str
    found: Resolved

    def value(self, value: Any, place: str) -> Any:
        if isinstance(value, list):
            items = (self.value(one, f"{place}[{n}]") for n, one in enumerate(cast("list[Any]", value)))
            return [item for item in items if item is not _UNKNOWN]
        if not isinstance(value, Mapping):
            return value
        mapping = cast("Mapping[str, Any]", value)
        if len(mapping) == 1:
            name, argument = next(iter(mapping.items()))
            if name in ("Ref", "Condition") or name.startswith("Fn::"):
                answer = self._function(name, argument, place)
                if answer is _UNKNOWN:
                    why = f"{name} is answered only when the stack is deployed"
                    self.found.rows.append(_row(place, why, "see the running cluster: --cluster NAME"))
                return answer
        found = {key: self.value(one, f"{place}.{key}") for key, one in mapping.items()}
        return {key: one for key, one in found.items() if one is not _UNKNOWN}

    def _function(self, name: str, argument: Any, place: str) -> Any:
        parts = _parts(argument)
        match name, parts:
            case "Ref", (str(other),):
                return self._reference(other, place)
            case "Fn::Sub", (str(text), *own):
                return self._text(text, _mapping(own[0] if own else {}), place)
            case "Fn::If", (str(condition), yes, no):
                chosen = self._condition({"Condition": condition}, place)
                return _UNKNOWN if chosen is None else self.value(yes if chosen else no, place)
            case "Fn::Join", (str(between), words):
                texts = self._list(words, place)
                return _UNKNOWN if texts is None else between.join(map(str, texts))
            case "Fn::Split", (str(between), text):
                word = self.value(text, place)
                return word.split(between) if isinstance(word, str) else _UNKNOWN
            case "Fn::Select", (number, items):
                known = self._list(items, place) or []
                at = int(number) if str(number).isdigit() else len(known)
                return known[at] if at < len(known) else _UNKNOWN
            case "Fn::FindInMap", (_, _, _):
                table: Any = self.template.get("Mappings")
                for word in (self.value(part, place) for part in parts):
                    table = _mapping(table).get(str(word))
                return _UNKNOWN if table is None else table
            case _:
                return _UNKNOWN

    def _list(self, items: Any, place: str) -> list[Any] | None:
        """A list of which everything is known; None of others."""
        found = self.value(items, place)
        whole = isinstance(found, list) and (
            not isinstance(items, list) or len(_parts(items)) == len(_parts(found))
        )
        return list(_parts(found)) if whole else None

    def _reference(self, name: str, place: str) -> Any:
        if name == _REGION and self.region:
            return self.region
        if name == "AWS::NoValue":
            return None
        if name not in self.parameters:
            return _UNKNOWN
        declared = _mapping(self.parameters[name])
        value = self.given.get(name, declared.get("Default"))
        if value is None:
            instead = "give the stack's parameters as a second file (`aws cloudformation describe-stacks`)"
            wrong = Wrong(
                where=place, message=f"needs the parameter {name}, which has no default", instead=instead
            )
            self.found.wrong.append(wrong)
            return _UNKNOWN
        listed = str(declared.get("Type", "")).startswith(("CommaDelimitedList", "List<"))
        return [word.strip() for word in value.split(",")] if listed and isinstance(value, str) else value

    def _text(self, text: str, own: Mapping[str, Any], place: str) -> Any:
        values: dict[str, Any] = {}
        for name in _VARIABLE.findall(text):
            values[name] = self.value(own[name], place) if name in own else self._reference(name, place)
            if not isinstance(values[name], str | int | float):
                return _UNKNOWN
        return _VARIABLE.sub(lambda match: str(values[match[1]]), text).replace("${!", "${")

    def _condition(self, asked: Any, place: str) -> bool | None:
        """Return whether a condition holds; None where only a deploy answers it."""
        name, argument = next(iter(_mapping(asked).items()), ("", None))
        parts = _parts(argument)
        match name, parts:
            case "Condition", (str(other),):
                return self._condition(_mapping(self.template.get("Conditions")).get(other), place)
            case "Fn::Equals", (one, other):
                both = (self.value(one, place), self.value(other, place))
                return None if _UNKNOWN in both else str(both[0]).lower() == str(both[1]).lower()
            case "Fn::Not", (one,):
                answer = self._condition(one, place)
                return None if answer is None else not answer
            case (("Fn::And" | "Fn::Or"), [*several]):
                answers = [self._condition(one, place) for one in several]
                decides = name == "Fn::Or"
                return decides if decides in answers else None if None in answers else not decides
            case _:
                return None


def _row(where: str, why: str, todo: str) -> Row:
    return Row(outcome="left out", where=where, why=why, todo=todo)


def _parts(argument: Any) -> tuple[Any, ...]:
    """Arguments of a function: a list of them, or one alone."""
    return tuple(cast("list[Any]", argument)) if isinstance(argument, list) else (argument,)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
