"""Findings as workflow commands of GitHub Actions, which show them on the lines of a pull request.

Source: "Workflow commands for GitHub Actions", and their escapes in actions/toolkit,
packages/core/src/command.ts (2026-11-22). GitHub shows ten warnings and ten errors of a step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ultracluster.config import Finding
from ultracluster.config.plain_text import visible


def annotation_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """One command for each finding, errors first; what is acknowledged is none."""
    for finding in sorted(findings, key=lambda one: not one.blocks):
        if not finding.acknowledged:
            yield _command(finding)


def repository_path(file: str) -> str:
    """The path from the root of the repository: what GitHub and SARIF know files by."""
    root = os.environ.get("GITHUB_WORKSPACE") or Path.cwd()
    path = Path(file).absolute()
    try:
        return path.relative_to(Path(root).absolute()).as_posix()
    except ValueError:
        return Path(file).as_posix()


def _command(finding: Finding) -> str:
    place = finding.location
    values: dict[str, str | int] = {}
    if place:
        values = {"file": repository_path(place.file), "line": place.line, "col": place.column}
        values["endColumn"] = place.column + max(1, place.length)
    values["title"] = f"{finding.code} {finding.dotted}".strip()
    text = finding.message + (f"\ninstead: {finding.instead}" if finding.instead else "")
    settings = ",".join(f"{name}={_property(str(value))}" for name, value in values.items())
    return f"::{finding.severity} {settings}::{_data(text)}"


def _data(text: str) -> str:
    """The percent sign first: it is what the others are written with."""
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
