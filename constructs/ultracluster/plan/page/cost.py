"""The cost of an environment as bars: a row for each node group and each area of the rest."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ultracluster.plan.cost_parts import CostPart
from ultracluster.plan.cost_summary import CostPlan, rough
from ultracluster.plan.page.markup import figure, section, tag


def cost_section(cost: CostPlan) -> Element:
    """Its sum in words, one bar of everything, and a bar for each part."""
    longest = max((part.most_per_month or part.per_month or 0 for part in cost.parts), default=0)
    rows = [_row(place, part, cost, longest) for place, part in enumerate(cost.parts)]
    lines = [cost.text, cost.strict_line, cost.idle_line, cost.order_line, *cost.faults]
    return section(
        "Cost",
        tag("div", _share(cost), tag("div", rows, class_="bars"), _legend(cost), class_="card"),
        tag("ul", [tag("li", _first(line)) for line in lines if line], class_="notes"),
        lead=f"{_first(cost.short)}. List prices in USD, a month of 730 hours, without tax and discounts.",
    )


def _share(cost: CostPlan) -> Element | None:
    """All parts on one line, as wide as their share."""
    if not cost.per_month:
        return None
    shown = [part for part in cost.parts if part.per_month]
    pieces = [
        tag("span", class_=f"piece {_kind(part)} {_area(part)}", style=f"flex-grow:{part.per_month or 0:.6g}")
        for part in shown
    ]
    return tag("div", pieces, class_="share", aria_hidden="true")


def _row(place: int, part: CostPart, cost: CostPlan, longest: float) -> Element:
    path = f"cost.parts.{place}"
    amount = part.per_month
    usd = figure(f"{path}.per_month", amount, "not priced" if amount is None else f"{rough(amount)} USD")
    of = _percent(amount / cost.per_month) if amount and cost.per_month else ""
    below = [part.area] if part.group else []
    if part.not_priced:
        below.append(f"not priced: {', '.join(part.not_priced)}")
    more = None
    if part.most_per_month is not None:
        most = figure(f"{path}.most_per_month", part.most_per_month, f"{rough(part.most_per_month)} USD")
        more = tag("span", "up to ", most, class_="dim")
    said = tag("span", "; ".join(below), class_="dim") if below else None
    return tag(
        "div",
        tag("div", tag("b", part.name), said, class_="what"),
        _bar(part, longest),
        tag("div", tag("b", usd), tag("span", of, class_="dim") if of else None, more, class_="usd"),
        class_="bar-row",
    )


def _bar(part: CostPart, longest: float) -> Element:
    """Solid for current prices, hatched for others, an outline for nodes that may be added."""
    if part.per_month is None or not longest:
        return tag("div", tag("span", "?", class_="unknown"), class_="bar", aria_hidden="true")
    solid = part.strict_per_month or 0
    hatched = part.per_month - solid
    more = max(0, (part.most_per_month or 0) - part.per_month)
    lengths = (("solid", solid), ("hatched", hatched), ("more", more))
    pieces = [
        tag("span", class_=f"{kind} {_area(part)}", style=f"width:{usd / longest:.3%}")
        for kind, usd in lengths
        if usd > 0.005
    ]
    return tag("div", pieces, class_="bar", aria_hidden="true")


def _kind(part: CostPart) -> str:
    return "solid" if part.strict_per_month == part.per_month else "hatched"


def _legend(cost: CostPlan) -> Element:
    shown = {
        "solid": "current price of this Region",
        "hatched": "estimate: old, undated, derived or elsewhere",
    }
    if cost.most_per_month is not None:
        shown["more"] = "nodes that may be added"
    kinds = [tag("li", tag("span", class_=f"swatch {kind}"), text) for kind, text in shown.items()]
    return tag("ul", kinds, class_="legend")


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.0005 else "under 0.1%"


def _area(part: CostPart) -> str:
    return part.area.replace(" ", "-")


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]
