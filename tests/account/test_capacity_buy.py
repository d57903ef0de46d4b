"""Buying an offer: asked for, once, within a limit, written into the file; or not bought, and said so."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError, SSLError
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
ACCOUNT = "111122223333"
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


def test_bought_once_and_written(shop: Shop, file: Path) -> None:
    before = file.read_text()
    ended = run(file, "--yes", "--max-usd", "100000", "--json")
    assert ended.exit_code == 0, ended.output
    assert shop.bought == [{"CapacityBlockOfferingId": "cb-1", "InstancePlatform": "Linux/UNIX"}]
    assert file.read_text() == before.replace("cr-0123456789abcdef0 # replace", f"{BOUGHT}")
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


@pytest.mark.parametrize("most", ["nan", "inf", "-inf"])
def test_a_limit_that_is_none_is_refused(shop: Shop, file: Path, most: str) -> None:
    ended = run(file, "--yes", f"--max-usd={most}")
    assert ended.exit_code == 2 and "--max-usd" in ended.output and shop.bought == []


def test_a_price_that_changes_while_a_person_thinks_is_asked_about_again(
    shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def thinks(*_: Any, **__: Any) -> bool:
        shop.offers = then
        return True

    monkeypatch.setattr("typer.confirm", thinks)
    then = [("cb-1", "us-east-2b", "100001")]
    dearer = run(file)
    assert dearer.exit_code == 1 and "costs 100,001.00 USD now, not 100,000.00" in dearer.output
    shop.offers, then = [("cb-1", "us-east-2b", "100000")], []
    gone = run(file)
    assert gone.exit_code == 1 and "cb-1 is not offered (any more)" in gone.output
    assert shop.bought == [] and "cr-0123456789abcdef0" in file.read_text()
    shop.offers, then = [("cb-1", "us-east-2b", "100000")], [("cb-9", "us-east-2b", "100000")]
    assert run(file).exit_code == 0  # the same under another name
    assert [one["CapacityBlockOfferingId"] for one in shop.bought] == ["cb-9"]


@pytest.mark.parametrize("change", ["text", "gone", "anchor"])
def test_a_file_that_changes_under_way_does_not_lose_what_was_bought(
    shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """After money was spent nothing may say that nothing was bought."""
    text = file.read_text()
    changed = {
        "text": "a: [b",
        "gone": None,
        "anchor": text.replace("    capacity:\n      kind", "    capacity: &one\n      kind") + "x: *one\n",
    }[change]

    def sold(asked: dict[str, Any]) -> dict[str, Any]:
        file.unlink() if changed is None else file.write_text(changed)
        return {"CapacityReservations": [{"CapacityReservationId": BOUGHT}]}

    shop.sells = sold
    ended = run(file, "--yes", "--max-usd", "100000", "--json")
    assert ended.exit_code == 1 and f"{BOUGHT} IS BOUGHT" in ended.output
    assert "nothing was bought" not in ended.output and "node_groups.train.capacity" in ended.output
    assert (file.read_text() if file.exists() else None) == changed


@pytest.mark.parametrize("said", [{}, {"CapacityReservations": []}, {"CapacityReservations": [{}]}])
def test_an_answer_without_an_id_is_looked_into(shop: Shop, file: Path, said: dict[str, Any]) -> None:
    before = file.read_text()
    shop.sells = lambda _: said
    ended = run(file, "--yes", "--max-usd", "100000")
    assert ended.exit_code == 3 and "aws ec2 describe-capacity-reservations" in ended.output
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), 3, "whether cb-1 was bought is not known"),
        (SSLError(endpoint_url="https://ec2", error="record"), 3, "whether cb-1 was bought is not known"),
        (refusal("RequestLimitExceeded", "", "PurchaseCapacityBlock"), 1, "AWS throttles such requests"),
        (refusal("InternalError", "", "PurchaseCapacityBlock"), 1, "nothing was bought"),
    ],
)  # fmt: skip
def test_a_purchase_that_breaks_off(
    shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, says: str
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(shop.account.client("ec2", once=True), "purchase_capacity_block", fails)
    ended = run(file, "--yes", "--max-usd", "100000")
    assert ended.exit_code == code and says in ended.output and "8 attempts" not in ended.output


def test_a_plan_of_this_name_may_be_the_one_of_a_lost_answer(shop: Shop, tmp_path: Path) -> None:
    def taken(_: dict[str, Any]) -> dict[str, Any]:
        raise refusal("ResourceInUse", "Training plan exists", "CreateTrainingPlan")

    shop.sells = taken
    prod = Path(shutil.copy(ROOT / "environments" / "prod.yaml", tmp_path / "prod.yaml"))
    ended = run(prod, "--yes", "--max-usd", "100000")
    assert (
        ended.exit_code == 1
        and "describe-training-plan --training-plan-name prod-train-20270110" in ended.output
    )


def test_less_than_was_asked_for_is_bought_only_by_name(shop: Shop, file: Path) -> None:
    shop.changes = {"InstanceCount": 2}
    ended = run(file, "--yes", "--max-usd", "100000")
    assert ended.exit_code == 1 and "nothing is offered in use2-az2" in ended.output and shop.bought == []
    named = run(file, "--yes", "--max-usd", "100000", "--offer", "cb-1")
    assert named.exit_code == 0 and "holds 2, and train has 4" in named.output


def test_a_group_larger_than_any_block_is_refused(shop: Shop, file: Path) -> None:
    file.write_text(file.read_text().replace("count: 4", "count: 80"))
    ended = run(file, "--yes", "--max-usd", "100000")
    assert ended.exit_code == 2 and "one holds 64 at most" in ended.output and shop.bought == []


def test_what_is_sold_in_other_numbers_is_said_before_money_is_spent(shop: Shop, file: Path) -> None:
    file.write_text(file.read_text().replace("count: 4", "count: 3"))
    shop.changes = {"CapacityBlockDurationHours": 504}
    ended = run(file, "--days", "15", said="n\n")
    assert "3 are wanted, and AWS sells 4 at once" in ended.output
    assert "15 days are wanted: after two weeks blocks have whole weeks" in ended.output


def test_a_link_stays_a_link_and_its_file_keeps_its_mode(shop: Shop, file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "linked" / "pcs-p6-b200.yaml"
    link.parent.mkdir()
    link.symlink_to(file)
    assert run(link, "--yes", "--max-usd", "100000").exit_code == 0
    assert link.is_symlink() and BOUGHT in file.read_text() and file.stat().st_mode & 0o777 == 0o640


def test_a_file_that_extends_another_gets_the_id_itself(shop: Shop, file: Path) -> None:
    base, over = file.read_text(), file.with_name("over.yaml")
    over.write_text("extends: pcs-p6-b200.yaml\nname: over\n")
    ended = run(over, "--yes", "--max-usd", "100000")
    assert ended.exit_code == 0, ended.output
    assert file.read_text() == base
    assert load(over).environment.node_groups["train"].capacity.id == BOUGHT  # type: ignore[union-attr]


def test_a_purchase_that_the_rules_would_refuse_is_none(shop: Shop, tmp_path: Path) -> None:
    """Both groups are in one partition, and ParallelCluster has one kind of capacity for each."""
    shipped = (ROOT / "environments" / "parallelcluster-p5.yaml").read_text()
    before = re.sub(r"us-west-2", "us-east-2", re.sub("usw2", "use2", shipped))
    before = before.replace("region:", f'account: "{ACCOUNT}"\nregion:', 1)
    cluster = tmp_path / "p5.yaml"
    cluster.write_text(before)
    ended = run(cluster, "--group", "reserved", "--yes", "--max-usd", "100000")
    assert ended.exit_code == 2 and "PCL015" in ended.output and "nothing was bought" in ended.output
    assert shop.bought == [] and cluster.read_text() == before


def _block(created: datetime | None = None, **more: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": BOUGHT,
        "ReservationType": "capacity-block",
        "InstanceType": "p6-b200.48xlarge",
        "AvailabilityZoneId": "use2-az2",
        "TotalInstanceCount": 4,
        "State": "payment-pending",
        "StartDate": NEXT,
        "CreateDate": created or datetime.now(UTC),
        **more,
    }


def _lost(shop: Shop) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """AWS sells, and the answer is lost."""

    def sells(_: dict[str, Any]) -> dict[str, Any]:
        shop.sold.append(_block())
        raise ReadTimeoutError(endpoint_url="https://ec2")

    return sells


BUY = ("--yes", "--max-usd", "100000")


def test_a_lost_answer_never_buys_twice(shop: Shop, file: Path) -> None:
    shop.sells = _lost(shop)
    before = file.read_text()
    lost = run(file, *BUY)
    assert lost.exit_code == 3 and f"ultracluster capacity buy {file} --settle" in lost.output
    again = run(file, *BUY, "--again")
    assert (
        again.exit_code == 2 and f"(process {os.getpid()} on " in again.output and "--settle" in again.output
    )
    assert len(shop.bought) == 1 and file.read_text() == before

    settled = run(file, "--settle")
    assert settled.exit_code == 0, settled.output
    assert load(file).environment.node_groups["train"].capacity.id == BOUGHT  # type: ignore[union-attr]
    [entry] = map(json.loads, (file.parent / "pcs-p6-b200.ledger.jsonl").read_text().splitlines())
    assert (entry["id"], entry["usd"], entry["subject"]) == (BOUGHT, 100000, "cb-1")
    none = run(file, "--settle")
    assert none.exit_code == 2 and "there is no purchase to settle" in none.output and len(shop.bought) == 1


def test_a_lost_answer_on_another_machine_is_seen_in_the_account(shop: Shop, file: Path) -> None:
    """A job in CI has neither intent nor ledger, and a checkout as young as itself."""
    shop.sold = [_block(datetime.now(UTC) - timedelta(hours=3))]
    ended = run(file, *BUY)
    assert ended.exit_code == 2 and f"the account bought {BOUGHT}" in ended.output and shop.bought == []
    shop.sold = [_block(datetime.now(UTC) - timedelta(days=30)), _block(StartDate=NEXT + timedelta(days=1))]
    shop.sold += [_block(AvailabilityZoneId="use2-az1")]
    assert run(file, *BUY).exit_code == 0


def test_a_plan_of_the_same_start_is_seen_in_the_account(shop: Shop, tmp_path: Path) -> None:
    prod = Path(shutil.copy(ROOT / "environments" / "prod.yaml", tmp_path / "prod.yaml"))
    part = {
        "ReservedCapacityArn": ARN.replace("training-plan", "reserved-capacity"),
        "InstanceType": "ml.p5en.48xlarge", "AvailabilityZoneId": "use2-az2", "TotalInstanceCount": 16,
        "Status": "Pending",
    }  # fmt: skip
    row = {"TrainingPlanArn": ARN, "TrainingPlanName": "prod-train-20270110", "Status": "Pending"}
    shop.plans = [{**row, "ReservedCapacitySummaries": [part]}]
    ended = run(prod, *BUY)
    assert ended.exit_code == 2 and f"the account bought {ARN}" in ended.output and shop.bought == []
    assert run(prod, *BUY, "--again").exit_code == 0


def test_nothing_is_settled_before_the_account_can_show_it(
    shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.fails = ReadTimeoutError(endpoint_url="https://ec2")
    assert run(file, *BUY).exit_code == 3
    early = run(file, "--settle")
    assert early.exit_code == 3 and "does not show it yet" in early.output
    monkeypatch.setattr("ultracluster.cli.capacity_settle.VISIBLE", timedelta(0))
    late = run(file, "--settle")
    assert late.exit_code == 1 and "nothing was bought" in late.output
    shop.fails = None
    assert run(file, *BUY).exit_code == 0 and len(shop.bought) == 2


def test_the_limit_holds_for_all_purchases_of_the_ledger(shop: Shop, file: Path) -> None:
    assert run(file, *BUY).exit_code == 0
    second = run(file, *BUY, "--again")
    assert second.exit_code == 2 and "together more than --max-usd 100,000.00" in second.output
    assert run(file, "--yes", "--max-usd", "200000", "--again").exit_code == 0 and len(shop.bought) == 2
    assert run(file, "--yes", "--max-usd", "299999", "--again").exit_code == 2 and len(shop.bought) == 2


def test_two_at_once_buy_once(shop: Shop, file: Path) -> None:
    seen: list[Result] = []

    def sells(_: dict[str, Any]) -> dict[str, Any]:
        seen.append(run(file, *BUY, "--again"))
        return {"CapacityReservations": [{"CapacityReservationId": BOUGHT}]}

    shop.sells = sells
    assert run(file, *BUY).exit_code == 0 and len(shop.bought) == 1
    assert seen[0].exit_code == 2 and f"`capacity buy` (process {os.getpid()}" in seen[0].output


@pytest.mark.parametrize("point", ["before the call", "during the call"])
def test_a_process_that_is_killed_leaves_its_intent(
    shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    class Killed(BaseException):
        """As by kill -9: nothing of ours runs after it."""

    def killed(*_: Any, **__: Any) -> Any:
        raise Killed

    target = "ultracluster.account.capacity_buy.buy"
    if point == "before the call":
        monkeypatch.setattr(target, killed)
    else:
        monkeypatch.setattr(shop.account.client("ec2", once=True), "purchase_capacity_block", killed)
    with pytest.raises(Killed):
        run(file, *BUY)
    monkeypatch.undo()
    monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: shop.account)
    ended = run(file, *BUY)
    assert ended.exit_code == 2 and "ended without an answer" in ended.output and shop.bought == []


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            ".pcs-p6-b200.intent",
            '{"intent": {"action": "capa',
            "may record an action whose answer never came",
        ),
        (
            "pcs-p6-b200.ledger.jsonl",
            '{"usd": 1}\n{"us',
            "pcs-p6-b200.ledger.jsonl:2: not a line of the ledger",
        ),
    ],
)
def test_a_torn_record_stops_it(shop: Shop, file: Path, name: str, content: str, says: str) -> None:
    (file.parent / name).write_text(content)
    ended = run(file, *BUY)
    assert ended.exit_code == 2 and says in ended.output and shop.bought == []


def test_a_ledger_that_is_a_link_stops_it(shop: Shop, file: Path) -> None:
    victim = file.parent / "victim"
    victim.write_text("")
    (file.parent / "pcs-p6-b200.ledger.jsonl").symlink_to(victim)
    ended = run(file, *BUY)
    assert ended.exit_code == 2 and "is a link" in ended.output and shop.bought == []
    assert victim.read_text() == ""


def test_an_id_that_was_not_read_is_not_overwritten(shop: Shop, file: Path) -> None:
    other = "cr-0aaaaaaaaaaaaaaaa"

    def sells(_: dict[str, Any]) -> dict[str, Any]:
        file.write_text(file.read_text().replace("cr-0123456789abcdef0", other))
        return {"CapacityReservations": [{"CapacityReservationId": BOUGHT}]}

    shop.sells = sells
    ended = run(file, *BUY)
    assert ended.exit_code == 1 and f"{BOUGHT} IS BOUGHT" in ended.output and other in file.read_text()
    assert BOUGHT in (file.parent / "pcs-p6-b200.ledger.jsonl").read_text()
