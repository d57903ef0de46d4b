"""Whether the parts of a release fit together, by the sourced constraints.

What is not known is never a breach: a fact that a release does not state leaves a constraint undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ultracluster.software.constraints import Condition, Constraint, InstanceConstraint, constraints
from ultracluster.software.lock import Component, Release
from ultracluster.software.versions import Version

State = Literal["satisfied", "broken", "unknown", "not-applicable"]
Fact = str | frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One constraint on one release."""

    constraint: Constraint | InstanceConstraint
    state: State
    detail: str
    """What was found and what was wanted; of an undecided one, what is not known."""

    @property
    def blocks(self) -> bool:
        return self.state == "broken" and self.constraint.severity == "error"

    @property
    def refuses_type(self) -> bool:
        """True where a release cannot be used on an instance type: AWS's recommendations are warnings."""
        row = self.constraint
        return self.blocks and not (isinstance(row, InstanceConstraint) and row.recommended)


def solve(release: Release) -> list[Verdict]:
    """The verdict of every constraint, in the order of their ids."""
    return [_verdict(release, constraint) for constraint in constraints().constraints]


def breaches(release: Release) -> list[Verdict]:
    """The constraints that a release breaks, errors first."""
    broken = [verdict for verdict in solve(release) if verdict.state == "broken"]
    return sorted(broken, key=lambda verdict: not verdict.blocks)


def instance_rows(accelerator: str, instance_type: str) -> list[InstanceConstraint]:
    """Return what is required of an accelerator ("B200"), and of the family of a type."""
    family = instance_type.partition(".")[0]
    return [
        row
        for row in constraints().instances
        if accelerator in row.accelerators
        and (not row.families or family in row.families)
        and (not row.types or instance_type in row.types)
    ]


def instance_breaches(release: Release, accelerator: str, instance_type: str = "") -> list[Verdict]:
    """Return what an instance type requires and the release does not have."""
    return _broken(release, instance_rows(accelerator, instance_type))


def every_instance_breach(release: Release) -> list[Verdict]:
    """Return the same for every instance type, in the order of the ids."""
    return _broken(release, constraints().instances)


def _broken(release: Release, rows: Iterable[InstanceConstraint]) -> list[Verdict]:
    answers = [(row, *_all(release, row.require)) for row in rows]
    return [Verdict(row, state, detail) for row, state, detail in answers if state == "broken"]


def _verdict(release: Release, constraint: Constraint) -> Verdict:
    states: list[tuple[State, str]] = []
    for case in constraint.cases:
        if all(_holds(release, condition) is True for condition in case.when):
            states.append(_all(release, case.require))
    for state in ("broken", "unknown", "satisfied"):
        details = [detail for level, detail in states if level == state]
        if details:
            return Verdict(constraint, state, "; ".join(dict.fromkeys(details)))
    return Verdict(constraint, "not-applicable", "nothing in this release asks for it")


def _all(release: Release, required: Sequence[Condition]) -> tuple[State, str]:
    answers = [(_holds(release, condition), condition) for condition in required]
    missed: tuple[tuple[bool | None, State], ...] = ((False, "broken"), (None, "unknown"))
    for answer, state in missed:
        hits = [condition for holds, condition in answers if holds is answer]
        if hits:
            return state, "; ".join(_in_words(release, condition) for condition in hits)
    return "satisfied", "; ".join(_in_words(release, condition) for condition in required)


def _holds(release: Release, condition: Condition) -> bool | None:
    """True, False, or None if a fact is not known."""
    if condition.op in ("present", "absent"):
        has_fact = _fact(release, condition.fact) is not None
        return has_fact if condition.op == "present" else not has_fact
    fact = _fact(release, condition.fact)
    limits = [_resolved(release, value) for value in _values(condition)]
    if fact is None or any(value is None for value in limits):
        return None
    values = [value for value in limits if isinstance(value, str)]
    if isinstance(fact, frozenset):
        return not fact.intersection(values) if condition.op == "lacks" else None
    match condition.op:
        case "in":
            return any(_same(fact, value) for value in values)
        case "covers":
            return _covered(fact, values[0])
        case "==":
            return _same(fact, values[0])
        case _:
            return _compares(fact, condition.op, values[0])


def _compares(fact: str, op: str, limit: str) -> bool | None:
    try:
        left, right = Version(fact), Version(limit)
    except ValueError:
        return None
    match op:
        case ">=":
            return left >= right
        case ">":
            return left > right
        case "<=":
            return left <= right or left.within(right)
        case "<":
            return left < right
        case "within":
            return left.within(right)
        case _:
            return None


def _same(fact: str, limit: str) -> bool:
    """Equal as versions where both are, else as texts (a file name, a kind)."""
    if fact == limit:
        return True
    if not fact[:1].isdigit() or not limit[:1].isdigit():
        return False
    return Version(fact) == Version(limit)


def _covered(fact: str, allowed: str) -> bool | None:
    """Return whether every range `low..high` of `fact` is in one of `allowed`; an end covers its series."""
    try:
        ours, theirs = list(_ranges(fact)), list(_ranges(allowed))
    except ValueError:
        return None
    return all(any(low >= a and (high <= b or high.within(b)) for a, b in theirs) for low, high in ours)


def _ranges(text: str) -> Iterator[tuple[Version, Version]]:
    for part in text.split():
        low, _, high = part.partition("..")
        yield Version(low), Version(high or low)


def _values(condition: Condition) -> Sequence[str]:
    return (condition.value,) if isinstance(condition.value, str) else condition.value


def _resolved(release: Release, value: str) -> Fact:
    return _fact(release, value[1:]) if value.startswith("@") else value


def _fact(release: Release, name: str) -> Fact:
    for separator in ":@":
        component, has_separator, key = name.partition(separator)
        if has_separator:
            part = _component(release, component)
            if part is None:
                return None
            return part.provides.get(key) if separator == ":" else _field(part, key)
    part = _component(release, name)
    return part.version if part else None


def _component(release: Release, name: str) -> Component | None:
    return next((part for component, part in release.components.items() if component == name), None)


def _field(component: Component, key: str) -> Fact:
    match key:
        case "os":
            return frozenset(component.systems) or None
        case "install_path":
            return component.install_path
        case "kind":
            return component.kind
        case _:
            return None


def _in_words(release: Release, condition: Condition) -> str:
    fact = _fact(release, condition.fact)
    name = condition.fact.replace(":", " provides ").replace("@", " ")
    if condition.op in ("present", "absent"):
        return f"{name} must be {condition.op}"
    shown = ", ".join(sorted(fact)) if isinstance(fact, frozenset) else fact or "not known"
    values = [str(_resolved(release, value) or "not known") for value in _values(condition)]
    required = " or ".join(values)
    words = {
        "==": required,
        "in": required,
        "within": f"a {required}",
        "lacks": f"without {required}",
        "covers": f"within {required}",
    }
    return f"{name} is {shown} and must be {words.get(condition.op, f'{condition.op} {required}')}"
