"""A plan for a terminal, and the words that Markdown has in common with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.markup import escape
from rich.table import Table

from ultracluster.catalog.guidelines import checkpoint_interval
from ultracluster.cli.paper import Paper
from ultracluster.cli.terminal import width
from ultracluster.plan.communication import Communication, Traffic
from ultracluster.plan.environment_plan import (
    GroupPlan,
    ModelPlan,
    Plan,
    bandwidth,
    boot_lines,
    group_notes,
    observability_lines,
    resilience_lines,
    size_text,
    slurm_lines,
    step_lines,
)
from ultracluster.plan.quota_words import quota_amount, scarce_quotas

WIDTH = 80
"""Columns where the output is not a terminal."""


def as_text(plan: Plan, *, terminal: bool, colour: bool = False) -> str:
    """The plan as two tables, as wide as a terminal."""
    # rows of the node groups are never cut, however long the names and narrow the terminal
    paper = Paper(1000, colour=colour)
    wide = width() if terminal else WIDTH
    console = paper.console
    console.print(f"[bold]{plan.name}[/bold]: {heading(plan)}", width=wide)
    groups = Table(box=None, pad_edge=False)
    for number, title in enumerate(("group", "nodes", "accelerators", "memory", "EFA")):
        groups.add_column(title, no_wrap=True, justify="left" if number < 2 else "right")
    for group in plan.groups:
        words = group_words(group)
        groups.add_row(*(words[title] for title in ("group", "nodes", "accelerators", "memory", "EFA")))
        if group.accelerators:
            each = f"{words['EFA a node']} a node" if group.efa_gbps_per_node else ""
            groups.add_row("", words["capacity"], words["their memory"], "", each, style="dim")
    console.print(groups)
    told = Table(show_header=False, box=None, pad_edge=False)
    told.add_column(style="dim", no_wrap=True)
    told.add_column(overflow="fold")
    for name, value in facts(plan):
        told.add_row(name, escape(value))
    console.print(told, width=wide)
    return paper.text()


def heading(plan: Plan) -> str:
    """`hyperpod-slurm in use2-az2, 111122223333`."""
    return f"{plan.orchestrator} in {plan.zone_id}, {plan.account or 'the account of your credentials'}"


def group_words(group: GroupPlan) -> dict[str, str]:
    """One node group in words, by title."""
    return {
        "group": group.name,
        "nodes": group.nodes,
        "capacity": group.capacity,
        "memory": "?" if group.memory_gib is None else f"{group.memory_gib:,.0f} GiB",
        "accelerators": f"{group.accelerators:,} x {group.accelerator}" if group.accelerators else "-",
        "their memory": f"{group.accelerator_memory_gib:,.0f} GiB" if group.accelerators else "-",
        "linked by": _domain(group),
        "EFA a node": bandwidth(group.efa_gbps_per_node),
        "EFA": bandwidth(group.efa_gbps),
    }


def facts(plan: Plan, *, rest_at: str = "--markdown names them") -> Iterator[tuple[str, str]]:
    """Name and words of everything besides the node groups.

    Args:
        rest_at: where those of the quotas are named that are only counted.
    """
    linked = [group for group in plan.groups if group.accelerators]
    for number, group in enumerate(linked):
        place = f" in each {group.domain.ultraserver}" if group.domain and group.domain.ultraserver else ""
        yield (
            "" if number else _interconnect(linked),
            f"{group.name}: {group_words(group)['linked by']}{place}{_topology(group)}{_generations(group)}",
        )
    yield from _named("groups", (note for group in plan.groups for note in group_notes(group, plan.zone_id)))
    yield "Lustre", str(plan.lustre or "none")
    yield from ((one.name, str(one)) for one in plan.further_lustre)
    for one in plan.repositories:
        place = f"s3://{one.bucket}/{one.prefix}" if one.bucket else f"the data bucket, {one.prefix or '/'}"
        of = f"{one.file_system}: " if one.file_system else ""
        yield "", f"{of}{one.folder} is {place} ({_events(one.import_events, one.export_events)})"
    yield from _named("jobs in S3", map(str, plan.job_buckets))
    if plan.model:
        yield from _named("model", model_lines(plan.model))
    if plan.communication:
        checkpoint = plan.model.write_seconds if plan.model else None
        yield from _named("a step", communication_lines(plan.communication, checkpoint))
    if plan.home or plan.accounting:  # pods have no home
        yield "home", str(plan.home or "on Lustre")
    if plan.accounting:
        yield "accounting", plan.accounting
    if plan.slurm:
        for number, line in enumerate(slurm_lines(plan.slurm)):
            more = f": {rest_at}" if line.endswith("settings of ours") else ""
            yield "" if number else f"Slurm {plan.slurm.version}", line + more
    yield "egress", "NAT gateway" if plan.egress == "nat" else "closed: VPC endpoints only"
    yield "endpoints", ", ".join(one.service for one in plan.endpoints) or "none of ours"
    if plan.perimeter:
        yield "", f"they let through: {plan.perimeter}"
    taken = plan.addresses
    estimate = " (estimate)" if taken.estimate else ""
    yield "addresses", f"{taken.total:,} of {taken.usable:,} in {taken.subnet}{estimate}"
    for zone in plan.further_zones:
        yield "", f"{zone.total:,} of {zone.usable:,} in {zone.subnet} ({zone.zone_id})"
    yield from _quotas(plan, rest_at)
    yield "software", f"release {plan.software}"
    yield from _named("first boot", boot_lines(plan.first_boot))
    yield from _named("your steps", step_lines(plan.first_boot))
    if plan.resilience:
        yield from _named("failures", resilience_lines(plan.resilience))
    if plan.observability:
        yield from _named("watched", observability_lines(plan.observability))
    yield "protected", "yes: data is retained, stacks refuse deletion" if plan.protect else "no"
    yield "stacks", ", ".join(plan.stacks)
    if plan.stacks_of_aws:
        yield "of AWS", f"{', '.join(plan.stacks_of_aws)}; their rights: docs/parallelcluster.md"
    yield "cost", f"{plan.cost.text} (ultracluster cost {plan.asked_as})"
    money = plan.cost
    yield from (
        ("", line) for line in (money.strict_line, money.idle_line, money.order_line, *money.faults) if line
    )
    yield "warnings", warning_counts(plan)
    for one in plan.open_warnings:
        yield "", f"{one.code} at {one.path}"


def _named(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Lines of one name, which stands before the first."""
    return ((("" if number else name), line) for number, line in enumerate(lines))


