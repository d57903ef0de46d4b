"""XIDs in groups by what is done about them, out of the table of node faults."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ultracluster.catalog.node_faults import ACTIONS, Fault, generations, node_faults

GROUPS = ("replace", "reboot", "reset", "requeue", "warn", "unused", "application")
"""Critical codes by their action; `requeue`: the job is hit, the node stays; `warn`: a person may look;
`unused`: no GPU of today has the code; `application`: the program's own error, or the clean-up after one."""


def xid_groups(accelerators: Iterable[str]) -> dict[str, dict[str, str]]:
    """The codes of each group with their meaning, for clusters with these accelerators (EC2's names).

    Where rows of one code differ by the text of the kernel's line, which no metric carries, the mildest
    counts: the health check reads the line and says more. So it is where generations of one cluster differ.
    """
    names = set(accelerators)
    here = [generation.name for generation in generations() if names & set(generation.accelerators)] or [None]
    found: dict[str, dict[str, str]] = {group: {} for group in GROUPS}
    for code, rows in _rows().items():
        row = min(
            (candidate for kind in here for candidate in _candidates(rows, kind)), key=_gravity, default=None
        )
        if row is not None:
            found[_group(row)][code] = row.meaning
    return found


def meaning_template(codes: dict[str, str]) -> str:
    """A template of Prometheus for what `$labels.xid` means; "" without codes."""
    cases = "{{ else if ".join(
        f'eq $labels.xid "{code}" }}}}{words.replace("{", "(").replace("}", ")")}'
        for code, words in codes.items()
    )
    return f"{{{{ if {cases}{{{{ end }}}}" if codes else ""


@cache
def _rows() -> dict[str, tuple[Fault, ...]]:
    found: dict[str, list[Fault]] = {}
    for row in node_faults():
        for code in row.codes if row.check == "xid" else ():
            if code.isdigit():
                found.setdefault(code, []).append(row)
    return {code: tuple(rows) for code, rows in found.items()}


def _candidates(rows: tuple[Fault, ...], generation: str | None) -> list[Fault]:
    """The rows that may be meant on a generation; None for an unknown one, which takes no row of another."""
    faults: list[Fault] = []
    for row in rows:
        if row.generations and generation not in row.generations:
            continue
        faults.append(row)
        if not row.text:
            break
    return faults


def _gravity(row: Fault) -> tuple[int, int]:
    return ("none", "warn", "critical").index(row.severity), ACTIONS.index(row.action)


def _group(row: Fault) -> str:
    if row.id == "xid-unused":
        return "unused"
    if row.severity == "critical":
        # a critical fault without an action takes the node out all the same
        return row.action if row.action in ("replace", "reboot") else "reset"
    if row.severity == "none":
        return "application"
    return "requeue" if row.action == "requeue" else "warn"
