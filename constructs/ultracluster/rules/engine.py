"""Rules: what AWS would refuse, or silently get wrong. One small function per rule.

A rule is a generator that yields a `Breach` for each thing that is wrong. It may assume that the *shape* of
the environment is right and that other rules report their own subject: a rule that cannot judge (an unknown
instance type, a network that does not parse) yields nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ultracluster.config import Environment, Finding, Loaded
from ultracluster.config.findings import Path, Severity, dotted
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.remedy import Remedy, drop, inside

Check = Callable[[Environment], Iterator["Breach"]]


@dataclass(frozen=True, slots=True)
class Breach:
    """One place where a rule is broken: where, what and why, and what mends it (relative to `path`)."""

    path: Path
    message: str
    remedy: Remedy

    @property
    def instead(self) -> str:
        """The remedy in words."""
        return self.remedy.placed(self.path).text(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of AWS and where AWS says so."""

    id: str
    severity: Severity
    title: str
    source: str
    date: str
    """When the source was read, `yyyy-mm-dd`."""
    check: Check
    by_hand: str = ""
    """A command that shows the same thing in an account."""
    kinds: frozenset[OrchestratorKind] | None = None
    """Orchestrators that it is about; None is all of them."""
    settles: bool = False
    """What it warns of may end without a change of the file, as by a lock: an acknowledgement of it is never
    out of date."""

    def applies(self, environment: Environment) -> bool:
        return self.kinds is None or environment.orchestrator.kind in self.kinds


class RuleSet:
    """The rules of one subject, in the order of their definition."""

    def __init__(
        self, prefix: str, subject: str, *, kinds: frozenset[OrchestratorKind] | None = None
    ) -> None:
        """Make an empty set.

        Args:
            prefix: of the rules' ids.
            subject: heads the set in docs/rules.md.
            kinds: orchestrators that the rules are about; None is all of them.
        """
        self.prefix = prefix
        self.subject = subject
        self.kinds = kinds
        self.rules: list[Rule] = []

    def rule(
        self,
        number: int,
        severity: Severity,
        title: str,
        *,
        source: str,
        date: str = "2026-11-20",
        by_hand: str = "",
        kinds: frozenset[OrchestratorKind] | None = None,
        settles: bool = False,
    ) -> Callable[[Check], Check]:
        """Add the decorated check as `<prefix><number>`.

        Args:
            title: the rule as a statement of what must hold; it heads its entry in docs/rules.md.
            source: the page, model or thread in which AWS (or a measurement) says so.
            date: the day on which the source was read.
            by_hand: a command with which the same thing can be seen in an account.
            kinds: orchestrators that it is about, where those of the set are too many.
            settles: what it warns of may end without a change of the file.
        """

        def add(check: Check) -> Check:
            self.rules.append(
                Rule(
                    id=f"{self.prefix}{number:03d}",
                    severity=severity,
                    title=title,
                    source=source,
                    date=date,
                    check=check,
                    by_hand=by_hand,
                    kinds=self.kinds if kinds is None else kinds,
                    settles=settles,
                )
            )
            return check

        return add

    def include(self, *parts: RuleSet) -> None:
        """Add the rules of modules that each hold a part of this set, and order all by number."""
        for part in parts:
            self.rules += part.rules
        self.rules.sort(key=lambda rule: rule.id)


def run(rules: Iterable[Rule], loaded: Loaded) -> list[Finding]:
    """Every broken rule, with its place in the file; acknowledged warnings are marked, not dropped."""
    environment, source = loaded.environment, loaded.source
    findings: list[Finding] = []
    for rule in rules:
        if not rule.applies(environment):
            continue
        for breach in rule.check(environment):
            findings.append(
                Finding(
                    code=rule.id,
                    severity=rule.severity,
                    path=breach.path,
                    remedy=breach.remedy.placed(breach.path),
                    message=breach.message,
                    location=source.locate(breach.path),
                )
            )
    return _acknowledged(findings, loaded, {rule.id: rule for rule in rules})


def _acknowledged(findings: list[Finding], loaded: Loaded, rules: dict[str, Rule]) -> list[Finding]:
    result = list(findings)
    # where something is wrong, a rule may be silent because it could not judge
    wrong = any(finding.severity == "error" for finding in findings)
    for index, entry in enumerate(loaded.environment.acknowledge):
        path: Path = ("acknowledge", index)
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
        elif rules[entry.rule].severity == "error":
            problem = f"{entry.rule} is an error: AWS refuses it or data is lost, so it cannot be silenced."
            remedy = drop().noting("mend what it reports")
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
            result[number] = replace(result[number], acknowledged=entry.reason)
    return result


def _may_be_meant(rule: str, findings: list[Finding], rules: dict[str, Rule]) -> bool:
    """Whether it is a warning that speaks here: another rule would be no better than the unknown one."""
    return rules[rule].severity == "warning" and any(finding.code == rule for finding in findings)


def _covers(at: str | None, finding: Finding) -> bool:
    if at is None:
        return True
    place = dotted(finding.path)
    return place == at or place.startswith((f"{at}.", f"{at}["))
