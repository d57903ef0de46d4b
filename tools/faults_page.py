"""Writes docs/faults.md from lifecycle_scripts/health/faults.json, and the table of agents in docs/health.md,
if it is given. Run by `make generate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ultracluster.catalog.node_agents import Agent, Report, node_agents
from ultracluster.catalog.node_faults import Fault, about_faults, generations, node_faults

HEAD = """# Faults of nodes

What health checks and the watcher of the kernel's log know, how grave each fault is, and what is done.
Written by `make generate` from [`health/faults.json`](../lifecycle_scripts/health/faults.json), which has the
sources of each row; [health.md](health.md) explains it. A node's reason is `ultracluster:<check>:<code>`.
"""

BEGIN, END = "<!-- agents: made by `make generate` -->\n", "<!-- end of agents -->\n"


def page() -> str:
    """The page as Markdown."""
    return "\n".join([HEAD, *_words(), "", *_tables(), *_agents(), *_lines()])


def with_agents(text: str) -> str:
    """The page of health with the table of agents in its place."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"docs/health.md lacks {BEGIN.strip()} or {END.strip()}")
    return "".join([before, BEGIN, *(f"{line}\n" for line in _silent()), END, after])


def _silent() -> Iterator[str]:
    """Rows of each agent that it makes an event of, and rows of which it publishes nothing."""
    yield "| Agent | An event only: nothing acts on it | Not published |"
    yield "|---|---|---|"
    for agent in node_agents():
        found = {row.id: {one.kind for one in agent.reports_of(row)} for row in agent.grave_faults()}
        events = [name for name, kinds in found.items() if kinds == {"event"}]
        silent = [name for name, kinds in found.items() if not kinds]
        yield f"| {agent.title} | {_names(events)} | {_names(silent)} |"


def _names(rows: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in rows) or "-"


def _agents() -> Iterator[str]:
    """Table of what agents of Kubernetes publish, row by row."""
    yield "## On Kubernetes"
    yield ""
    yield (
        "What agents on nodes publish that they report, and the row of this page that it means; "
        "[health.md](health.md#on-kubernetes) lists the rows of which they publish nothing. `ultracluster "
        "doctor` reads their words."
    )
    yield ""
    for agent in node_agents():
        notes = "; ".join(agent.notes)
        yield f"- **{agent.title}**: {notes}. Source: {agent.source}, {agent.date}."
    yield ""
    yield "| Agent | Says | Row | As | Then |"
    yield "|---|---|---|---|---|"
    for agent in node_agents():
        for one in agent.reports:
            yield _report(agent, one)
    yield ""


def _report(agent: Agent, one: Report) -> str:
    says = f"`{one.reason}`" if one.reason else one.what
    then = one.repair or ("not published" if one.kind == "condition" else "none")
    return f"| {agent.title} | {_cell(says)} | {_cell(one.fault)} | {one.kind} | {then} |"


def _words() -> Iterator[str]:
    about = about_faults()
    yield f"Sources were read on {about['date']}. {about['sources'][0].upper()}{about['sources'][1:]}."
    yield ""
    for key in ("severity", "action", "repeats", "other", "order"):
        yield f"- **{key}**: {about[key]}."
    yield ""
    yield "| Generation | Accelerators |"
    yield "|---|---|"
    for one in generations():
        yield f"| {one.name} | {', '.join(one.accelerators)} |"


def _tables() -> Iterator[str]:
    faults = node_faults()
    for check in dict.fromkeys(row.check for row in faults):
        yield f"## {check}"
        yield ""
        rows = [row for row in faults if row.check == check]
        makers = any(row.nvidia or row.other for row in rows)
        yield f"| Code | Means | Severity | Action |{' NVIDIA | Other lists |' if makers else ''}"
        yield f"|---|---|---|---|{'---|---|' if makers else ''}"
        for row in rows:
            end = f" {row.nvidia or '-'} | {_others(row)} |" if makers else ""
            means = ". ".join(filter(None, [row.meaning, row.note]))
            yield f"| {_code(row)} | {means} | {row.severity} | {_action(row)} |{end}"
        yield ""


def _code(row: Fault) -> str:
    """The code, with what else has to fit."""
    only = [", ".join(row.generations)] if row.generations else []
    only += [f"text `{_cell(row.text)}`"] if row.text else []
    only += [row.disk] if row.disk else []
    code = _ranges(row.codes)
    return f"{code} ({'; '.join(only)})" if only else code


def _ranges(codes: tuple[str, ...]) -> str:
    """`1-7, 9` of numbers in a row."""
    if len(codes) < 3 or not all(code.isdecimal() for code in codes):
        return ", ".join(code.replace("*", "any other") for code in codes)
    parts: list[list[int]] = []
    for number in map(int, codes):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _action(row: Fault) -> str:
    words = [row.action] if row.action != "none" or row.when_idle == "none" else []
    if row.when_idle != "none":
        words.append(f"{row.when_idle} when no job runs")
    if row.repeats and row.repeats.action != row.action:
        words.append(f"{row.repeats.action} after {row.repeats.times} in {row.repeats.within_hours} h")
    return "; ".join(words)


def _others(row: Fault) -> str:
    return (
        "; ".join(f"{one.who}: {one.action}{f' ({one.why})' if one.why else ''}" for one in row.other) or "-"
    )


def _lines() -> Iterator[str]:
    rows = [
        (row.id, *form)
        for row in node_faults()
        if row.line
        for form in ((row.line, row.line_from), *row.forms)
    ]
    made = sum(source.startswith("constructed") for *_, source in rows)
    yield "## Lines"
    yield ""
    yield (
        f"Each of these lines is a test: it must come to its row. {len(rows) - made} were logged; for {made} "
        "no public one was found, and they are made from the driver's own format."
    )
    yield ""
    yield "| Row | Line | From |"
    yield "|---|---|---|"
    for name, line, source in rows:
        yield f"| {name} | `{_cell(line)}` | {_cell(source)} |"
    yield ""
    yield "These look alike and must not come to the row."
    yield ""
    yield "| Row | Line |"
    yield "|---|---|"
    for row in node_faults():
        for line in row.near:
            yield f"| {row.id} | `{_cell(line)}` |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        file.write_text(with_agents(file.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(page())
