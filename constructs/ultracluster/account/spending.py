"""Money spent on an environment: Cost Explorer's figures of its tag, by service and group of usage types.

Cost Explorer bills each page of an answer (0.01 USD, its FAQ, read 2026-11-28), so one question is asked, and
nothing is asked again. Its data is up to 24 hours late. It knows a tag only from the day on which the tag was
activated for cost allocation (AWS Billing User Guide, "Activating user-defined cost allocation tags").
"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.config.plain_text import one_line

USD_PER_REQUEST = 0.01
OLDEST = dt.timedelta(days=395)
"""Reach of the API into the past: 13 months (Cost Management User Guide, "Best practices for the API")."""
MOST_PAGES = 50
"""Limit of an answer; more would be an environment with tens of thousands of usage types."""
_METRIC = "UnblendedCost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One group of usage types of one service."""

    service: str
    usage: str
    """`BoxUsage`, `SpotUsage`, `Cluster`, `NatGateway`: the usage type without Region and what follows."""
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Cost that was billed, before credits, refunds and tax."""

    since: dt.date
    until: dt.date
    """The first day that is not in it."""
    rows: tuple[Spent, ...]
    """The dearest first."""
    estimated: bool
    """AWS may still correct some of it."""
    requests: int

    @property
    def days(self) -> int:
        return (self.until - self.since).days

    @property
    def usd(self) -> float:
        """The sum."""
        return sum(row.usd for row in self.rows)

    @property
    def fee(self) -> float:
        """USD that the question itself costs."""
        return self.requests * USD_PER_REQUEST


def spending(account: Account, name: str, since: dt.date, until: dt.date) -> Spending:
    """Return the cost of resources with an environment's tag, from one day to before another.

    Needs `ce:GetCostAndUsage`, which shows the cost of the whole account.

    Raises:
        AccountError: Cost Explorer refuses, is not switched on, or answers what cannot be read.
    """
    sums: dict[tuple[str, str], float] = defaultdict(float)
    estimated, requests = False, 0
    try:
        for page in _pages(account, name, since, until):
            requests += 1
            for day in page.get("ResultsByTime", ()):
                estimated = estimated or bool(day.get("Estimated"))
                for group in day.get("Groups", ()):
                    service, usage = group["Keys"]
                    amount = group["Metrics"][_METRIC]
                    if amount["Unit"] != "USD":
                        raise AccountError(f"Cost Explorer answers in {one_line(amount['Unit'])}, not in USD")
                    sums[one_line(service), usage_group(usage)] += float(amount["Amount"])
    except AWS_ERRORS as error:
        raise AccountError(explain(error)) from None
    except (LookupError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise AccountError(one_line(f"an answer of Cost Explorer cannot be read ({what})")) from None
    rows = [
        Spent(service=service, usage=usage, usd=usd)
        for (service, usage), usd in sorted(sums.items(), key=lambda item: (-item[1], item[0]))
        if usd
    ]
    return Spending(since=since, until=until, rows=tuple(rows), estimated=estimated, requests=requests)


def usage_group(usage_type: str) -> str:
    """`BoxUsage` of `USW2-BoxUsage:TYPE`; `NatGateway` of `NatGateway-Hours`."""
    return re.split(r"[:-]", re.sub(_REGION, "", one_line(usage_type)), maxsplit=1)[0]


_REGION = r"^(?:[A-Z]{2,4}\d?|[a-z]{2}(?:-[a-z]+)+-\d)-"
"""Prefix of usage types outside of us-east-1: `USW2-`, `EU-`, of some services `us-west-2-`."""


def _pages(account: Account, name: str, since: dt.date, until: dt.date) -> Iterator[dict[str, Any]]:
    # one endpoint for all Regions of a partition
    client = account.client("ce", "cn-northwest-1" if account.region.startswith("cn-") else "us-east-1")
    billed = {"Not": {"Dimensions": {"Key": "RECORD_TYPE", "Values": ["Credit", "Refund", "Tax"]}}}
    ours = {"Tags": {"Key": ENVIRONMENT_TAG, "Values": [name], "MatchOptions": ["EQUALS"]}}
    token: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        page = client.get_cost_and_usage(
            TimePeriod={"Start": str(since), "End": str(until)},
            Granularity="MONTHLY",
            Metrics=[_METRIC],
            Filter={"And": [ours, billed]},
            GroupBy=[{"Type": "DIMENSION", "Key": key} for key in ("SERVICE", "USAGE_TYPE")],
            **token,
        )
        yield page
        if not page.get("NextPageToken"):
            return
        token = {"NextPageToken": page["NextPageToken"]}
    raise AccountError(f"Cost Explorer answers in more than {MOST_PAGES} pages: ask for fewer days")
