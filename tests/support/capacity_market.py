"""Regions in which capacity is on offer: what is asked and answered is held against botocore's models."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal

from ultracluster.account.aws import Account

AFTER = datetime(2026, 12, 1, tzinfo=UTC)
PREFIXES = {"us-east-1": "use1", "us-east-2": "use2", "us-west-2": "usw2", "eu-west-3": "euw3"}
CLOSED = "me-central-1"
"""A Region that the account has not enabled."""


class World:
    """An account with several Regions; each answers for itself, or fails."""

    def __init__(self) -> None:
        self.account: Account = known_account("us-east-2")
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.blocks: dict[str, list[dict[str, Any]]] = {}
        self.plans: dict[str, list[dict[str, Any]]] = {}
        self.held: dict[str, list[dict[str, Any]]] = {}
        self.held_plans: dict[str, list[dict[str, Any]]] = {}
        self.fails: dict[tuple[str, str], Exception] = {}
        answer(self.account.client("ec2"), "DescribeRegions", self._of("us-east-2", "regions", self._regions))
        for name in PREFIXES:
            ec2, sagemaker = self.account.client("ec2", name), self.account.client("sagemaker", name)
            answer(ec2, "DescribeAvailabilityZones", self._of(name, "zones", self._zones(name)))
            for client, operation, what, key in (
                (ec2, "DescribeCapacityBlockOfferings", "blocks", "CapacityBlockOfferings"),
                (ec2, "DescribeCapacityReservations", "held", "CapacityReservations"),
                (sagemaker, "SearchTrainingPlanOfferings", "plans", "TrainingPlanOfferings"),
                (sagemaker, "ListTrainingPlans", "held_plans", "TrainingPlanSummaries"),
            ):
                answer(client, operation, self._of(name, what, self._rows(what, name, key)))

    def empty(self) -> World:
        """As it was: clients are slow to make."""
        self.asked.clear()
        self.fails = {}
        self.blocks, self.plans, self.held, self.held_plans = {}, {}, {}, {}
        return self

    def _of(
        self, name: str, what: str, reply: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def guarded(asked: dict[str, Any]) -> dict[str, Any]:
            self.asked.append((name, what, asked))
            if (name, what) in self.fails:
                raise self.fails[name, what]
            return reply(asked)

        return guarded

    def _regions(self, _: dict[str, Any]) -> dict[str, Any]:
        rows = [{"RegionName": name, "OptInStatus": "opt-in-not-required"} for name in PREFIXES]
        return {"Regions": [*rows, {"RegionName": CLOSED, "OptInStatus": "not-opted-in"}]}

    def _zones(self, name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        rows = [
            {"ZoneName": f"{name}{letter}", "ZoneId": f"{PREFIXES[name]}-az{number}"}
            for number, letter in enumerate("abc", 1)
        ]
        # of a Local Zone that nobody has opted in to, EC2 speaks only where all are asked for
        local = [{"ZoneName": "us-east-1-atl-2a", "ZoneId": "use1-atl2-az1"}] if name == "us-east-1" else []
        return lambda asked: {
            "AvailabilityZones": [*rows, *(local if asked.get("AllAvailabilityZones") else [])]
        }

    def _rows(self, what: str, name: str, key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def reply(asked: dict[str, Any]) -> dict[str, Any]:
            rows: list[dict[str, Any]] = getattr(self, what).get(name, [])
            wanted = str(asked.get("InstanceType", "")).removeprefix("ml.")
            return {key: [one for one in rows if not wanted or _has(one, wanted)]}

        return reply


@cache
def _world() -> World:
    return World()


def world() -> World:
    """The only one, emptied."""
    return _world().empty()


def _has(row: dict[str, Any], name: str) -> bool:
    parts = row.get("ReservedCapacityOfferings", [row])
    return any(str(part["InstanceType"]).removeprefix("ml.") == name for part in parts)


def block(name: str, zone: str, price: str, **more: Any) -> dict[str, Any]:
    """Eight p5.48xlarge for two weeks."""
    return {
        "CapacityBlockOfferingId": name,
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": zone,
        "InstanceCount": 8,
        "StartDate": AFTER + timedelta(hours=11.5),
        "EndDate": AFTER + timedelta(days=14, hours=11.5),
        "CapacityBlockDurationHours": 336,
        "UpfrontFee": price,
        "CurrencyCode": "USD",
        **more,
    }


def plan(name: str, zone: str, price: str, **more: Any) -> dict[str, Any]:
    """The same as a training plan."""
    part = {
        "InstanceType": "ml.p5.48xlarge", "InstanceCount": 8, "AvailabilityZone": zone,
        "StartTime": AFTER + timedelta(days=1), "EndTime": AFTER + timedelta(days=15),
    }  # fmt: skip
    return {
        "TrainingPlanOfferingId": name,
        "TargetResources": ["hyperpod-cluster"],
        "DurationHours": 336,
        "UpfrontFee": price,
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": [part],
        **more,
    }


def denied(operation: str) -> Exception:
    return refusal("UnauthorizedOperation", "You are not authorized", operation)
