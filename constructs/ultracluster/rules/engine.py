"""Rules: what AWS would refuse, or silently get wrong. One small function per rule.

A rule is a generator. Its docstring begins with its title: what must hold. It takes what it judges (a Lustre
file system, a node group, a network; the whole cluster where it must) and yields a `Breach` for each thing
that is wrong, with its place in that part. The engine finds the parts of a file, and adds paths, lines and
carets. A rule may assume that the *shape* of the part is right and that other rules report their own
subject: a rule that cannot judge (an unknown instance type, a network that does not parse) yields nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import getdoc
from types import FunctionType
from typing import Any, TypedDict, Unpack, cast, get_type_hints

from ultracluster.config import Finding, Loaded
from ultracluster.config.findings import Severity, YamlPath, dotted
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.remedy import Remedy, drop, inside
from ultracluster.model import resolve
from ultracluster.rules.deployed import for_deployed, is_deployed
from ultracluster.rules.parts import parts_of


@dataclass(frozen=True, slots=True)
class Breach:
    """One place where a rule is broken: where, what and why, and how to fix it (relative to `path`)."""

    path: YamlPath
    """From the part that the rule takes."""
    message: str
    remedy: Remedy

    @property
    def instead(self) -> str:
        """The remedy in words."""
        return self.remedy.placed(self.path).text(self.path)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the part that a rule takes."""

    path: YamlPath

    def breach(self, message: str, remedy: Remedy) -> Breach:
        """Return a breach of the rule here."""
        return Breach(self.path, message, remedy)


def at(*path: str | int) -> Place:
    """Return the place at some keys of the part that a rule takes; the part itself without any."""
    return Place(path)


Breaches = Iterator[Breach]
Check = Callable[..., Breaches]
"""Takes the part that it judges, and what else it must know: see `Rule.takes`."""
_Decorator = Callable[[Check], Check]
_READ = "2026-11-20"
"""The day on which sources without a day of their own were read."""


class Scope(TypedDict, total=False):
    """Optional properties of a rule."""

    by_hand: str
    """A command that shows the same thing in an account."""
    kinds: frozenset[OrchestratorKind] | None
    """Orchestrators that it is about, where those of its set are too many."""
    settles: bool
    """The cause of the warning may end without a change of the file, as by a lock: an acknowledgement of it
    is never out of date."""
    until_acknowledged: bool
    """An acknowledgement turns the error into a warning: AWS would accept it, and only its user knows whether
    it is intended."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of AWS and its source; `Scope` describes the other properties."""

    id: str
    severity: Severity
    title: str
    source: str
    date: str
    """When the source was read, `yyyy-mm-dd`."""
    check: Check
    by_hand: str = ""
    kinds: frozenset[OrchestratorKind] | None = None
    """Orchestrators that it is about; None is all of them."""
    settles: bool = False
    until_acknowledged: bool = False

    @cached_property
    def takes(self) -> tuple[Any, ...]:
        """Types of the arguments of `check`: first the part that it judges, then what it must know besides:
        the one of an environment, or of several the nearest to the part. `X | None` is None where there is
        none."""
        check = cast("FunctionType", self.check)
        parameters = check.__code__.co_varnames[: check.__code__.co_argcount]
        hints, types = check.__annotations__, check.__globals__
        if any(hints[name] not in types for name in parameters):
            evaluated = get_type_hints(check)
            return tuple(evaluated[name] for name in parameters)
        return tuple(types[hints[name]] for name in parameters)  # most: without evaluating 300 texts

    def applies(self, kind: OrchestratorKind | None) -> bool:
        """Whether it is about this orchestrator; of an unknown one, whether it is about all."""
        return self.kinds is None or kind in self.kinds


