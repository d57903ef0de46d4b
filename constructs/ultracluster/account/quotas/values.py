"""What Service Quotas and the account's resources say of the quotas that an environment needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain
from ultracluster.account.quotas.usage import Usage
from ultracluster.catalog.quotas import Quota
from ultracluster.model import Cluster
from ultracluster.model.quota_needs import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaValue:
    """A quota as the account has it."""

    code: str
    name: str
    amount: float
    applied: bool
    """The account's own value; otherwise AWS's default."""
    adjustable: bool
    usage_metric: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Where CloudWatch keeps its use; empty where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaState:
    """A need next to the account's value and use."""

    need: Need
    value: QuotaValue | None
    """None where the Region does not list the quota: unknown, not zero."""
    used: float | None
    """By everything else than this environment; None if unknown."""
    why_unknown: str = ""

    @property
    def wanted(self) -> float:
        """The value with which it fits."""
        return self.need.amount + (self.used or 0)

    @property
    def short(self) -> bool:
        """Return whether it certainly does not fit."""
        return self.value is not None and self.wanted > self.value.amount


def quota_states(account: Account, cluster: Cluster, needs: Sequence[Need]) -> list[QuotaState]:
    """Values and use of needs that are all of one service. A use that cannot be read costs no value.

    Raises:
        botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError: Service Quotas cannot be read.
    """
    values = read_quotas(account, needs[0].quota.service, [need.quota for need in needs])
    usage = Usage(account, cluster)
    states: list[QuotaState] = []
    for need in needs:
        value = values.get(need.quota)
        used, why = None, ""
        try:
            used = usage.of(need)
            if used is None and value and value.usage_metric:
                used = _metric(account, value.usage_metric)
            why = "" if used is not None else "nothing tells its use"
        except (AccountError, *AWS_ERRORS) as error:
            why = explain(error)
        states.append(QuotaState(need=need, value=value, used=used, why_unknown=why))
    return states


def read_quotas(account: Account, service: str, wanted: Sequence[Quota]) -> dict[Quota, QuotaValue]:
    """The account's values of some quotas of one service, AWS's defaults where it has none of its own."""
    quotas = account.client("service-quotas")
    values: dict[Quota, QuotaValue] = {}
    for operation, applied in (("list_service_quotas", True), ("list_aws_default_service_quotas", False)):
        missing = [quota for quota in wanted if quota not in values]
        if not missing:
            break
        pages = quotas.get_paginator(operation).paginate(
            ServiceCode=service, PaginationConfig={"PageSize": 100}
        )
        for page in pages:  # SageMaker lists thousands: stop when all are there
            _take(page.get("Quotas", ()), missing, values, applied)
            if all(quota in values for quota in missing):
                break
    return values


def _take(
    listed: Iterable[Mapping[str, Any]], missing: list[Quota], found: dict[Quota, QuotaValue], applied: bool
) -> None:
    for row in listed:
        if "Value" not in row:
            continue
        code, name = str(row.get("QuotaCode", "")), str(row.get("QuotaName", ""))
        for quota in missing:
            same_name = name.casefold() == quota.name.casefold()
            if same_name or (quota.match == "code" and quota.code == code):
                found[quota] = QuotaValue(
                    code=code, name=name, amount=float(row["Value"]), applied=applied,
                    adjustable=bool(row.get("Adjustable")), usage_metric=row.get("UsageMetric") or {},
                )  # fmt: skip


def _metric(account: Account, metric: Mapping[str, Any]) -> float | None:
    """The newest figure that CloudWatch keeps of a use."""
    cloudwatch = account.client("cloudwatch")
    now = datetime.now(UTC)
    statistic = str(metric.get("MetricStatisticRecommendation") or "Maximum")
    answer = cloudwatch.get_metric_statistics(
        Namespace=metric["MetricNamespace"],
        MetricName=metric["MetricName"],
        Dimensions=[{"Name": key, "Value": value} for key, value in metric["MetricDimensions"].items()],
        StartTime=now - timedelta(hours=3),
        EndTime=now,
        Period=300,
        Statistics=[statistic],
    )
    points = sorted(answer.get("Datapoints", []), key=lambda point: point["Timestamp"])
    return math.ceil(points[-1][statistic]) if points else None
