"""Conditions of facts, which are data: a few words over both values, sums of the service, and other changes.

A condition is a list in JSON, its operator first: `["<", "new", ["*", 1.1, "old"]]`. Operands are numbers,
texts and lists, `old` and `new` (the changed property), and paths below them: `new.StorageCapacity` of the
resource, `near-new.InstanceCount` of the list element that holds the property, `its-new.Version` of a
relative. What is not there, or is an intrinsic function, is unknown (None), and so is what follows from it: a
fact applies only where its condition is known to hold. `change_facts.json` lists the operators (`about.if`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from ultracluster.catalog.eks_calendar import kubernetes_support
from ultracluster.change.changes import MISSING, Steps
from ultracluster.change.template import Json, as_mapping
from ultracluster.rules.today import today

Relatives = Callable[[str], Iterable[tuple[Json, Json]]]
_VERSION: Final = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){1,3})(?:-.*)?")
_SIDE: Final = re.compile(r"((near-|its-)(old|new)\.|(old|new)(\.|$))")
_LONGEST_LIST: Final = 40


@dataclass(frozen=True, slots=True)
class Scope:
    """One change, the resource around it, and its relatives: all that a condition may ask about."""

    steps: Steps
    before: Any
    after: Any
    old: Json
    """Properties of the resource until now."""
    new: Json
    relatives: Relatives = field(default=lambda _: ())
    its_old: Json | None = None
    its_new: Json | None = None


def holds(condition: Any, scope: Scope) -> bool:
    """True where it is known to hold."""
    return value_of(condition, scope) is True


def value_of(term: Any, scope: Scope) -> Any:
    """The value of a condition or operand; None where it is unknown."""
    if isinstance(term, str):
        return _operand(term, scope)
    terms = cast("list[Any]", term) if isinstance(term, list) else []
    if not terms or terms[0] not in _NAMES:
        return cast("Any", term)
    name, *terms = terms
    if name in _LAZY:
        return _LAZY[name](terms, scope)
    values = [value_of(one, scope) for one in terms]
    return None if any(one is None for one in values) else _STRICT[name](*values)


def filled(text: str, values: Mapping[str, Any]) -> list[str]:
    """A text with the values of its `{names}`: one for each element of a list, none where one is unknown."""
    names = re.findall(r"\{([a-z]+)\}", text)
    if any(values.get(name) is None for name in names):
        return []
    listed = next((name for name in names if isinstance(values[name], list)), None)
    if listed is not None:
        return [one for item in values[listed] for one in filled(text, {**values, listed: item})]
    return [re.sub(r"\{([a-z]+)\}", lambda match: shown(values[match[1]]), text)]


def shown(value: Any) -> str:
    """A value in a sentence: `38400`, `1.36`."""
    return f"{value:g}" if isinstance(value, float) and value < 1e6 else _plain_text(value)


def _plain_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _operand(term: str, scope: Scope) -> Any:
    return _known(_found(term, scope)) if _SIDE.match(term) else term


def _found(term: str, scope: Scope) -> Any:
    """The value of an operand, as the template has it; missing where nothing is there."""
    side, _, path = term.partition(".")
    if not path:
        return scope.before if side == "old" else scope.after
    is_old = side.endswith("old")
    match side:
        case "old" | "new":
            return at(scope.old if is_old else scope.new, path)
        case "near-old" | "near-new":
            return at(_near(scope.old if is_old else scope.new, scope.steps), path)
        case _:
            return at((scope.its_old if is_old else scope.its_new) or {}, path)


def _known(value: Any) -> Any:
    """Plain text, a number, a switch or a list of such; None for all else."""
    if value is MISSING or isinstance(value, dict):
        return None
    if isinstance(value, list):
        found = [_known(one) for one in cast("list[Any]", value)]
        return None if any(one is None for one in found) else found
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def at(properties: Json, path: str) -> Any:
    """The value at a path of names; missing where nothing is."""
    value: Any = properties
    for name in path.split("."):
        mapping = as_mapping(value)
        if name not in mapping:
            return MISSING
        value = mapping[name]
    return value


def _near(properties: Json, steps: Steps) -> Json:
    """The innermost list element on the way to a property."""
    value: Any = properties
    element: Json = properties
    for step in steps:
        if not step.startswith("["):
            value = as_mapping(value).get(step)
            continue
        rows = [as_mapping(one) for one in cast("list[Any]", value)] if isinstance(value, list) else []
        value = element = next((row for row in rows if step[1:-1] in row.values()), as_mapping(None))
    return element


def _all(terms: list[Any], scope: Scope) -> bool | None:
    return _unless(False, terms, scope)


def _any(terms: list[Any], scope: Scope) -> bool | None:
    return _unless(True, terms, scope)


def _unless(decisive: bool, terms: list[Any], scope: Scope) -> bool | None:
    """The decisive value where one term has it; unknown where one is unknown."""
    found = [value_of(term, scope) for term in terms]
    if any(one is decisive for one in found):
        return decisive
    return None if any(one is None for one in found) else not decisive


def _default(terms: list[Any], scope: Scope) -> Any:
    """The operand, or what the service takes where the template says nothing of it."""
    return terms[1] if _absent(terms, scope) else value_of(terms[0], scope)


def _absent(terms: list[Any], scope: Scope) -> bool:
    return _found(terms[0], scope) is MISSING


def _changes(terms: list[Any], scope: Scope) -> bool:
    return any(at(scope.old, path) != at(scope.new, path) for path in terms)


def _changes_except(terms: list[Any], scope: Scope) -> bool:
    """True where a property other than these changes, whatever lies below it."""
    names = (scope.old.keys() | scope.new.keys()) - set(terms)
    return any(scope.old.get(name) != scope.new.get(name) for name in names)


def _relative(terms: list[Any], scope: Scope) -> bool:
    """True where a relative of a type is known to meet a condition."""
    kind, condition = terms
    pairs = scope.relatives(kind)
    return any(holds(condition, replace(scope, its_old=old, its_new=new)) for old, new in pairs)


def _compare(how: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def compared(one: Any, other: Any) -> bool | None:
        left, right = _figure(one), _figure(other)
        if left is not None and right is not None:
            return how(left, right)
        versions = _version(one), _version(other)
        return None if None in versions else how(*versions)

    return compared


def _figure(value: Any) -> float | None:
    """A number, or text of digits."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"\d{1,15}", value) else None
    return float(value) if isinstance(value, int | float) and abs(value) < 1e15 else None