class RuleSet:
    """The rules of one subject, in the order of their numbers."""

    def __init__(
        self,
        prefix: str,
        subject: str,
        *,
        kinds: frozenset[OrchestratorKind] | None = None,
        retired: Mapping[int, str] | None = None,
    ) -> None:
        """Make an empty set.

        Args:
            prefix: of the rules' ids.
            subject: heads the set in docs/rules.md.
            kinds: orchestrators that the rules are about; None is all of them.
            retired: numbers of rules that are gone, each with why; no rule gets them again.
        """
        self.prefix = prefix
        self.subject = subject
        self.kinds = kinds
        self.retired = dict(retired or {})
        self._rules: dict[str, Rule] = {}

    @property
    def rules(self) -> list[Rule]:
        return [rule for _, rule in sorted(self._rules.items())]

    @property
    def next_number(self) -> int:
        """The number of the next rule. Numbers are public and never used twice: gaps stay gaps."""
        used = [int(rule_id.removeprefix(self.prefix)) for rule_id in self._rules]
        return 1 + max((*used, *self.retired), default=0)

    def error(self, number: int, source: str, date: str = _READ, **rest: Unpack[Scope]) -> _Decorator:
        """Add the decorated check as the error `<prefix><number>`.

        Args:
            number: `ultracluster rules --next` prints it.
            source: the page, model or thread in which AWS (or a measurement) says so.
            date: the day on which the source was read.
            rest: see `Scope`.

        Raises:
            ValueError: the number is taken, or was that of a retired rule.
        """
        return lambda check: self.add(number, "error", title_of(check), source, date, check, **rest)

    def warning(self, number: int, source: str, date: str = _READ, **rest: Unpack[Scope]) -> _Decorator:
        """Add the decorated check as the warning `<prefix><number>`: see `error`."""
        return lambda check: self.add(number, "warning", title_of(check), source, date, check, **rest)

    def add(
        self,
        number: int,
        severity: Severity,
        title: str,
        source: str,
        date: str,
        check: Check,
        **rest: Unpack[Scope],
    ) -> Check:
        """Add a check that is made of data."""
        rest.setdefault("kinds", self.kinds)
        rule = Rule(
            id=f"{self.prefix}{number:03d}",
            severity=severity,
            title=title,
            source=source,
            date=date,
            check=check,
            **rest,
        )
        if rule.id in self._rules:
            raise ValueError(f"{rule.id} is taken; the next number of {self.prefix} is {self.next_number}")
        if number in self.retired:
            raise ValueError(f"{rule.id} is retired ({self.retired[number]}): take {self.next_number}")
        self._rules[rule.id] = rule
        return check


def title_of(check: Check) -> str:
    """Return the first paragraph of a check's docstring: its rule as a statement of what must hold."""
    title = (getdoc(check) or "").partition("\n\n")[0]
    return " ".join(title.split()).removesuffix(".")


def run(rules: Iterable[Rule], loaded: Loaded) -> list[Finding]:
    """Every broken rule, with its place in the file; acknowledged warnings are marked, not dropped."""
    rules = list(rules)
    cluster = resolve(loaded.environment)
    findings = [
        replace(finding, location=loaded.source.locate(finding.path))
        for finding in judge(rules, tuple(parts_of(cluster)), kind=cluster.traits.kind)
    ]
    if is_deployed():
        findings = [for_deployed(finding, cluster) for finding in findings]
    return _acknowledged(findings, loaded, {rule.id: rule for rule in rules})


