"""Capacity of the account, for a move to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.aws import AccountError
from ultracluster.capacity.owned import owned
from ultracluster.cli.main import app

pytestmark = pytest.mark.usefixtures("aws_account")

START = datetime(2027, 1, 1, 11, 30, tzinfo=UTC)
BLOCK: dict[str, Any] = {
    "CapacityReservationId": "cr-0fedcba9876543210",
    "AvailabilityZone": "us-east-2a",
    "InstanceType": "p6-b200.48xlarge",
    "TotalInstanceCount": 4,
    "ReservationType": "capacity-block",
    "State": "scheduled",
    "StartDate": START,
}
ARN = "arn:aws:sagemaker:us-east-2:123456789012:training-plan/q1"
PLAN: dict[str, Any] = {
    "TrainingPlanArn": ARN,
    "TrainingPlanName": "q1",
    "Status": "Scheduled",
    "TotalInstanceCount": 16,
    "StartTime": START,
    "ReservedCapacitySummaries": [
        {
            "ReservedCapacityArn": f"{ARN}/reserved-capacity/one",
            "InstanceType": "ml.p5en.48xlarge",
            "TotalInstanceCount": 16,
            "Status": "Scheduled",
            "AvailabilityZone": "us-east-2b",
        }
    ],
}


def an_account(block: Any = None, plan: Any = None) -> aws.Account:
    account = known_account("us-east-2")

    def said(what: Any) -> Any:
        def speak(_: dict[str, Any]) -> Any:
            if isinstance(what, Exception):
                raise what
            return what

        return speak

    answer(account.client("ec2"), "DescribeCapacityReservations", said(block))
    answer(account.client("sagemaker"), "DescribeTrainingPlan", said(plan))
    return account


def test_a_block_and_a_plan() -> None:
    account = an_account({"CapacityReservations": [BLOCK]}, PLAN)
    block = owned(account, "cr-0fedcba9876543210")
    assert (block.kind, block.zone_id, block.count, block.starts) == ("capacity-block", "use2-az1", 4, START)
    plan = owned(account, ARN)
    assert (plan.kind, plan.zone_id, plan.instance_type, plan.count) == (
        "training-plan", "use2-az2", "p5en.48xlarge", 16,
    )  # fmt: skip


def test_what_has_begun_has_no_start_to_wait_for() -> None:
    row = {**BLOCK, "State": "active", "ReservationType": "default"}
    found = owned(an_account({"CapacityReservations": [row]}), "cr-0fedcba9876543210")
    assert (found.kind, found.starts) == ("reservation", None)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({"CapacityReservations": []}, "there is no cr-0fedcba9876543210 in us-east-2"),
        (
            refusal("InvalidCapacityReservationId.NotFound", "", "DescribeCapacityReservations"),
            "there is no cr-0fedcba9876543210",
        ),
        ({"CapacityReservations": [{**BLOCK, "State": "payment-failed"}]}, "is payment-failed"),
        (refusal("UnauthorizedOperation", "", "DescribeCapacityReservations"), "not allowed"),
    ],
)
def test_a_block_that_is_of_no_use(block: Any, says: str) -> None:
    with pytest.raises(AccountError, match=says):
        owned(an_account(block), "cr-0fedcba9876543210")


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (refusal("ResourceNotFound", "", "DescribeTrainingPlan"), "there is no arn:"),
        ({**PLAN, "Status": "Expired"}, "is expired"),
        ({**PLAN, "Status": "Pending", "ReservedCapacitySummaries": []}, "no instances"),
    ],
)
def test_a_plan_that_is_of_no_use(plan: Any, says: str) -> None:
    with pytest.raises(AccountError, match=says):
        owned(an_account(plan=plan), ARN)


def test_move_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    account = an_account({"CapacityReservations": [BLOCK]})
    monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: account)
    monkeypatch.chdir(ROOT)
    ended = CliRunner().invoke(app, ["move", "pcs-p6-b200", "--to", "capacity:cr-0fedcba9876543210"])
    assert ended.exit_code == 0 and "the Capacity Block cr-0fedcba9876543210 takes its place" in " ".join(
        ended.stdout.split()
    )
