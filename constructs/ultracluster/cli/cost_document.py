"""The estimate of `ultracluster cost` for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ultracluster.operations.cost import Estimate, Line, reason

if TYPE_CHECKING:
    from ultracluster.catalog.prices import Figure


def as_document(found: Estimate) -> dict[str, Any]:
    """The estimate for machines. Sums are USD; `null` is unknown."""
    idle = found.idle
    return {
        "environment": found.environment,
        "orchestrator": found.orchestrator,
        "region": found.region,
        "date": str(found.today),
        "currency": "USD",
        "hours_per_month": 730,
        "days": found.days,
        "accept_expired": found.accept_expired,
        "complete": found.complete,
        "total": _periods(found.per_hour if found.counted else None),
        "at_most": _periods(found.greatest_per_hour if found.counted else None),
        "orientation": {
            **(_periods(found.orientation.per_hour) or {}),
            "hour_by_kind": {kind: _rounded(usd) for kind, usd in found.orientation.parts.items()},
            "missing": list(found.orientation.missing),
        },
        "upfront": _rounded(found.upfront),
        "left_out": list(found.left_out),
        "at_most_left_out": list(found.greatest_left_out),
        "by_use": list(found.by_use),
        "summed_although_expired": [line.item.what for line in found.expired_accepted],
        "unverified": [line.item.what for line in found.unverified],
        "faults": list(found.faults),
        "lines": [_line(line) for line in found.lines],
        "idle": {
            "group": idle.group,
            "instance_type": idle.instance_type,
            "state": idle.state,
            "node": _periods(idle.node_per_hour),
            "job_groups": list(idle.job_groups),
            "job_nodes": idle.job_nodes,
            "job": _periods(idle.job_per_hour),
            "orientation": {"node": _periods(idle.node_about), "job": _periods(idle.job_about)},
        }
        if idle
        else None,
    }


def _line(line: Line) -> dict[str, Any]:
    item = line.item
    return {
        "area": item.area,
        "what": item.what,
        "purchase": item.purchase,
        "quantity": item.quantity,
        "at_most": item.greatest,
        "unit": item.unit,
        "state": line.state,
        "reason": reason(line) or None,
        "note": item.note or None,
        "price": _price(line.figure),
        "price_elsewhere": _price(line.elsewhere),
        "ec2_price": _price(line.ec2),
        "premium_over_ec2": _rounded(line.premium),
        "per_hour_around": [_rounded(one) for one in line.around] if line.around else None,
        "orientation": {
            "basis": line.basis,
            "price": _price(line.about),
            "cost": _periods(line.about_per_hour),
        },
        "cost": _periods(line.per_hour),
        "fee": _rounded(line.fee),
    }


def _price(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {
        "usd": figure.usd,
        "per": figure.unit,
        "region": figure.region or None,
        "source": figure.source,
        "date": str(figure.date) if figure.date else None,
        "expires": str(figure.expires) if figure.expires else None,
        "expired": figure.expired,
        "verified": figure.verified,
        "live": figure.live,
    }


def _periods(per_hour: float | None) -> dict[str, float | None] | None:
    if per_hour is None:
        return None
    return {"hour": _rounded(per_hour), "day": _rounded(per_hour * 24), "month": _rounded(per_hour * 730)}


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)