def merged_facts(plan: Plan, *, rest_at: str = "--markdown names them") -> dict[str, list[str]]:
    """The same with all lines of a name: a row without one goes on with the row before."""
    merged: dict[str, list[str]] = {}
    last = ""
    for name, value in facts(plan, rest_at=rest_at):
        last = name or last
        merged.setdefault(last, []).append(value)
    return merged


def model_lines(model: ModelPlan) -> tuple[str, str]:
    """How long a checkpoint takes, and whether the training state fits."""
    size = size_text(model.parameters)
    checkpoint = f"{size}: a checkpoint of {model.checkpoint_gb:,.0f} GB"
    if model.write_seconds is not None and model.write_mbps:
        checkpoint += (
            f" is written in {duration(model.write_seconds)} at {model.write_mbps / 1000:,.1f} GB/s"
            f" (limit: {model.write_limit})"
        )
    else:
        checkpoint += "; the throughput of the file system is unknown"
    state = f"training takes {model.state_gib:,.0f} GiB without activations: "
    if not model.group:
        return checkpoint, f"{state}there is no accelerator memory"
    share = model.state_gib / model.memory_gib
    if model.fits:
        nodes = f"{model.nodes} node{'s' * (model.nodes != 1)}"
        return checkpoint, f"{state}fits into {share:.0%} of {model.group}, on {nodes} at the least"
    return checkpoint, f"{state}does NOT fit into {model.group}, which has {model.memory_gib:,.0f} GiB"


