"""A plan as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from ultracluster.cli.plan_text import group_words, heading, merged_facts
from ultracluster.cli.report import folded, markdown, markdown_table
from ultracluster.plan.environment_plan import GroupSeries, Plan
from ultracluster.plan.quota_words import quota_amount


def as_markdown(plan: Plan) -> str:
    """The node groups and facts in full, the long lists folded away."""
    merged = [(name, "\n".join(lines)) for name, lines in merged_facts(plan, rest_at="below").items()]
    groups = [group_words(group) for group in plan.groups]
    parts = [
        f"### {markdown(plan.name)}: {markdown(heading(plan))}",
        "",
        *markdown_table(tuple(groups[0]), (group.values() for group in groups)),
        "",
        *markdown_table(("what", ""), merged),
    ]
    if plan.model:
        parts += ["", f"*Model state: {plan.model.assumption}.*"]
    parts += _folded(
        "components at the first boot",
        ("group", "component", "outcome", "found", "preferred", "why"),
        (
            (boot.group, one.component, one.outcome, one.found or "", one.preferred, one.detail)
            for boot in plan.first_boot
            for one in boot.components
            if one.outcome != "not-needed"
        ),
    )
    if plan.slurm:
        parts += _folded(
            "settings of slurm.conf",
            ("setting", "value", "whose", "for", ""),
            ((one.name, one.value, one.origin, one.why, one.note) for one in plan.slurm.settings),
        )
    if plan.observability and plan.observability.groups:
        parts += _folded(
            "node groups with metrics",
            ("group", "series a node", "allowed", "nodes", "at most"),
            ((one.group, *(f"{figure:,}" for figure in _series(one))) for one in plan.observability.groups),
        )
    parts += _folded(
        "service quotas",
        ("needed", "quota", "service", "by"),
        ((quota_amount(one), one.name, one.service, one.why) for one in plan.quotas),
    )
    rows = ((f"{one.count * one.each:,}", one.what, "estimate" * one.estimate) for one in plan.addresses.rows)
    parts += _folded(f"takers of addresses in {plan.addresses.subnet}", ("addresses", "by", ""), rows)
    endpoints = ((one.service, one.kind, one.reason) for one in plan.endpoints)
    parts += _folded("VPC endpoints", ("service", "kind", "for"), endpoints)
    if plan.perimeter:
        parts.append(f"\nThe VPC endpoints let through: {plan.perimeter}.")
    warnings = ((one.code, one.path, one.message, one.acknowledged or "**open**") for one in plan.warnings)
    parts += _folded("warnings", ("rule", "at", "warning", "accepted because"), warnings)
    return "\n".join(parts) + "\n"


def _series(group: GroupSeries) -> tuple[int, int, int, int]:
    return group.series_per_node, group.budget_per_node, group.nodes, group.most_nodes


def _folded(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    made = list(rows)
    return folded(f"{len(made)} {title}", markdown_table(columns, made) if made else [])
