"""An account in which capacity is offered and sold, an environment that buys, and the command."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account import aws
from ultracluster.cli.main import app

NEXT = datetime(2027, 1, 10, 11, 30, tzinfo=UTC)
BOUGHT = "cr-0fedcba9876543210"
ACCOUNT = "111122223333"
ARN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/prod-train-20270110"


class Shop:
    """An account in which offers are made and bought."""

    def __init__(self) -> None:
        self.account = known_account("us-east-2")
        self.bought: list[dict[str, Any]] = []
        self.offers: list[tuple[str, str, str]] = [("cb-1", "us-east-2b", "100000")]
        self.held: list[str] = []
        self.sold: list[dict[str, Any]] = []
        self.plans: list[dict[str, Any]] = []
        self.fails: Exception | None = None
        self.changes: dict[str, Any] = {}
        self.sells: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        ec2, sagemaker = self.account.client("ec2"), self.account.client("sagemaker")
        answer(ec2, "DescribeCapacityBlockOfferings", self._blocks)
        answer(ec2, "DescribeCapacityReservations", self._reservations)
        answer(sagemaker, "SearchTrainingPlanOfferings", self._plans)
        answer(sagemaker, "DescribeTrainingPlan", self._plan)
        answer(sagemaker, "ListTrainingPlans", lambda _: {"TrainingPlanSummaries": self.plans})
        answer(self.account.client("ec2", once=True), "PurchaseCapacityBlock", self._buy_block)
        answer(self.account.client("sagemaker", once=True), "CreateTrainingPlan", self._buy_plan)

    def _blocks(self, asked: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {
                "CapacityBlockOfferingId": name,
                "InstanceType": asked["InstanceType"],
                "InstanceCount": asked["InstanceCount"],
                "AvailabilityZone": zone,
                "StartDate": NEXT,
                "EndDate": NEXT + timedelta(days=14),
                "CapacityBlockDurationHours": 336,
                "UpfrontFee": price,
                "CurrencyCode": "USD",
                **self.changes,
            }
            for name, zone, price in self.offers
        ]
        return {"CapacityBlockOfferings": rows}

    def _plans(self, asked: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {
                "TrainingPlanOfferingId": name,
                "TargetResources": ["hyperpod-cluster"],
                "DurationHours": 336,
                "UpfrontFee": price,
                "CurrencyCode": "USD",
                "ReservedCapacityOfferings": [
                    {
                        "InstanceType": asked["InstanceType"],
                        "InstanceCount": asked["InstanceCount"],
                        "AvailabilityZone": zone,
                        "StartTime": NEXT,
                        "EndTime": NEXT + timedelta(days=14),
                    }
                ],
            }
            for name, zone, price in self.offers
        ]
        return {"TrainingPlanOfferings": rows}

    def _reservations(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "Filters" in asked:
            return {"CapacityReservations": self.sold}
        names = asked["CapacityReservationIds"]
        row = {"InstanceType": "p6-b200.48xlarge", "TotalInstanceCount": 4, "State": "active"}
        return {
            "CapacityReservations": [
                {**row, "CapacityReservationId": one} for one in names if one in self.held
            ]
        }

    def _plan(self, asked: dict[str, Any]) -> dict[str, Any]:
        raise refusal("ResourceNotFound", "", "DescribeTrainingPlan")

    def _buy_block(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.bought.append(asked)
        if self.sells:
            return self.sells(asked)
        if self.fails:
            raise self.fails
        return {"CapacityReservations": [{"CapacityReservationId": BOUGHT, "State": "payment-pending"}]}

    def _buy_plan(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.bought.append(asked)
        return self.sells(asked) if self.sells else {"TrainingPlanArn": ARN}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop()
    monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: made.account)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    text = (ROOT / "environments" / "pcs-p6-b200.yaml").read_text()
    file = tmp_path / "pcs-p6-b200.yaml"
    file.write_text(text.replace("region:", f'account: "{ACCOUNT}"\nregion:', 1))
    return file


def run(file: Path, *words: str, said: str = "") -> Result:
    return CliRunner().invoke(app, ["capacity", "buy", str(file), *words], input=said)
