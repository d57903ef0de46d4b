"""Documents of what checks an environment: findings, rules, preflight, and every command's refusal."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ultracluster.config.findings import Severity


class ChangeRow(TypedDict, total=False):
    """One change of a file: a value written, a key removed or renamed."""

    path: list[str | int]
    """Keys and positions from the top of the file."""
    value: Any
    remove: bool
    rename: str


class RemedyRow(TypedDict):
    """What mends a finding."""

    options: list[list[ChangeRow]]
    """Each a set of changes that mends it."""
    lacking: Literal["decision", "fact", "action"] | None
    """Why there is no option: only a person can choose, a value is needed that only the user knows, or
    something is to be done outside the file."""
    note: str | None


class FindingRow(TypedDict):
    """One thing that is wrong with an environment."""

    code: str
    """Id of the rule; `ultracluster rules CODE` has it in full."""
    severity: Severity
    path: str
    """`node_groups.train.mounts[0]`."""
    message: str
    instead: str
    """The remedy in words; empty without."""
    remedy: RemedyRow
    file: str | None
    line: int | None
    """From 1."""
    column: int | None
    """From 1, in characters."""
    acknowledged: str | None
    """The reason for which the warning is accepted."""


class Refusal(TypedDict):
    message: str
    """What standard error says, too."""
    exit_code: int
    findings: list[FindingRow]
    """Empty unless an environment file is what is wrong."""


class ValidatedFile(TypedDict):
    """One environment."""

    environment: str
    """As it was asked for."""
    errors: int
    warnings: int
    """Without those that are acknowledged."""
    acknowledged: int
    findings: list[FindingRow]


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


class QuotaRequest(TypedDict):
    """An increase of a quota."""

    service: str
    code: str
    quota: str
    current: float
    asked: float
    state: str
    status: str | None
    why: str | None
    id: str | None
    when: str | None
    """ISO 8601."""


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
    requests: list[QuotaRequest]
    """With --request-quotas."""
    business_case: list[str]
    """With --request-quotas: the text for AWS and the lead time; empty where instances have quota enough."""
