"""How a wait ended: its exit code, and the words and the JSON for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ultracluster.cli import doctor
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ultracluster.account.doctor import Examination
    from ultracluster.account.wait import NodeSeen, Result
    from ultracluster.account.wait.smoke import Smoke
    from ultracluster.cli.documents.cluster import Waited


def exit_code(result: Result, smokes: Sequence[Smoke], *, strict: bool) -> int:
    """0 ready, 1 failed, 3 late or not judged."""
    if result.outcome == "failed" or any(one.verdict == "fail" for one in smokes):
        return 1
    if strict and degraded(result):
        return 1
    if result.outcome == "late" or result.look.unproven:
        return 3
    return 3 if any(one.verdict == "not judged" for one in smokes) else 0


def degraded(result: Result) -> list[NodeSeen]:
    """The nodes that are ready without everything they should have."""
    return [node for node in result.look.nodes if node.state == "degraded"]


def as_dict(
    name: str,
    result: Result,
    smokes: Sequence[Smoke],
    found: Examination | None,
    code: int,
    *,
    strict: bool,
) -> Waited:
    """The end of a wait as JSON types."""
    return {
        "environment": name,
        "outcome": result.outcome,
        "exit_code": code,
        "reason": _reason(result, smokes, strict=strict) or None,
        "group": result.group or None,
        "node": result.node or None,
        "seconds": round(result.seconds),
        "groups": list(result.look.groups),
        "not_judged": list(result.look.unproven),
        "collectives": list(smokes),
        "doctor": doctor.as_dict(found) if found else None,
    }


def as_text(
    name: str,
    result: Result,
    smokes: Sequence[Smoke],
    found: Examination | None,
    code: int,
    *,
    strict: bool,
) -> str:
    """The end of a wait for a person; the last line is the sum."""
    lines = [
        f"{group.name}: {group.up} of {group.wanted} ready"
        + (f"; {group.failed or group.note}" if group.failed or group.note else "")
        for group in result.look.groups
    ]
    lines += [
        f"degraded: {node.group} {node.id} lacks {', '.join(node.degraded) or 'something'}"
        + (f" ({node.why})" if node.why else "")
        for node in degraded(result)
    ]
    for one in smokes:
        lines.append(f"collective on {one.group}: {one.verdict}: {one.reason}")
        lines += [f"  run it yourself: {one.command}"] if one.command else []
        lines += [f"  logs: {one.logs}"] if one.logs else []
    lines += [f"not judged: {line}" for line in result.look.unproven]
    lines = list(map(one_line, lines))
    if found:
        lines += ["", doctor.as_text(found, name), ""]
    reason = _reason(result, smokes, strict=strict)
    up = sum(group.up for group in result.look.groups)
    wanted = sum(group.wanted for group in result.look.groups)
    verdict = {0: "ready", 1: "failed", 3: "late" if result.outcome == "late" else "not judged"}[code]
    lines.append(
        one_line(f"{name}: {verdict}, {up} of {wanted} nodes ready{': ' + reason if reason else ''}")
    )
    return "\n".join(lines)


def _reason(result: Result, smokes: Sequence[Smoke], *, strict: bool) -> str:
    """What decides, in one line; empty where all is well."""
    if result.outcome != "ready":
        where = " ".join(part for part in (result.group, result.node) if part and part not in result.reason)
        return f"{where}: {result.reason}" if where else result.reason
    for verdict in ("fail", "not judged"):
        for one in smokes:
            if one.verdict == verdict:
                return f"collective on {one.group}: {one.reason}"
        if verdict == "fail" and strict and (bad := degraded(result)):
            return f"{len(bad)} node{'s' * (len(bad) != 1)} degraded, and --strict is given"
    return result.look.unproven[0] if result.look.unproven else ""
