"""A plan as a page: picture, cost, node groups, first boot, quotas, warnings and everything else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from xml.etree.ElementTree import Element

from ultracluster.plan.boot import BootPlan
from ultracluster.plan.cost_summary import rough
from ultracluster.plan.environment_plan import GroupPlan, Plan, QuotaPlan, bandwidth
from ultracluster.plan.page.cost import cost_section
from ultracluster.plan.page.markup import (
    figure,
    folded,
    inline_svg,
    pill,
    section,
    sheet,
    signature,
    table,
    tag,
    tiles,
)
from ultracluster.plan.picture import draw
from ultracluster.plan.picture_symbols import symbol
from ultracluster.plan.quota_words import quota_unit, scarce_quotas

_SHOWN_ELSEWHERE = ("quotas", "first boot", "cost", "warnings")


def plan_page(plan: Plan, facts: Mapping[str, list[str]], day: dt.date) -> str:
    """The page.

    Args:
        facts: name and lines of everything that has no part of its own here.
        day: of its prices.
    """
    account = f", account {plan.account}" if plan.account else ""
    return sheet(
        "plan",
        plan.name,
        f"{plan.orchestrator} in {plan.zone_id} ({plan.region}){account}. Prices as known on {day}.",
        _tiles(plan),
        _state(plan),
        section(
            "Picture",
            tag(
                "div",
                inline_svg(draw(plan, icons=symbol)[0]),
                class_="picture",
                tabindex="0",
                role="region",
                aria_label="picture of the cluster",
            ),
        ),
        cost_section(plan.cost),
        section("Node groups", _groups(plan)),
        section(
            "First boot",
            tag("div", [_boot(place, boot) for place, boot in enumerate(plan.first_boot)], class_="cards"),
            lead="What a new node starts from, what it installs, and what it goes without. "
            "Minutes are an estimate of the most that installing takes.",
        ),
        _quotas(plan),
        _warnings(plan),
        section("Everything else", _facts(facts)),
        signature(),
    )


def _tiles(plan: Plan) -> Element:
    cost, minutes = plan.cost, [boot.minutes for boot in plan.first_boot]
    kinds = list(dict.fromkeys(group.accelerator for group in plan.groups if group.accelerator))
    nodes = sum(group.greatest for group in plan.groups)
    fabric = [group.efa_gbps for group in plan.groups if group.efa_gbps]
    month = "unknown" if cost.per_month is None else f"{rough(cost.per_month)} USD"
    up_to = f", up to {rough(cost.most_per_month)}" if cost.most_per_month else ""
    hour = "" if cost.per_hour is None else f"{rough(cost.per_hour)} USD/h{up_to}"
    longest = max(range(len(minutes)), key=lambda place: minutes[place], default=None)
    return tiles(
        (
            "Accelerators",
            figure("accelerators", plan.accelerators, f"{plan.accelerators:,}"),
            f"{', '.join(kinds)} on {nodes:,} nodes in all" if kinds else f"{nodes:,} nodes",
        ),
        ("A month, estimate", figure("cost.per_month", cost.per_month, month), hour),
        (
            "Fabric",
            bandwidth(sum(fabric)) if fabric else "TCP",
            "of EFA over all nodes" if fabric else "no EFA",
        ),
        (
            "First boot",
            ""
            if longest is None
            else figure(f"first_boot.{longest}.minutes", minutes[longest], f"{minutes[longest]:g} min"),
            "of installing on a node, at most",
        ),
    )


def _state(plan: Plan) -> Element:
    opened = len(plan.open_warnings)
    degraded = [boot.group for boot in plan.first_boot if boot.degraded]
    refuses = [boot.group for boot in plan.first_boot if boot.refuses]
    cost = plan.cost
    current = f"{cost.strict} of {cost.things} prices are current"
    return tag(
        "p",
        pill("good", "protected") if plan.protect else pill("care", "not protected"),
        pill("good", "closed network") if plan.egress == "closed" else pill("quiet", "out by NAT gateway"),
        pill("care", f"{opened} open warning{'s' * (opened != 1)}")
        if opened
        else pill("good", "no open warnings"),
        pill("good" if cost.strict == cost.things else "care", current),
        pill("bad", f"{', '.join(refuses)}: first boot fails") if refuses else None,
        pill("care", f"{', '.join(degraded)}: joins degraded") if degraded else None,
        class_="state",
    )


def _groups(plan: Plan) -> Element:
    heads = ("group", "nodes", "accelerators", "their memory", "memory", "EFA of all", "capacity")
    return table(heads, [_group(place, group) for place, group in enumerate(plan.groups)])


def _group(place: int, group: GroupPlan) -> tuple[Element | str, ...]:
    path = f"groups.{place}"
    accelerators = figure(f"{path}.accelerators", group.accelerators, f"{group.accelerators:,}")
    memory = group.memory_gib
    return (
        tag("b", group.name),
        group.nodes,
        tag("span", accelerators, f" x {group.accelerator}") if group.accelerators else "-",
        figure(
            f"{path}.accelerator_memory_gib", group.accelerator_memory_gib, _gib(group.accelerator_memory_gib)
        )
        if group.accelerators
        else "-",
        figure(f"{path}.memory_gib", memory, "?" if memory is None else _gib(memory)),
        figure(f"{path}.efa_gbps", group.efa_gbps, bandwidth(group.efa_gbps)),
        group.capacity,
    )


def _gib(number: float) -> str:
    return f"{number:,.0f} GiB"


def _boot(place: int, boot: BootPlan) -> Element:
    if boot.refuses:
        state = pill("bad", "fails")
    elif boot.degraded:
        state = pill("care", "degraded")
    elif boot.may_lack:
        state = pill("care", "may lack a part")
    else:
        state = pill("good", "ready") if boot.components else pill("quiet", "no scripts of ours")
    text = f"{boot.minutes:g} min" if boot.minutes else "Nothing to install"
    minutes = tag("strong", figure(f"first_boot.{place}.minutes", boot.minutes, text))
    most = " at most" if boot.minutes else ""
    rows = (
        ("installs", boot.installs, ""),
        ("looks for", boot.looks_for, ""),
        ("may lack", boot.may_lack, "care"),
        ("goes without", boot.degraded, "care"),
        ("fails for", boot.refuses, "bad"),
        ("own steps", boot.own_steps, ""),
    )
    told = [
        [tag("dt", name), tag("dd", [tag("span", one, class_=f"chip {kind}".strip()) for one in ones])]
        for name, ones, kind in rows
        if ones
    ]
    return tag(
        "article",
        tag("h3", boot.group, state),
        tag("p", boot.image or boot.image_text, class_="image"),
        tag("p", minutes, most, class_="minutes") if boot.components else None,
        tag("dl", told) if told else None,
        class_="card boot",
    )


def _quotas(plan: Plan) -> Element:
    """The scarce ones in sight, the others folded."""
    heads = ("needed", "quota", "service", "by")
    scarce = scarce_quotas(plan.quotas)
    rows = [_quota(place, one) for place, one in enumerate(plan.quotas)]
    first = [row for row, one in zip(rows, plan.quotas, strict=True) if one in scarce]
    rest = [row for row, one in zip(rows, plan.quotas, strict=True) if one not in scarce]
    return section(
        "Quotas",
        table(heads, first) if first else None,
        folded(f"{len(rest)} more that accounts seldom lack", table(heads, rest)) if rest else None,
        lead=f"What the account must allow. `ultracluster preflight {plan.asked_as}` asks whether it does.",
    )


def _quota(place: int, one: QuotaPlan) -> tuple[Element | str, ...]:
    amount = figure(f"quotas.{place}.amount", one.amount, f"{one.amount:,.0f}")
    return tag("b", amount, f" {quota_unit(one)}"), one.name, one.service, one.why


def _warnings(plan: Plan) -> Element:
    rows = [
        (
            tag("b", one.code),
            tag("code", one.path, class_="value"),
            one.message,
            one.acknowledged or pill("care", "open"),
        )
        for one in sorted(plan.warnings, key=lambda one: bool(one.acknowledged))
    ]
    if not rows:
        return section("Warnings", tag("p", "No rule warns."))
    return section("Warnings", table(("rule", "at", "warning", "accepted because"), rows))


def _facts(facts: Mapping[str, list[str]]) -> Element:
    rows = [
        [tag("dt", name), tag("dd", [tag("p", line) for line in lines])]
        for name, lines in facts.items()
        if name not in _SHOWN_ELSEWHERE
    ]
    return tag("dl", rows, class_="facts")
