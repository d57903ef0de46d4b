"""A comparison as a page: the verdict, what each resource goes through, and what has to be accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

from ultracluster.change.changes import Verdict
from ultracluster.change.radius import worst
from ultracluster.change.radius_rings import rings
from ultracluster.change.report import Report, Row, end, rows, title
from ultracluster.plan.page.markup import (
    folded,
    inline_svg,
    pill,
    section,
    sheet,
    signature,
    table,
    tag,
    words,
)

LEVELS: Final = {
    Verdict.NO_OP: "quiet",
    Verdict.IN_PLACE: "good",
    Verdict.ROLLING: "care",
    Verdict.SCALE_TO_ZERO: "care",
    Verdict.AT_RISK: "care",
    Verdict.NOT_KNOWN: "care",
    Verdict.REPLACED: "bad",
    Verdict.REFUSED: "bad",
    Verdict.DATA_AT_RISK: "bad",
    Verdict.DATA_LOSS: "bad loud",
}
_MEANING: Final = {
    Verdict.NO_OP: "nothing that exists changes",
    Verdict.IN_PLACE: "changed where it is; jobs go on",
    Verdict.ROLLING: "nodes or servers restart one after the other; jobs on them end",
    Verdict.SCALE_TO_ZERO: "running nodes do not have it until they are made again",
    Verdict.AT_RISK: "running jobs lose a way, a right or a file that they may use",
    Verdict.NOT_KNOWN: "no source says what the change does",
    Verdict.REPLACED: "what is there now is deleted; something new may take its place",
    Verdict.REFUSED: "AWS refuses the update and rolls it back: nothing changes",
    Verdict.DATA_AT_RISK: "a guard of data goes, or data is left behind",
    Verdict.DATA_LOSS: "data is deleted",
}
_SUMS: Final = {
    0: ("good", "Running jobs are not disturbed."),
    1: (
        "care",
        "Running jobs are disturbed (a restart, a replacement, a lost right), or may be; or AWS refuses it.",
    ),
    2: ("care", "Not everything could be read, so this is not the whole answer."),
    3: ("bad", "Data would be lost, lose a guard, be left behind or in doubt, and nobody has accepted that."),
}


def radius_page(report: Report) -> str:
    """The page of a report; its verdicts and counts are those of `diff --json`."""
    comparison, made = report.comparison, rows(report)
    stacks = list(dict.fromkeys(row.stack for row in made))
    return sheet(
        "blast radius",
        f"{comparison.before_name} \N{RIGHTWARDS ARROW} {comparison.after_name}",
        "What a deploy would do to what is there, judged from the templates.",
        _verdict(report),
        section("At a glance", _counts(report)),
        _to_accept(report),
        [_stack(name, [row for row in made if row.stack == name]) for name in stacks],
        _notes(comparison.notes),
        signature(),
    )


def verdicts(report: Report) -> dict[str, Verdict]:
    """The worst of each resource."""
    found: dict[str, Verdict] = {}
    for change in report.changes:  # worst first
        found.setdefault(change.resource, change.verdict)
    return found


def _verdict(report: Report) -> Element:
    level, text = _SUMS[report.exit_code]
    found = worst(report.changes)
    name = "nothing changes" if not report.changes else str(found)
    return tag(
        "div",
        tag("p", tag("strong", text)),
        tag("p", "The worst verdict: ", pill(LEVELS[found], name), f", exit code {report.exit_code}"),
        class_=f"card verdict {level}",
    )


def _counts(report: Report) -> Element:
    """Rings of resources, the worst in the middle, beside how many there are of each."""
    found = verdicts(report)
    counts = {verdict: list(found.values()).count(verdict) for verdict in reversed(Verdict)}
    lines = [
        tag(
            "li",
            tag("b", tag("data", f"{count:,}", value=count, data_verdict=verdict)),
            tag("span", pill(LEVELS[verdict], str(verdict)), tag("span", _MEANING[verdict], class_="dim")),
        )
        for verdict, count in counts.items()
        if count
    ]
    told = tag("ul", lines, class_="counts") if lines else tag("p", "Nothing changes.")
    said = tag("figcaption", "A dot is a resource; a ring shows as many as it has room for.")
    drawing = tag("figure", inline_svg(rings(found, title(report))), said, class_="rings")
    return tag("div", drawing if lines else None, told, class_="card glance")


def _to_accept(report: Report) -> Element | None:
    """What has to be named before a deploy does it; what AWS refuses; what could not be read."""
    lines = end(report)[1:]
    if not lines:
        return None
    told = [
        tag("pre", line.strip()) if line.startswith("  ") else tag("p", words(line), class_="before-code")
        for line in lines
    ]
    return section("Before a deploy", tag("div", told, class_="card"))


def _stack(name: str, made: Sequence[Row]) -> Element:
    """What disturbs jobs in sight, the rest folded."""
    heads = ("verdict", "resource", "change", "why")
    names = {row.resource for row in made if row.verdict.rank >= Verdict.ROLLING.rank}
    loud = [_row(rows, True) for rows in _alike(row for row in made if row.resource in names)]
    rest = [row for row in made if row.resource not in names]
    return section(
        f"Stack {name}",
        table(heads, loud) if loud else None,
        folded(f"{len(rest)} harmless", table(heads, [_row(rows, False) for rows in _alike(rest)]))
        if rest
        else None,
    )


def _alike(made: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows that differ in nothing but their resource, together: eight rules of one group are one line."""
    for _, ones in groupby(made, key=lambda row: (row.verdict, row.what, row.why)):
        yield list(ones)


def _row(alike: Sequence[Row], loud: bool) -> tuple[Element | str | list[Element | str], ...]:
    row = alike[0]
    goes_on = loud and row.verdict is Verdict.NO_OP
    verdict = "" if goes_on else pill(LEVELS[row.verdict], str(row.verdict))
    return (
        verdict,
        [
            tag("div", tag("b", one.resource), tag("span", one.type, class_="dim type") if one.type else None)
            for one in alike
        ],
        tag("code", row.what, class_="value") if row.what else "",
        words(row.why),
    )


def _notes(notes: Sequence[str]) -> Element | None:
    return section("Notes", tag("ul", [tag("li", note) for note in notes], class_="notes")) if notes else None
