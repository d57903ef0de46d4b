"""Quotas in words."""

from __future__ import annotations

from collections.abc import Sequence

from ultracluster.plan.environment_plan import QuotaPlan


def quota_amount(quota: QuotaPlan) -> str:
    """`1,536 vCPUs`."""
    return f"{quota.amount:,.0f} {quota_unit(quota)}"


def quota_unit(quota: QuotaPlan) -> str:
    """`vCPUs`, `instance`."""
    unit = quota.unit
    if quota.amount == 1 and unit.endswith("s") and "/" not in unit:
        unit = unit.removesuffix("es") if unit.endswith("sses") else unit.removesuffix("s")
    return unit


def scarce_quotas(quotas: Sequence[QuotaPlan]) -> list[QuotaPlan]:
    """Those of instances and capacity, of which an account seldom has enough."""
    return [
        quota
        for quota in quotas
        if quota.scope == "region" and quota.unit in ("instances", "vCPUs", "GiB") and quota.service != "rds"
    ]
