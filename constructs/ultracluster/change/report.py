"""What `ultracluster diff` says of a comparison: its exit code, one row for each resource, and the sum."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog.data_kinds import held_data
from ultracluster.change.changes import NEW, TAGS, Change, Verdict
from ultracluster.change.comparison import Comparison
from ultracluster.change.radius import worst


@dataclass(slots=True)
class Report:
    """The changes of a comparison, and what the command says of them."""

    comparison: Comparison
    changes: list[Change]
    accepted: set[str]
    """Resources (`stack/logical id`) whose data may be lost, or lose a guard."""

    @property
    def lost(self) -> list[str]:
        """Resources that lose data without --accept."""
        return self._unaccepted(Verdict.DATA_LOSS)

    @property
    def at_risk(self) -> list[str]:
        """Resources whose data lose a guard, or are left behind, without --accept."""
        lost = set(self.lost)
        return [one for one in self._unaccepted(Verdict.DATA_AT_RISK) if one not in lost]

    @property
    def not_known(self) -> list[str]:
        """Resources with data of which no source says what the change does, without --accept."""
        named = {*self.lost, *self.at_risk}
        return [one for one in self._unaccepted(Verdict.NOT_KNOWN) if one not in named]

    @property
    def acceptable(self) -> set[str]:
        """All that --accept may name."""
        return {change.resource for change in self.changes if _acceptable(change)}

    @property
    def exit_code(self) -> int:
        """0, 1 (jobs disturbed, or refused), 2 (not all read), 3 (loss, risk or doubt not accepted)."""
        if self.lost or self.at_risk or self.not_known:
            return 3
        if self.comparison.unread:
            return 2
        return int(worst(self.changes).rank >= Verdict.ROLLING.rank)

    def _unaccepted(self, verdict: Verdict) -> list[str]:
        resources = [c.resource for c in self.changes if c.verdict is verdict and _acceptable(c)]
        return [one for one in dict.fromkeys(resources) if one not in self.accepted]


def _acceptable(change: Change) -> bool:
    """True if it concerns data in a way that nobody deploys unnamed."""
    doubt = change.verdict is Verdict.NOT_KNOWN and held_data(change.resource_type) is not None
    return change.verdict.needs_acceptance or doubt


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a report: a resource, and what happens to it."""

    stack: str
    verdict: Verdict
    resource: str
    type: str
    what: str
    """Changed property with its values, or empty."""
    why: str


def rows(report: Report) -> list[Row]:
    """What is worth a line, by stack: those with the worst verdict first, and the worst first in each.

    Of a resource that is replaced only the causes are shown; what is new, tags, and no-ops are counted.
    """
    by_stack: dict[str, dict[str, list[Change]]] = {}
    for change in report.changes:  # worst first
        by_stack.setdefault(change.stack, {}).setdefault(change.logical_id, []).append(change)
    lines: list[Row] = []
    for stack, resources in by_stack.items():
        new: list[str] = []
        tags = 0
        silent = 0
        alike: dict[tuple[str, str], list[Change]] = {}
        for logical_id, changes in resources.items():
            top = changes[0]
            if top.verdict is Verdict.IN_PLACE and top.reason == NEW and not top.path:
                new.append(top.resource_type)
                continue
            shown = [one for one in changes if one.reason != TAGS and one.verdict is not Verdict.NO_OP]
            if not shown:
                tags += any(one.reason == TAGS for one in changes)
                silent += all(one.reason != TAGS for one in changes)
                continue
            causes = [one for one in shown if one.replaces or one.verdict.needs_acceptance]
            causes = [one for one in shown if one in causes or one.refused] if causes else shown
            if len(causes) == 1 and top.verdict is Verdict.IN_PLACE and not top.path:
                alike.setdefault((top.resource_type, _why(top, report)), []).append(top)
                continue
            lines += _merged(causes, report)
            if hidden := len(shown) - len(causes):
                text = f"and {hidden} lesser change{'s' * (hidden > 1)}, which go with it"
                lines.append(Row(stack, Verdict.NO_OP, logical_id, top.resource_type, "", text))
        for (kind, why), ones in alike.items():
            several = len(ones) > 1
            name, kind = (f"{len(ones)} {kind}", "") if several else (ones[0].logical_id, kind)
            lines.append(Row(stack, Verdict.IN_PLACE, name, kind, _what(ones[0]), why))
        if new:
            kinds = ", ".join(f"{new.count(kind)} {kind}" for kind in sorted(set(new)))
            lines.append(Row(stack, Verdict.IN_PLACE, f"{len(new)} new", "", "", kinds))
        if tags:
            lines.append(Row(stack, Verdict.IN_PLACE, f"tags of {tags}", "", "", TAGS))
        if silent:
            lines.append(Row(stack, Verdict.NO_OP, f"{silent} more", "", "", "metadata and order only"))
    return lines


def _merged(changes: list[Change], report: Report) -> list[Row]:
    """One row for changes of a resource with the same verdict and reason; of harmless ones the properties."""
    by_reason: dict[tuple[Verdict, str], list[Change]] = {}
    for change in changes:
        by_reason.setdefault((change.verdict, _why(change, report)), []).append(change)
    lines: list[Row] = []
    for (verdict, why), ones in by_reason.items():
        loud = verdict.rank >= 2 or len(ones) == 1
        parts = list(dict.fromkeys(_what(one) if loud else re.split(r"[.\[]", one.path)[0] for one in ones))
        what = ",\n".join([*parts[:3], f"{len(parts) - 3} more"] if len(parts) > 4 else parts)
        lines.append(Row(ones[0].stack, verdict, ones[0].logical_id, ones[0].resource_type, what, why))
    return lines


def title(report: Report) -> str:
    """What is compared with what."""
    return f"{report.comparison.before_name} -> {report.comparison.after_name}"


def end(report: Report) -> list[str]:
    """The sum, and what to do about it."""
    resources: dict[str, Verdict] = {}
    for change in report.changes:  # worst first
        resources.setdefault(change.resource, change.verdict)
    counts = {verdict: list(resources.values()).count(verdict) for verdict in reversed(Verdict)}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    lines = [summary or "nothing changes"]
    replaced = {change.resource for change in report.changes if change.replaces}
    refused = sorted({change.resource for change in report.changes if change.refused} - replaced)
    if refused:
        lines.append(f"AWS refuses as it is, and rolls back: {', '.join(refused)}")
    lines += [f"could not be read: {one}" for one in report.comparison.unread]
    if report.lost:
        lines.append("Data would be lost. To accept it, add:")
        lines += [f"  --accept {one}" for one in report.lost]
    if report.at_risk:
        lines.append("Data would lose a guard, or be left behind. To accept it, add:")
        lines += [f"  --accept {one}" for one in report.at_risk]
    if report.not_known:
        lines.append("No source says what becomes of data. Try it in another environment first, then add:")
        lines += [f"  --accept {one}" for one in report.not_known]
    return lines


def _what(change: Change) -> str:
    if not change.path:
        return "removed" if change.after is None and change.before is not None else ""
    values = [_short(change.before), _short(change.after)]
    if values[0] == values[1] or "" in values:
        return change.path
    return f"{change.path}: {values[0]} -> {values[1]}"


def _short(value: Any) -> str:
    """A value that fits on a line; empty for what does not."""
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 32 and not isinstance(value, dict) and "{" not in text else ""


def _why(change: Change, report: Report) -> str:
    accepted = _acceptable(change) and change.resource in report.accepted
    return f"(accepted) {change.reason}" if accepted else change.reason