def judge(
    rules: Iterable[Rule],
    parts: Sequence[tuple[YamlPath, object]],
    besides: Sequence[tuple[YamlPath, object]] = (),
    *,
    kind: OrchestratorKind | None,
) -> Iterator[Finding]:
    """What the rules find in some parts of an environment, with paths and without lines.

    A rule speaks where there is a part that it takes and everything that it must know next to it, among
    `parts` or among `besides`, which are not judged themselves.
    """
    chosen: dict[Any, list[tuple[YamlPath, object]]] = {}
    known: dict[Any, list[tuple[YamlPath, object]]] = {}

    def of(kind_of_part: Any) -> list[tuple[YamlPath, object]]:
        if kind_of_part not in chosen:
            chosen[kind_of_part] = [(path, part) for path, part in parts if isinstance(part, kind_of_part)]
        return chosen[kind_of_part]

    def known_of(kind_of_part: Any) -> list[tuple[YamlPath, object]]:
        if kind_of_part not in known:
            further = [(path, part) for path, part in besides if isinstance(part, kind_of_part)]
            known[kind_of_part] = [*of(kind_of_part), *further]
        return known[kind_of_part]

    for rule in rules:
        if not rule.applies(kind):
            continue
        part_type, *needed = rule.takes
        there = [known_of(one) for one in needed]
        if all(parts or isinstance(None, one) for parts, one in zip(there, needed, strict=True)):
            for path, part in of(part_type):
                for breach in rule.check(part, *(_nearest(path, parts) for parts in there)):
                    place = (*path, *breach.path)
                    yield Finding(
                        code=rule.id,
                        severity=rule.severity,
                        path=place,
                        remedy=breach.remedy.placed(place),
                        message=breach.message,
                    )


def _nearest(path: YamlPath, there: Sequence[tuple[YamlPath, object]]) -> object:
    """Of several parts of a kind, as Lustre file systems, the one at the same place, else one that holds it,
    else the first; None of none."""
    if len(there) < 2:
        return there[0][1] if there else None
    holding = [(len(place), part) for place, part in there if path[: len(place)] == place]
    longest = max((length for length, _ in holding), default=None)
    return next((part for length, part in holding if length == longest), there[0][1])


def _acknowledged(findings: list[Finding], loaded: Loaded, rules: dict[str, Rule]) -> list[Finding]:
    result = list(findings)
    # where something is wrong, a rule may be silent because it could not judge
    named = {rule.id for rule in rules.values() if rule.until_acknowledged}
    wrong = any(finding.severity == "error" and finding.code not in named for finding in findings)
    for index, entry in enumerate(loaded.environment.acknowledge):
        path: YamlPath = ("acknowledge", index)
        hits = [
            number
            for number, finding in enumerate(findings)
            if finding.code == entry.rule and _covers(entry.at, finding)
        ]
        problem, remedy = "", drop()
        code: str = "ACK001"
        severity: Severity = "error"
        if entry.rule not in rules:
            problem = f"there is no rule {entry.rule}."
            near = difflib.get_close_matches(entry.rule, list(rules), n=1)
            remedy = inside(rule=near[0]) if near and _may_be_meant(near[0], findings, rules) else remedy
            remedy = remedy.noting("docs/rules.md lists the rules")
        elif rules[entry.rule].severity == "error" and entry.rule not in named:
            problem = f"{entry.rule} is an error: AWS refuses it or data is lost, so it cannot be silenced."
            remedy = drop().noting("fix the problem that it reports")
        elif not hits and not rules[entry.rule].settles and not wrong:
            where = f" at `{entry.at}`" if entry.at else ""
            code, severity = "ACK002", "warning"
            problem = f"{entry.rule} finds nothing{where}: this acknowledgement is out of date."
        if problem:
            result.append(
                Finding(
                    code=code,
                    severity=severity,
                    path=path,
                    message=problem,
                    remedy=remedy.placed(path),
                    location=loaded.source.locate(path),
                )
            )
            continue
        for number in hits:
            result[number] = replace(result[number], severity="warning", acknowledged=entry.reason)
    return result


def _may_be_meant(rule: str, findings: list[Finding], rules: dict[str, Rule]) -> bool:
    """Whether it is a warning that speaks here: another rule would be no better than the unknown one."""
    silent = rules[rule].severity == "warning" or rules[rule].until_acknowledged
    return silent and any(finding.code == rule for finding in findings)


def _covers(at: str | None, finding: Finding) -> bool:
    if at is None:
        return True
    place = dotted(finding.path)
    return place == at or place.startswith((f"{at}.", f"{at}["))
