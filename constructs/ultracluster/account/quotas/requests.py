"""Increases of service quotas: what to ask for, what is asked already, and the asking.

Asking twice does no harm: a quota with an open request is left as it is, and its state is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain
from ultracluster.account.quotas.values import QuotaState

State = Literal["would", "filed", "open", "approved", "not adjustable", "failed"]
_CLOSED = {"DENIED", "NOT_APPROVED", "CASE_CLOSED", "INVALID_REQUEST"}
"""Statuses after which a quota may be asked for again (Service Quotas API reference, RequestStatus)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One quota that is too small, and how far its increase is."""

    service: str
    code: str
    name: str
    current: float
    asked: float
    state: State
    scarce: bool = False
    """It counts instances or their vCPUs, of which AWS asks for a reason."""
    status: str = ""
    """What Service Quotas says of the newest request."""
    why: str = ""
    id: str = ""
    when: datetime | None = None


def plan_requests(account: Account, states: Iterable[QuotaState]) -> list[Request]:
    """Return what is asked, and what would be; nothing is changed."""
    return [_planned(account, state) for state in states if state.short]


def file_requests(account: Account, requests: Sequence[Request]) -> list[Request]:
    """File those that would be; one that fails costs the others nothing."""
    return [_filed(account, request) if request.state == "would" else request for request in requests]


def _planned(account: Account, state: QuotaState) -> Request:
    assert state.value is not None  # short is only what has a value
    value = state.value
    request = Request(
        service=state.need.quota.service,
        code=value.code,
        name=value.name,
        current=value.amount,
        asked=state.wanted,
        state="would",
        scarce=state.need.unit in ("instances", "vCPUs") and state.need.quota.service in ("ec2", "sagemaker"),
    )
    if not value.adjustable:
        return replace(
            request, state="not adjustable", why="Service Quotas does not raise it: ask AWS Support"
        )
    try:
        newest = _newest(account, request)
    except (AccountError, *AWS_ERRORS) as error:
        # who cannot see whether it was asked must not ask twice
        return replace(request, state="failed", why=explain(error))
    return _tracked(request, newest) if newest else request


def _newest(account: Account, request: Request) -> dict[str, Any] | None:
    pages = (
        account.client("service-quotas")
        .get_paginator("list_requested_service_quota_change_history_by_quota")
        .paginate(ServiceCode=request.service, QuotaCode=request.code)
    )
    rows = [row for page in pages for row in page["RequestedQuotas"]]
    return max(rows, key=lambda row: row["Created"].timestamp(), default=None)


def _tracked(request: Request, newest: dict[str, Any]) -> Request:
    status, desired = str(newest.get("Status", "")), float(newest.get("DesiredValue", 0))
    current = replace(request, status=status, id=str(newest.get("Id", "")), when=newest.get("Created"))
    if status == "APPROVED":
        enough = desired >= request.asked
        why = f"approved for {desired:g}, not in effect yet" if enough else ""
        return replace(current, state="approved", why=why) if enough else request
    if status in _CLOSED:
        return replace(current, why=f"the request for {desired:g} was closed: {status}")
    short = f" of the {request.asked:g} needed" if desired < request.asked else ""
    return replace(current, state="open", why=f"asked for {desired:g}{short}")


def _filed(account: Account, request: Request) -> Request:
    quotas = account.client("service-quotas")
    try:
        answer = quotas.request_service_quota_increase(
            ServiceCode=request.service, QuotaCode=request.code, DesiredValue=request.asked
        )
    except AWS_ERRORS as error:
        if code(error) == "ResourceAlreadyExistsException":
            return replace(request, state="open", why="it was requested a moment ago")
        return replace(request, state="failed", why=explain(error))
    filed = answer["RequestedQuota"]
    return replace(
        request, state="filed", status=str(filed.get("Status", "")), id=str(filed.get("Id", "")),
        when=filed.get("Created"), why="",
    )  # fmt: skip
