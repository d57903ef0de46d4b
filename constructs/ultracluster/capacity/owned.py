"""Capacity that the account has bought or reserved: where it is, of which type, and when."""

from __future__ import annotations

from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, code, explain
from ultracluster.moving.target import Bought

_LOST = frozenset({"cancelled", "expired", "failed", "payment-failed", "unsupported", "Failed", "Expired"})
"""States without nodes (EC2's CapacityReservationState, SageMaker's TrainingPlanStatus)."""


def owned(account: Account, name: str) -> Bought:
    """A reservation, block or training plan by its id or ARN.

    Raises:
        AccountError: there is none, it has ended, or AWS cannot be asked.
    """
    return _plan(account, name) if name.startswith("arn:") else _reservation(account, name)


def _reservation(account: Account, name: str) -> Bought:
    try:
        answer = account.client("ec2").describe_capacity_reservations(CapacityReservationIds=[name])
    except AWS_ERRORS as error:
        if code(error).startswith("InvalidCapacityReservationId"):
            raise AccountError(_none(account, name)) from None
        raise AccountError(explain(error)) from None
    if not answer["CapacityReservations"]:
        raise AccountError(_none(account, name))
    row: dict[str, Any] = answer["CapacityReservations"][0]
    _alive(name, str(row.get("State", "")))
    return Bought(
        kind="capacity-block" if row.get("ReservationType") == "capacity-block" else "reservation",
        id=name,
        region=account.region,
        zone_id=row.get("AvailabilityZoneId") or zone_ids(account).get(row.get("AvailabilityZone", ""), ""),
        instance_type=row["InstanceType"],
        count=row.get("TotalInstanceCount", 0),
        starts=row.get("StartDate") if row.get("State") in ("scheduled", "payment-pending") else None,
        ends=row.get("EndDate"),
    )


def _plan(account: Account, arn: str) -> Bought:
    try:
        row = account.client("sagemaker").describe_training_plan(TrainingPlanName=arn.rpartition("/")[2])
    except AWS_ERRORS as error:
        if code(error) in ("ResourceNotFound", "ResourceNotFoundException"):
            raise AccountError(_none(account, arn)) from None
        raise AccountError(explain(error)) from None
    _alive(arn, str(row.get("Status", "")))
    parts: list[dict[str, Any]] = row.get("ReservedCapacitySummaries", [])
    if not parts:
        raise AccountError(f"{arn} has no instances (yet): its status is {row.get('Status', 'unknown')}")
    zone = str(parts[0].get("AvailabilityZone", ""))
    return Bought(
        kind="training-plan",
        id=arn,
        region=account.region,
        zone_id=parts[0].get("AvailabilityZoneId") or zone_ids(account).get(zone, zone),
        instance_type=str(parts[0]["InstanceType"]).removeprefix("ml."),
        count=row.get("TotalInstanceCount") or sum(part.get("TotalInstanceCount", 0) for part in parts),
        starts=row.get("StartTime"),
        ends=row.get("EndTime"),
    )


def zone_ids(account: Account, region: str | None = None) -> dict[str, str]:
    """Zone names to ids, of the account's Region by default; none where they cannot be read."""
    try:
        answer = account.client("ec2", region).describe_availability_zones(AllAvailabilityZones=True)
    except AWS_ERRORS:
        return {}
    return {zone["ZoneName"]: zone["ZoneId"] for zone in answer["AvailabilityZones"] if "ZoneId" in zone}


def _alive(name: str, state: str) -> None:
    if state in _LOST:
        raise AccountError(f"{name} is {state.lower()}: no node starts from it any more")


def _none(account: Account, name: str) -> str:
    return f"there is no {name} in {account.region} of this account"
