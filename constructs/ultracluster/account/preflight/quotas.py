"""Service quotas against need and use, service by service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ultracluster.account.preflight.rows import ALLOW, Question, Row, Situation
from ultracluster.account.quotas.values import QuotaState, quota_states
from ultracluster.model.quota_needs import Need, needs


def questions(situation: Situation) -> Iterator[Question]:
    by_service: dict[str, list[Need]] = defaultdict(list)
    for need in needs(situation.cluster):
        by_service[need.quota.service].append(need)
    for service, wanted in by_service.items():
        yield Question(
            "quotas",
            f"quotas of {service}",
            lambda wanted=wanted: map(judge, quota_states(situation.account, situation.cluster, wanted)),
        )


def judge(state: QuotaState) -> Row:
    """One quota as a row."""
    need, value = state.need, state.value
    if value is None:
        return Row(
            f"{need.quota.service}: {need.quota.name}",
            "unknown",
            f"not listed in this Region; needed {need.amount:g} {need.unit} ({need.why})",
            "unknown is not zero: look for it in the Service Quotas console",
            state,
        )
    what = f"{need.quota.service}: {value.name}"
    parts = [f"quota {value.amount:g}{'' if value.applied else ' (default)'}"]
    if state.used is None:
        parts.append(f"use unknown ({state.why_unknown})")
    elif need.scope in ("region", "zone", "vpc"):
        parts.append(f"in use {state.used:g}")
    found = ", ".join([*parts, f"needed {need.amount:g} {need.unit} ({need.why})"])
    if state.short:
        do = (
            f"ask for {state.wanted:g}: --request-quotas"
            if value.adjustable
            else "cannot be raised through Service Quotas: ask AWS Support, or make the environment smaller"
        )
        return Row(what, "red", found, do, state)
    if state.used is None:
        denied = state.why_unknown.startswith("access denied")
        do = ALLOW if denied else "look its use up in the Service Quotas console"
        return Row(what, "yellow", found, do, state)
    return Row(what, "green", found, "", state)