def _version(value: Any) -> tuple[int, ...] | None:
    match = _VERSION.fullmatch(value) if isinstance(value, str) else None
    return tuple(map(int, match[1].split("."))) if match else None


def _same(one: Any, other: Any) -> bool:
    figures = _figure(one), _figure(other)
    return one == other if None in figures else figures[0] == figures[1]


def _is_in(value: Any, values: list[Any]) -> bool:
    return any(_same(value, one) for one in values)


def _arithmetic(how: Callable[[float, float], float]) -> Callable[[Any, Any], float | None]:
    def result(one: Any, other: Any) -> float | None:
        left, right = _figure(one), _figure(other)
        return None if left is None or right is None else how(left, right)

    return result


def _quotient(one: float, other: float) -> float:
    """Rounded down; of nothing by nothing, nothing."""
    return one // other if other else 0


def _minor(value: Any) -> int | None:
    version = _version(value)
    return version[1] if version else None


def _release(value: Any) -> str | None:
    """The first two numbers of a version: `8.4` of 8.4.10."""
    version = _version(value)
    return f"{version[0]}.{version[1]}" if version else None


def _above(value: Any, values: list[Any]) -> Any:
    """The first of rising values that is not below this one; the last where all are."""
    figure = _figure(value)
    return None if figure is None else next((one for one in values if one >= figure), values[-1])


def _multiple(value: Any, step: Any) -> bool | None:
    figures = _figure(value), _figure(step)
    if figures[0] is None or not figures[1]:
        return None
    return figures[0] % figures[1] == 0


def _row(key: Any, rows: Mapping[str, Any]) -> Any:
    """The row of a table; None where it has none."""
    return rows.get(_plain_text(key)) if isinstance(key, str | int | float) else None


def _ladder(value: Any, rungs: list[list[Any]]) -> Any:
    """The value of the last rung at or below the figure."""
    figure = _figure(value)
    reached = [what for least, what in rungs if figure is not None and figure >= least]
    return reached[-1] if reached else None


def _between(one: Any, other: Any) -> list[str] | None:
    """The releases from the one after the first to the second: 1.33 and 1.36 have 1.34, 1.35 and 1.36."""
    first, last = _version(one), _version(other)
    if first is None or last is None or first[0] != last[0] or last[1] - first[1] > _LONGEST_LIST:
        return None
    return [f"{first[0]}.{minor}" for minor in range(first[1] + 1, last[1] + 1)] or None


def _route(one: Any, other: Any, ways: Mapping[str, list[str]]) -> list[str] | None:
    """The fewest releases that lead from one to another, without the first."""
    routes: list[list[str]] = [[str(one)]]
    seen = {str(one)}
    for route in routes:  # grows
        for release in ways.get(route[-1], ()):
            if release == other:
                return [*route, release][1:]
            if release not in seen:
                seen.add(release)
                routes.append([*route, release])
    return None


def _phase(release: Any) -> str | None:
    """The support in which EKS has a Kubernetes release today."""
    support = kubernetes_support(release) if isinstance(release, str) else None
    return support.phase(today()) if support else None


def _lacks(whole: Any, part: Any) -> bool | None:
    """True where elements of the second list are not in the first."""
    if not isinstance(whole, list) or not isinstance(part, list):
        return None
    return any(one not in whole for one in cast("list[Any]", part))


_LAZY: Final[Mapping[str, Callable[[list[Any], Scope], Any]]] = {
    "all": _all,
    "any": _any,
    "default": _default,
    "absent": _absent,
    "changes": _changes,
    "changes-except": _changes_except,
    "relative": _relative,
}
_STRICT: Final[Mapping[str, Any]] = {
    "not": operator.not_,
    "<": _compare(operator.lt),
    "<=": _compare(operator.le),
    ">": _compare(operator.gt),
    ">=": _compare(operator.ge),
    "=": _same,
    "in": _is_in,
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "//": _arithmetic(_quotient),
    "minor": _minor,
    "release": _release,
    "above": _above,
    "multiple": _multiple,
    "row": _row,
    "ladder": _ladder,
    "between": _between,
    "route": _route,
    "support": _phase,
    "lacks": _lacks,
}
_NAMES: Final = (*_LAZY, *_STRICT)
"""Operators; a list that begins with anything else is a list."""


def terms_of(condition: Any) -> Iterator[Any]:
    """Every term of a condition, itself first: what a test needs to make cases of it."""
    yield condition
    if isinstance(condition, list):
        for term in cast("list[Any]", condition)[1:]:
            yield from terms_of(term)
