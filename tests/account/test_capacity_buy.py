"""Buying an offer: asked for, once, within a limit, written into the file; or not bought, and said so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal
from moto import mock_aws
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account import aws
from ultracluster.account.capacity_buy import plan_name
from ultracluster.account.capacity_search import Offer, Segment, Wish
from ultracluster.cli.main import app
from ultracluster.config import load

NEXT = datetime(2027, 1, 10, 11, 30, tzinfo=UTC)
BOUGHT = "cr-0fedcba9876543210"
ARN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/prod-train-20270110"


@pytest.fixture(autouse=True)
def aws_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        yield


class Shop:
    """An account in which offers are made and bought."""

    def __init__(self) -> None:
        self.account = known_account("us-east-2")
        self.bought: list[dict[str, Any]] = []
        self.offers: list[tuple[str, str, str]] = [("cb-1", "us-east-2b", "100000")]
        self.held: list[str] = []
        self.fails: Exception | None = None
        ec2, sagemaker = self.account.client("ec2"), self.account.client("sagemaker")
        answer(ec2, "DescribeCapacityBlockOfferings", self._blocks)
        answer(ec2, "DescribeCapacityReservations", self._reservations)
        answer(sagemaker, "SearchTrainingPlanOfferings", self._plans)
        answer(sagemaker, "DescribeTrainingPlan", self._plan)
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
        if self.fails:
            raise self.fails
        return {"CapacityReservations": [{"CapacityReservationId": BOUGHT, "State": "payment-pending"}]}

    def _buy_plan(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.bought.append(asked)
        return {"TrainingPlanArn": ARN}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop()
    monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: made.account)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "environments" / "pcs-p6-b200.yaml", tmp_path / "pcs-p6-b200.yaml"))


def run(file: Path, *words: str, said: str = "") -> Result:
    return CliRunner().invoke(app, ["capacity", "buy", str(file), *words], input=said)


def test_bought_once_and_written(shop: Shop, file: Path) -> None:
    before = file.read_text()
    ended = run(file, "--yes", "--max-usd", "100000", "--json")
    assert ended.exit_code == 0, ended.output
    assert shop.bought == [{"CapacityBlockOfferingId": "cb-1", "InstancePlatform": "Linux/UNIX"}]
    assert file.read_text() == before.replace("cr-0123456789abcdef0", BOUGHT)
    said = json.loads(ended.stdout)
    assert (said["id"], said["upfront_fee"], said["zone_id"]) == (BOUGHT, 100000, "use2-az2")
    assert load(file).environment.node_groups["train"].capacity.id == BOUGHT  # type: ignore[union-attr]


def test_a_person_sees_the_sum_and_says_yes(shop: Shop, file: Path) -> None:
    no = run(file, said="n\n")
    assert no.exit_code == 2 and "100,000.00 USD are paid now and not given back" in no.output
    assert "nothing was bought" in no.output and shop.bought == []
    assert run(file).exit_code == 2 and shop.bought == []  # nobody answers
    yes = run(file, said="y\n")
    assert yes.exit_code == 0 and f"bought: {BOUGHT}" in yes.stdout and len(shop.bought) == 1


def test_a_training_plan_has_a_name_that_a_second_request_meets(shop: Shop, tmp_path: Path) -> None:
    prod = Path(shutil.copy(ROOT / "environments" / "prod.yaml", tmp_path / "prod.yaml"))
    ended = run(prod, "--yes", "--max-usd", "100000")
    assert ended.exit_code == 0, ended.output
    assert shop.bought == [{"TrainingPlanName": "prod-train-20270110", "TrainingPlanOfferingId": "cb-1"}]
    assert f"arn: {ARN}\n" in prod.read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--yes"], "pass --max-usd"),
        (["--yes", "--max-usd", "99999.99"], "more than --max-usd 99,999.99"),
        (["--max-usd", "1"], "more than --max-usd"),
        (["--group", "login"], "nothing is sold for a group `login`; there is train"),
        (["--after", "soon"], "--after is a day"),
    ],
)
def test_guards(shop: Shop, file: Path, words: list[str], says: str) -> None:
    ended = run(file, *words, said="y\n")
    assert ended.exit_code == 2 and says in ended.output and shop.bought == []


def test_an_offer_that_has_gone(shop: Shop, file: Path) -> None:
    before = file.read_text()
    shop.offers = [("cb-2", "us-east-2b", "120000")]
    ended = run(file, "--offer", "cb-1", "--yes", "--max-usd", "200000")
    assert (
        ended.exit_code == 1 and "cb-1 is not offered (any more)" in ended.output and "cb-2" in ended.output
    )
    shop.fails = refusal("InvalidCapacityBlockOfferingId.NotFound", "gone", "PurchaseCapacityBlock")
    late = run(file, "--offer", "cb-2", "--yes", "--max-usd", "200000")  # between the search and the purchase
    assert late.exit_code == 1 and "nothing was bought" in late.output and len(shop.bought) == 1
    assert file.read_text() == before


def test_offers_of_other_zones_are_not_taken(shop: Shop, file: Path) -> None:
    shop.offers = [("cb-3", "us-east-2a", "1")]
    none = run(file, "--yes", "--max-usd", "9")
    assert none.exit_code == 1 and "nothing is offered in use2-az2" in none.output
    named = run(file, "--offer", "cb-3", "--yes", "--max-usd", "9")
    assert named.exit_code == 2 and "--to use2-az1` plans the move" in named.output and shop.bought == []


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ReadTimeoutError(endpoint_url="https://ec2"), 3, "whether cb-1 was bought is not known"),
        (ConnectTimeoutError(endpoint_url="https://ec2"), 1, "nothing was bought"),
    ],
)
def test_no_answer(
    shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, says: str
) -> None:
    """It is sent once: a second request could buy a second block."""
    sent: list[None] = []

    def fails(*_: Any, **__: Any) -> Any:
        sent.append(None)
        raise error

    client = shop.account.client("ec2", once=True)
    monkeypatch.setattr(client, "purchase_capacity_block", fails)
    before = file.read_text()
    ended = run(file, "--yes", "--max-usd", "100000")
    assert ended.exit_code == code and says in ended.output and len(sent) == 1
    assert file.read_text() == before
    assert client.meta.config.retries["total_max_attempts"] == 1
    assert shop.account.client("ec2").meta.config.retries["total_max_attempts"] > 1


def test_capacity_that_is_there_is_not_bought_twice(shop: Shop, file: Path) -> None:
    shop.held = ["cr-0123456789abcdef0"]
    ended = run(file, "--yes", "--max-usd", "100000")
    assert ended.exit_code == 2 and "has cr-0123456789abcdef0 already" in ended.output and shop.bought == []
    again = run(file, "--yes", "--max-usd", "100000", "--again")
    assert again.exit_code == 0 and len(shop.bought) == 1


def test_a_file_that_cannot_take_the_id_stops_it(shop: Shop, file: Path) -> None:
    """Before money is spent: the group's capacity is shared by an anchor."""
    text = file.read_text().replace("    capacity:\n      kind", "    capacity: &block\n      kind")
    file.write_text(
        text.replace(
            "\nsoftware:",
            "  more:\n    role: compute\n    instance_type: p6-b200.48xlarge\n    count: 1\n"
            "    partition: train\n"
            "    image: ami-0a1b2c3d4e5f60718\n    capacity: *block\n\nsoftware:",
        )
    )
    ended = run(file, "--group", "train", "--yes", "--max-usd", "100000")
    assert ended.exit_code == 2 and "by hand" in ended.output and shop.bought == []
    assert "name one of the groups by --group: train, more" in run(file, "--yes", "--max-usd", "1").output


def test_names_of_plans_are_such_as_sagemaker_takes() -> None:
    wish = Wish(
        kind="training-plan", instance_type="p5.48xlarge", count=1, hours=24, after=NEXT, group="a" * 60
    )
    segment = Segment(zone="use2-az1", start=NEXT, end=None, count=1)
    offer = Offer(wish=wish, id="x", segments=(segment,), hours=24, price=1, currency="USD")
    name = plan_name(offer, "prod_1")
    assert len(name) <= 64 and name.startswith("prod-1-aaa") and name.endswith("-20270110")
