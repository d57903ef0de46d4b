"""Output of `ultracluster list` and `ultracluster status`: one screen, each line with its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ultracluster.account.aws import Account
from ultracluster.account.doctor import Fact
from ultracluster.account.status import Status
from ultracluster.account.status.overview import Listed
from ultracluster.account.status.rows import (
    CostState,
    Difference,
    GroupState,
    JobCounts,
    Lease,
    NodeState,
    ReleaseState,
    StackDrift,
    StackState,
    StorageState,
)
from ultracluster.cli.documents.cluster import StatusDocument
from ultracluster.cli.json_rows import Cause
from ultracluster.cli.report import text_table
from ultracluster.config.plain_text import one_line
from ultracluster.model import Cluster

Line = tuple[str, str, str, str]
"""Subject, place, state, and source."""
SHOWN = 8
"""Faults, and changes by hand, that the text has; JSON has all."""
LONGEST = 160


def list_text(rows: Sequence[Listed]) -> str:
    """A line for each environment."""
    heads = ("environment", "orchestrator", "Region", "account", "state", "stacks", "running", "changed", "")
    lines = [
        (
            row.name if row.file else f"({row.name})",
            row.orchestrator or "",
            row.region or "",
            row.account or "",
            row.state,
            _of(row.stacks, row.stacks_wanted),
            _of(row.running, row.nodes_wanted),
            f"{row.changed:%Y-%m-%d %H:%M}" if row.changed else "",
            row.why,
        )
        for row in rows
    ]
    sources = dict.fromkeys(source for row in rows for source in row.sources)
    return text_table(heads, lines) + (f"\nsources: {', '.join(sources)}" if sources else "")


def _of(there: int | None, wanted: int | None) -> str:
    if there is None:
        return "" if wanted is None else f"?/{wanted}"
    return str(there) if wanted is None else f"{there}/{wanted}"


def as_document(cluster: Cluster, account: Account, found: Status) -> StatusDocument:
    """The document of a status."""

    labels = found.found.labels
    return {
        "environment": cluster.name,
        "region": cluster.environment.region,
        "account": account.identity().account,
        "orchestrator": cluster.settings.kind,
        "asked": found.asked.isoformat(),
        "deployed": found.found.deployed,
        "quiet": found.quiet,
        "stacks": found.of(StackState),
        "drift": found.of(StackDrift),
        "differences": found.of(Difference),
        "groups": found.of(GroupState),
        "nodes": found.of(NodeState),
        "releases": found.of(ReleaseState),
        "jobs": next(iter(found.of(JobCounts)), None),
        "storage": found.of(StorageState),
        "capacity": found.of(Lease),
        "cost": found.of(CostState),
        "causes": [
            Cause(one.failure, [labels[number] for number in one.evidence]) for one in found.found.diagnoses
        ],
        "facts": found.found.facts,
        "sources": found.found.sources,
    }


def status_text(cluster: Cluster, account: Account, found: Status, *, spent: bool) -> str:
    """The status for a person."""
    head = (
        f"{cluster.name}: {cluster.settings.kind} in {cluster.environment.region}, account "
        f"{account.identity().account}, {found.asked:%Y-%m-%d %H:%M} UTC"
    )
    if found.found.deployed is False:
        head += ": not deployed, none of its stacks is there"
    lines = [*_stacks(cluster, found), *_nodes(found), *_use(found, spent=spent), *_wrong(found)]
    rows = [
        (what, _cut(where), f"{_cut(how)}  [{source}]" if source else _cut(how))
        for what, where, how, source in lines
    ]
    table = text_table(("", "", ""), rows)
    silent = [one for one in found.found.sources if one.state == "not readable"]
    tail = [f"? {one.name}: {_cut(one.why)}" for one in silent]
    if found.quiet and found.found.deployed:
        tail.append("every source answered; nothing is wrong, and nothing was changed by hand")
    return "\n".join([one_line(head), *table.splitlines()[1:], *map(one_line, tail)])


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else words[: LONGEST - 3] + "..."


def _stacks(cluster: Cluster, found: Status) -> Iterator[Line]:
    stacks = found.of(StackState)
    if stacks:
        last = max(stacks, key=lambda one: (one.since is not None, one.since))
        when = f"; last change {last.since:%Y-%m-%d %H:%M}, {last.name}" if last.since else ""
        odd = [f"{one.name} {one.status}" for one in stacks if one.status not in _DONE]
        state = ", ".join(odd) or "all complete"
        yield "stacks", f"{len(stacks)} there", f"{state}{when}", stacks[0].source
    drifts = found.of(StackDrift)
    if drifts:
        said: list[str] = []
        for word in ("differs", "checking", "not checked", "in sync"):
            those = [one.stack for one in drifts if one.drift == word]
            names = f" ({', '.join(those[:3])})" if word in _NAMED else ""
            said += [f"{len(those)} {word}{names}"] if those else []
        yield "drift", f"{len(drifts)} stacks", ", ".join(said), drifts[0].source
        for one in drifts:
            if one.why:
                yield "", one.stack, one.why, one.source
    if stacks:
        compares = f"not compared with the stacks: `ultracluster diff {cluster.name} --deployed` does"
        yield "file", "", compares, "CloudFormation GetTemplate"
    differences = found.of(Difference)
    for one in differences[:SHOWN]:
        yield "! by hand", one.kind, f"{one.where}: {one.actual} ({_cut(one.expected)})", one.source
    if more := differences[SHOWN:]:
        yield "! by hand", "", f"and {len(more)} more: --json has all", ""


_DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE")
_NAMED = ("differs", "checking")


def _nodes(found: Status) -> Iterator[Line]:
    for one in found.of(GroupState):
        short = one.running < (one.wanted if one.asked is None else one.asked)
        count = f"{one.running} of {one.nodes if one.asked is None else one.asked} running"
        images = ", ".join(f"{image} ({number})" for image, number in one.images.items())
        parts = [count, f"image {images}" if images else "", one.note]
        yield "! nodes" if short else "nodes", one.name, "; ".join(filter(None, parts)), one.source
    for one in found.of(ReleaseState):
        yield "release", one.release, f"{one.nodes} nodes {one.state}" if one.nodes else "", one.source
    for fact in _releases(found):
        yield "release", "", fact.text, fact.source


def _releases(found: Status) -> list[Fact]:
    """Rows of the metrics on releases, which are no complaint."""
    return [one for one in found.found.facts if one.level == "info" and one.where == RELEASE]


RELEASE = "release"


def _use(found: Status, *, spent: bool) -> Iterator[Line]:
    for one in found.of(JobCounts):
        unknown = f", {one.unknown} unknown" if one.unknown else ""
        yield "jobs", "", f"{one.running} running, {one.waiting} waiting{unknown}", one.source
    for one in found.of(StorageState):
        fill = "fill not known: CloudWatch has no figure" if one.fill is None else f"{one.fill:.0%} full"
        size = f" of {one.size_bytes / 2**40:,.1f} TiB" if one.fill is not None and one.size_bytes else ""
        state = f"{one.state}, {fill}{size}"
        yield "storage", f"{one.type} {one.id}", state, one.source
    for one in found.of(Lease):
        mark = "capacity" if one.level == "green" else "! capacity"
        yield mark, one.name, "; ".join(filter(None, (one.state, one.do))), one.source
    for one in found.of(CostState):
        usd = "not known" if one.usd is None else f"{one.usd:,.2f} USD"
        yield "cost", one.per, f"{usd}; {one.note}", one.source
    if not spent:
        yield "cost", "month to date", "not asked: --spent asks, and AWS bills 0.01 USD", "Cost Explorer"


def _wrong(found: Status) -> Iterator[Line]:
    for one in found.found.diagnoses[:SHOWN]:
        where = found.found.labels[one.evidence[0]]
        yield "! cause", "", f"{one.failure.cause}; do: {one.failure.do}", where
    facts = [one for one in found.found.facts if one.level != "info"]
    facts.sort(key=lambda one: one.level != "error")
    for one in facts[:SHOWN]:
        yield "! fault" if one.level == "error" else "- fault", one.where, one.text, one.source
    if more := facts[SHOWN:]:
        yield "", "", f"and {len(more)} more: `ultracluster doctor` has all, and what to do", ""
