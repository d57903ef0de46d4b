"""What was found wrong in an environment file, and how it is shown to the person who wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ultracluster.config.plain_text import clipped, one_line, visible
from ultracluster.config.remedy import Remedy
from ultracluster.config.yaml_path import YamlPath, dotted

__all__ = ["Finding", "InvalidEnvironmentError", "Location", "Remedy", "Severity", "dotted", "render"]

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file: line and column count from 1; `text` is the whole source line."""

    file: str
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    text: str = ""
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: what and why (`message`), where, and what fixes it."""

    code: str
    """Id of the rule; `ultracluster rules CODE` has it in full."""
    severity: Severity
    message: str
    path: YamlPath = ()
    remedy: Remedy = field(default_factory=Remedy)
    """With paths from the top of the file."""
    location: Location | None = None
    acknowledged: str = ""
    """The reason for which the warning is accepted."""

    @property
    def blocks(self) -> bool:
        """Errors stop a synth."""
        return self.severity == "error"

    @property
    def instead(self) -> str:
        """The remedy in words; empty without."""
        return self.remedy.text(self.path)

    @property
    def dotted(self) -> str:
        """`node_groups.train.mounts[0]`."""
        return dotted(self.path)

    @property
    def sentence(self) -> str:
        """All of it in one line, without a line of a file."""
        place = f" {self.dotted}" if self.path else ""
        return f"{self.code}{place}: {self.message}" + (f" Instead: {self.instead}" if self.instead else "")


class InvalidEnvironmentError(Exception):
    """The environment cannot be synthesised; carries every finding, not only the first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(render(self.findings))


def render(findings: Iterable[Finding]) -> str:
    """Plain text, errors first, each with place, source line, caret and remedy."""
    ordered = sorted(findings, key=lambda finding: not finding.blocks)
    return "\n\n".join(_render_one(finding) for finding in ordered)


def _render_one(finding: Finding) -> str:
    place = f"{finding.location}: " if finding.location else ""
    where = f" {clipped(finding.dotted)}" if finding.path else ""
    lines = [one_line(f"{place}{finding.severity} {finding.code}{where}")]
    if finding.location and finding.location.text.strip():
        lines += _source_line(finding.location)
    lines.append(f"  {_quoted(finding.message)}")
    if finding.instead:
        lines.append(f"  instead: {_quoted(finding.instead)}")
    if finding.acknowledged:
        lines.append(f"  acknowledged: {_quoted(finding.acknowledged)}")
    return "\n".join(lines)


def _source_line(place: Location) -> list[str]:
    """The line of the file with a caret below the place; of a long line what is near."""
    first = max(0, place.column - 1 - _NEAR)
    before = visible(place.text[first : place.column - 1])
    value = visible(place.text[place.column - 1 : place.column - 1 + min(max(1, place.length), _NEAR)])
    after = visible(place.text[place.column - 1 + max(1, place.length) :][:_NEAR])
    if place.length > _NEAR:
        after = "..."
    number = str(place.line)
    return [
        f"  {number} | {before}{value}{after}",
        f"  {' ' * len(number)} | {' ' * len(before)}{'^' * max(1, len(value))}",
    ]


_NEAR = 160
"""Characters of a line that are shown on each side of a place, and of the value there."""


def _quoted(text: str) -> str:
    """Text that may hold what a file says; a line of it never begins where ours do."""
    return visible(text).replace("\n", "\n    ")
