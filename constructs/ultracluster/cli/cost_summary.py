"""What `ultracluster cost` says beside its table."""

from __future__ import annotations

from collections.abc import Iterable

from ultracluster.cli.cost_rows import Sources, by_use, money, whole
from ultracluster.operations.cost import Estimate, Line, reason


def title(found: Estimate) -> str:
    """What is estimated, where and when."""
    return f"{found.environment}: {found.orchestrator} in {found.region}, USD at list prices on {found.today}"


def totals(found: Estimate) -> list[tuple[str, float | None]]:
    """Sums per hour by their names; None where nothing can be summed."""
    of = f"{len(found.counted)} of {sum(line.state != 'by use' for line in found.lines)} lines"
    rows = [(f"total, {of}", found.per_hour if found.counted else None)]
    if found.grows:
        rows.append(("at the most", found.greatest_per_hour if found.counted else None))
    return rows


def orientation(found: Estimate) -> str:
    """The order of magnitude in one line; empty where it would say what the total says."""
    about = found.orientation
    if not set(about.parts) - {"counted"} and not about.missing:
        return ""
    kinds = [name for kind, name in _KINDS.items() if kind in about.parts]
    *some, last = kinds or [""]
    names = f"{', '.join(some)} and {last}" if some else last
    using = f", with {names} figures" if names else ""
    prepaid = any(line.item.purchase in PREPAID and line.about for line in found.lines)
    by_hour = ", blocks and plans by the hour" if prepaid else ""
    sums = f"about {whole(about.per_hour)} per hour / {whole(about.per_month)} per month"
    missing = f", missing: {'; '.join(about.missing)}" if about.missing else ""
    return f"for orientation{using}{by_hour}: {sums}{missing}"


PREPAID = ("capacity-block", "training-plan")

_KINDS = {
    "indicative": "undated",
    "expired": "expired",
    "derived": "derived",
    "elsewhere": "other Regions'",
}


def warnings(found: Estimate) -> list[str]:
    """What is wrong with the sums, loudest first."""
    lines: list[str] = []
    stale = [line for line in found.lines if line.state == "expired"]
    if stale:
        lines.append(
            f"STALE: {len(stale)} price{'s are' if len(stale) > 1 else ' is'} past the 90 days that one is "
            "trusted, and not summed; ask AWS with --live, or accept with --accept-expired"
        )
    if found.expired_accepted:
        what = "; ".join(line.item.what for line in found.expired_accepted)
        lines.append(f"STALE: summed although expired (--accept-expired): {what}")
    if found.unverified:
        what = "; ".join(line.item.what for line in found.unverified)
        lines.append(f"unverified, a single source: {what}")
    return lines


def sentences(found: Estimate, sources: Sources) -> list[str]:
    """What stands between the table and the lists."""
    use = by_use(found, sources)
    lines = [
        _legend(found),
        upfront(found),
        idle(found),
        f"billed by use, in no total: {'; '.join(use)}" if use else "",
    ]
    return [line for line in lines if line]


def _legend(found: Estimate) -> str:
    beside = [line for line in found.lines if line.state not in ("counted", "by use") and line.about]
    if not beside:
        return ""
    other = "; ~: not from its own price" if any(line.basis != "own" for line in beside) else ""
    return f"in parentheses: not in the total{other}"


def upfront(found: Estimate) -> str:
    """What is paid upfront, in words; empty where nothing is."""
    prepaid = [line for line in found.lines if line.item.purchase in PREPAID]
    if not prepaid:
        return ""
    if found.upfront is not None:
        return f"upfront for {found.days} days, beside the total: {money(found.upfront)}"
    if found.days is None:
        return "upfront, beside the total: the whole fee of a block or plan; give its length with --days"
    return f"upfront for {found.days} days, beside the total: unknown, a price is missing or does not hold"


def idle(found: Estimate) -> str:
    """What a failed node burns, in words; empty where no compute node can fail."""
    burn = found.idle
    if burn is None:
        return ""
    of = f"one failed {burn.instance_type} of {burn.group}"
    job = f"a synchronous job on all {burn.job_nodes} nodes that waits for it"
    if burn.node_per_hour is None:
        if burn.node_about is None:
            return f"{of}: unknown, it has no price"
        all_of = "unknown" if burn.job_about is None else f"about {whole(burn.job_about)}"
        node = f"about {money(burn.node_about)} per hour, {whole(burn.node_about * 24)} per day"
        return f"{of}: unknown, it has no price; for orientation {node}, {job} {all_of} per hour"
    holds = {"counted": "", "upfront": ", paid already"}.get(burn.state, f", {burn.state} price")
    node = f"{money(burn.node_per_hour)} per hour, {money(burn.node_per_hour * 24)} per day{holds}"
    text = f"{of}: {node}; {job}: "
    if burn.job_per_hour is not None:
        return f"{text}{money(burn.job_per_hour)} per hour, {money(burn.job_per_hour * 24)} per day"
    about = "" if burn.job_about is None else f"; for orientation about {whole(burn.job_about)} per hour"
    return f"{text}unknown, a price is missing or does not hold{about}"


def lists(found: Estimate, sources: Sources) -> list[tuple[str, list[str]]]:
    """What stands below; to be asked for last, when all prices and notes have their numbers."""
    return [
        ("left out of the total", _by_reason(line for line in found.lines if line.item.quantity)),
        (
            "left out of the total at the most, too",
            _by_reason(line for line in found.lines if not line.item.quantity),
        ),
        ("notes", [f"({number}) {text}" for number, text in enumerate(sources.notes, start=1)]),
        ("prices", [f"[{number}] {text}" for number, text in enumerate(sources.lines, start=1)]),
    ]


def _by_reason(lines: Iterable[Line]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line.state != "by use" and (why := reason(line)):
            reasons.setdefault(why, []).append(line.item.what)
    return [f"{why}: {'; '.join(whats)}" for why, whats in reasons.items()]
