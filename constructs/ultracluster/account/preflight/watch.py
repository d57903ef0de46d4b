"""Who watches the account: CloudTrail, GuardDuty and AWS Config, which docs/security.md expects of it.

No deploy needs them, so nothing here is red, and what cannot be asked does not count as a question that
failed: in many organizations another account runs them, and only that one may ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, AccountError, explain
from ultracluster.account.preflight.rows import Question, Row, Situation

PAGE = "docs/security.md, What the account must have"


def questions(situation: Situation) -> Iterator[Question]:
    for what, ask in (("CloudTrail", _trails), ("GuardDuty", _detectors), ("AWS Config", _recorders)):
        yield Question("account", what, lambda what=what, ask=ask: _warning(situation, what, ask))


def _warning(situation: Situation, what: str, ask: Callable[[Situation], tuple[str, str]]) -> Iterator[Row]:
    """One row: `ask` gives what is on, and what was looked at where nothing is."""
    try:
        on, off = ask(situation)
    except (AccountError, *AWS_ERRORS) as error:
        yield Row(what, "unknown", explain(error), f"ask who runs the account's security: {PAGE}")
        return
    if on:
        yield Row(what, "green", on)
    else:
        yield Row(what, "yellow", off, f"switch it on, or know who watches instead: {PAGE}")


def _trails(situation: Situation) -> tuple[str, str]:
    cloudtrail, region = situation.client("cloudtrail"), situation.account.region
    trails: list[dict[str, Any]] = cloudtrail.describe_trails(includeShadowTrails=True)["trailList"]
    silent: list[str] = []
    unread: Exception | None = None
    for trail in trails:
        name = str(trail.get("Name", ""))
        try:
            status = cloudtrail.get_trail_status(Name=trail.get("TrailARN") or name)
        except AWS_ERRORS as error:  # a trail of the organization may show nothing but its name
            unread = error
            continue
        if status.get("IsLogging"):
            return f"trail {name} logs what is done in {region}", ""
        silent.append(name)
    if unread:
        raise unread
    if silent:
        return "", f"{', '.join(silent)} {'does' if len(silent) == 1 else 'do'} not log"
    return "", f"no trail logs what is done in {region}; a data store of CloudTrail Lake is not looked for"


def _detectors(situation: Situation) -> tuple[str, str]:
    guardduty, region = situation.client("guardduty"), situation.account.region
    ids = [
        identifier
        for page in guardduty.get_paginator("list_detectors").paginate()
        for identifier in page["DetectorIds"]
    ]
    states = [str(guardduty.get_detector(DetectorId=identifier).get("Status", "")) for identifier in ids]
    if "ENABLED" in states:
        return f"looks for threats in {region}", ""
    return (
        "",
        f"its detector in {region} is {states[0] or 'in no state'}" if states else f"is off in {region}",
    )


def _recorders(situation: Situation) -> tuple[str, str]:
    config, region = situation.client("config"), situation.account.region
    status: list[dict[str, Any]] = config.describe_configuration_recorder_status()[
        "ConfigurationRecordersStatus"
    ]
    if any(one.get("recording") for one in status):
        return f"records the account's resources in {region}", ""
    return "", f"its recorder in {region} is stopped" if status else f"has no recorder in {region}"
