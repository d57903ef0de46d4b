"""From what an importer read to an environment that passes `validate`, as a file, with the list of losses."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from ultracluster.config import Environment, Finding, InvalidEnvironmentError, parse
from ultracluster.config.findings import YamlPath, dotted
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.plain_text import one_line
from ultracluster.config.remedy import Change, Option, Remedy, apply
from ultracluster.config.source import Source
from ultracluster.imports.ledger import ImportRefusedError, Ledger, Row, Wrong
from ultracluster.model import TRAITS
from ultracluster.rules import check
from ultracluster.software import newest_release

_ROUNDS = 25
"""Remedies that are written one after the other; more hints that they undo each other."""
_WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """What an importer made of a file; not judged yet."""

    tool: str
    """Whose file it is, in words."""
    kind: OrchestratorKind
    data: dict[str, Any]
    """An environment, as its file says it; without release."""
    ledger: Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An environment that no rule refuses, and what is not in it as it was."""

    tool: str
    environment: Environment
    text: str
    """The environment file."""
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    """Warnings of the rules."""


def finished(draft: Drafted, source: str, file: Path | None = None) -> Imported:
    """The environment as a file that passes `validate`.

    Where a rule refuses what the other tool takes, its nearest remedy is written, and a row says so.

    Args:
        source: name of what was imported.
        file: where it is to be written; paths in findings begin there.

    Raises:
        ImportRefusedError: the file cannot be carried over, with every reason.
    """
    data = _filled(draft)
    draft.ledger.enough()
    data, findings = _accepted(data, draft.ledger)
    rows = draft.ledger.close()
    environment = parse(Source("the new file", data=data)).environment
    return Imported(
        tool=draft.tool,
        environment=environment.at(file) if file else environment,
        text=_text(data, draft.tool, source, rows),
        rows=rows,
        findings=findings,
    )


def _filled(draft: Drafted) -> dict[str, Any]:
    release = newest_release(TRAITS[draft.kind].software_family).release
    draft.ledger.assumed(
        "software.release", f"{release}, the newest for such nodes: versions on them are locked to it",
        "see `ultracluster software show " + release + "`",
    )  # fmt: skip
    order = ("name", "account", "region", "protect", "tags", "governance", "network", "storage")
    data = {key: draft.data[key] for key in order if draft.data.get(key)}
    rest = {key: value for key, value in draft.data.items() if key not in order and value}
    return {**data, **rest, "software": {"release": release}}


def _accepted(data: dict[str, Any], ledger: Ledger) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """The data with what rules refuse put right as far as they know how."""
    findings = _judged(data)
    for _ in range(_ROUNDS):
        wrong = [finding for finding in findings if finding.blocks]
        if not wrong:
            return data, findings
        for finding in wrong:
            if (found := _without(data, finding, len(wrong))) is not None:
                data, findings = found[0], found[1]
                ledger.changed(dotted(finding.path), one_line(finding.message), found[2])
                break
        else:
            break
    raise ImportRefusedError(
        [
            Wrong(
                where=dotted(finding.path),
                message=one_line(finding.message),
                instead=one_line(finding.instead),
            )
            for finding in findings
            if finding.blocks
        ]
    )


def _without(
    data: dict[str, Any], finding: Finding, before: int
) -> tuple[dict[str, Any], tuple[Finding, ...], str] | None:
    """The data with one change that leaves fewer errors, and the change in words; None without one."""
    options: list[Option] = list(finding.remedy.options)
    if finding.code.startswith("CFG") and len(finding.path) > 1:
        options.append((Change(finding.path),))  # its form is wrong: what cannot be said is left out
    for option in options:
        if any(_is_held(change.path) for change in option):
            continue
        changed = cast("dict[str, Any]", apply(data, option))
        findings = _judged(changed)
        if sum(finding.blocks for finding in findings) < before:
            return changed, findings, f"now {_words(option)}; look whether that is what you want"
    return None


def _is_held(path: YamlPath) -> bool:
    """Return whether it says what is paid for, or where: that only a person changes."""
    if path[:1] == ("node_groups",):
        return len(path) < 3 or path[2] in ("capacity", "count", "instance_type", "instance_types", "role")
    return path[0] in ("account", "region", "node_groups")


def _words(option: Option) -> str:
    return Remedy(options=(option,)).text()


def _judged(data: dict[str, Any]) -> tuple[Finding, ...]:
    try:
        return tuple(check(parse(Source("the new file", data=data))))
    except InvalidEnvironmentError as error:
        return error.findings


def _text(data: dict[str, Any], tool: str, source: str, rows: tuple[Row, ...]) -> str:
    yaml: Any = YAML()
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    blocks: list[str] = []
    for key, value in data.items():
        stream = StringIO()
        yaml.dump({key: value}, stream)
        blocks.append(("\n" if isinstance(value, dict) else "") + stream.getvalue())
    return "\n".join(_head(tool, source, rows)) + "\n" + "".join(blocks)


def _head(tool: str, source: str, rows: tuple[Row, ...]) -> Iterator[str]:
    yield f"# {one_line(source)} ({tool}) as an environment, by `ultracluster import`."
    if rows:
        yield "# What is not here as it was there:"
    for places, row in grouped(rows):
        text = f"{', '.join(places)}: {row.outcome}. {sentence(row.why)} {sentence(row.todo)}"
        lines = textwrap.wrap(one_line(text), _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
        yield from (f"# {'-' if not number else ' '} {line}" for number, line in enumerate(lines))


def grouped(rows: Sequence[Row]) -> list[tuple[list[str], Row]]:
    """Rows that say the same as one, with all their places."""
    found: dict[tuple[str, str, str], tuple[list[str], Row]] = {}
    for row in rows:
        found.setdefault((row.outcome, row.why, row.todo), ([], row))[0].append(row.where)
    return list(found.values())


def sentence(text: str) -> str:
    """With a large first letter, unless a name begins it, and a full stop."""
    shown = text[:1].upper() + text[1:] if re.match(r"[a-z]+('[a-z]+)?[ ,:;]", text) else text
    return f"{shown}." if shown and not shown.endswith(".") else shown