def communication_lines(estimate: Communication, checkpoint_seconds: float | None) -> Iterator[str]:
    """Lines on what a training step computes and sends, and what takes longest.

    Args:
        checkpoint_seconds: time to write one checkpoint; None where it is unknown.
    """
    step, training = estimate.step_seconds, estimate.step
    yield (
        f"{duration(step)} for {size_text(training.tokens)} tokens at {training.mfu:.0%} MFU in"
        f" {training.precision.upper()} on {training.layout.accelerators:,} accelerators of {estimate.group}"
    )
    for one in estimate.traffic:
        yield (
            f"{one.kind}: each sends {_gigabytes(one.gigabytes)} over {one.link},"
            f" {duration(one.seconds)} ({one.seconds / step:.0%} of the step)"
        )
    if estimate.optimizer_seconds > step / 100:
        yield f"optimizer: {duration(estimate.optimizer_seconds)} for its state in memory"
    if estimate.link_gbps and estimate.traffic:
        yield f"per accelerator: {estimate.link_gbps:,.0f} GB/s inside ({estimate.link_source})" + (
            f", {estimate.efa_gbps:,.1f} GB/s of EFA ({estimate.efa_source})" if estimate.efa_gbps else ""
        )
    yield from _bounds(estimate, estimate.dominates)
    if checkpoint_seconds is not None:
        minutes = checkpoint_interval().minutes
        yield (
            f"a checkpoint every {minutes:g} minutes that training waits for takes"
            f" {checkpoint_seconds / (minutes * 60):.1%} of the time"
        )


def _bounds(estimate: Communication, longest: Traffic | None) -> Iterator[str]:
    for kind in estimate.across:
        yield f"{kind} parallelism leaves the accelerators that are linked directly: keep it inside them"
    if estimate.unknown:
        yield f"{', '.join(estimate.unknown)}: the speed of its link is not published, so its time is unknown"
    if longest:
        yield (
            f"longest: {longest.kind} over {longest.link}; with nothing hidden behind computation at most"
            f" {estimate.mfu_without_overlap:.0%} MFU"
        )
    if estimate.busiest_seconds > estimate.step_seconds:
        yield (
            f"communication alone takes {duration(estimate.busiest_seconds)}: {estimate.step.mfu:.0%} MFU is"
            " out of reach with this layout"
        )


def _gigabytes(number: float) -> str:
    return f"{number:,.0f} GB" if number >= 10 else f"{number:,.2g} GB"


def duration(seconds: float) -> str:
    """`0.04 s`, `51 s`, `12 min`, `3.4 h`."""
    if seconds < 1:
        return f"{seconds:.1g} s"
    if seconds < 100:
        return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:,.1f} h"


def warning_counts(plan: Plan) -> str:
    """`none open, 3 acknowledged`."""
    opened = len(plan.open_warnings)
    accepted = len(plan.warnings) - opened
    text = f"{opened} open" if opened else "none open"
    return f"{text}, {accepted} acknowledged" if accepted else text


def _interconnect(groups: list[GroupPlan]) -> str:
    links = {group.domain.link for group in groups if group.domain}
    return "interconnect" if "NeuronLink" in links else "GPU interconnect"


def _domain(group: GroupPlan) -> str:
    if not group.accelerators:
        return "-"
    if group.domain is None:
        return "?"
    return f"{group.domain.size} by {group.domain.link}" if group.domain.link else "PCIe (no NVLink)"


def _topology(group: GroupPlan) -> str:
    """Of Neuron devices: how they are joined, and how many such domains there are."""
    if not group.domain or not group.domain.topology:
        return ""
    many = "1 domain" if group.domains == 1 else f"{group.domains:,} domains"
    return f" ({group.domain.topology}), {many}"


def _generations(group: GroupPlan) -> str:
    """Those that AWS publishes, of EFA and of UltraClusters: `; EFA v4, UltraClusters of generation 3`."""
    words = (
        f"EFA v{group.efa_generation}" if group.efa_generation else "",
        f"UltraClusters of generation {group.ultracluster}" if group.ultracluster else "",
    )
    found = ", ".join(filter(None, words))
    return f"; {found}" if found else ""


def _events(imports: tuple[str, ...], exports: tuple[str, ...]) -> str:
    both = (("imports", imports), ("exports", exports))
    parts = [f"{verb} {', '.join(events)}" for verb, events in both if events]
    return "; ".join(parts) or "on request"


def _quotas(plan: Plan, rest_at: str) -> Iterator[tuple[str, str]]:
    """The scarce ones; the number of the others."""
    shown = scarce_quotas(plan.quotas)
    for number, one in enumerate(shown):
        yield "" if number else "quotas", f"{quota_amount(one)}: {one.name}"
    if rest := len(plan.quotas) - len(shown):
        yield "" if shown else "quotas", f"{'and ' * bool(shown)}{rest} more: {rest_at}"
