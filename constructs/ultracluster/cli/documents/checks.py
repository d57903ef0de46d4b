"""Documents of what checks an environment: findings, rules, preflight, and every command's refusal."""

from __future__ import annotations

from typing import Literal, TypedDict

from ultracluster.account.quotas.requests import Request
from ultracluster.config.findings import Finding, Severity


class Refusal(TypedDict):
    message: str
    """What standard error says, too."""
    exit_code: int
    findings: list[Finding]
    """Empty unless an environment file is what is wrong."""


class ValidatedFile(TypedDict):
    """One environment."""

    environment: str
    """As it was asked for."""
    errors: int
    warnings: int
    """Without those that are acknowledged."""
    acknowledged: int
    findings: list[Finding]


class Validation(TypedDict):
    environments: list[ValidatedFile]


class RuleRow(TypedDict):
    """One rule, with the example that breaks it."""

    id: str
    severity: Severity
    orchestrators: list[str] | None
    """Null: every one."""
    title: str
    source: str
    date: str
    by_hand: str | None
    """A command that asks AWS about it."""
    bad: str
    """Lines of YAML."""
    good: str
    says: str
    instead: str


class RuleList(TypedDict):
    rules: list[RuleRow]


class QuotaRow(TypedDict):
    """A service quota."""

    service: str
    code: str | None
    value: float | None
    applied: bool | None
    """Whether it is the account's own, not AWS's default."""
    used: float | None
    needed: float
    unit: str


class CheckRow(TypedDict):
    """One question and its answer."""

    what: str
    level: Literal["red", "yellow", "green", "unknown"]
    """`unknown`: it could not be asked, or AWS does not tell."""
    found: str
    do: str | None


class QuotaCheckRow(CheckRow, total=False):
    quota: QuotaRow
    """Where the question is about one."""


class PreflightReport(TypedDict):
    environment: str
    region: str
    level: Literal["red", "yellow", "green", "unknown"]
    """The worst of all rows."""
    strict: bool
    exit_code: int
    not_asked: list[str]
    """Questions whose call failed, as `section: what`; with --strict they are exit code 3."""
    sections: dict[str, list[QuotaCheckRow]]


class Preflight(PreflightReport, total=False):
    requests: list[Request]
    """With --request-quotas."""
    business_case: list[str]
    """With --request-quotas: the text for AWS and the lead time; empty where instances have quota enough."""
