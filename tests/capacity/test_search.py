"""Offers of training plans and Capacity Blocks: found, sorted, shown; not bought by a search."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.aws import Account
from ultracluster.capacity.search import Wish, search, tomorrow, wishes_for, wishes_of
from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.model import resolve

pytestmark = pytest.mark.usefixtures("aws_account")

AFTER = datetime(2026, 12, 1, tzinfo=UTC)
GOLDEN = Path(__file__).with_name("golden")


class Market:
    """An account in which offers are made."""

    def __init__(self, region: str = "us-east-2") -> None:
        self.account: Account = known_account(region)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.plans: list[dict[str, Any]] = []
        self.blocks: list[dict[str, Any]] = []
        self.refused: dict[str, Exception] = {}
        sagemaker, ec2 = self.account.client("sagemaker"), self.account.client("ec2")
        answer(sagemaker, "SearchTrainingPlanOfferings", self._plans)
        answer(ec2, "DescribeCapacityBlockOfferings", self._blocks)

    def _plans(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("plan", asked))
        if "plan" in self.refused:
            raise self.refused["plan"]
        return {"TrainingPlanOfferings": self.plans}

    def _blocks(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("block", asked))
        first = int(asked.get("NextToken", 0))  # one on each page
        more = {"NextToken": str(first + 1)} if first + 1 < len(self.blocks) else {}
        return {"CapacityBlockOfferings": self.blocks[first : first + 1], **more}


def plan(price: str, *parts: tuple[str, int], count: int = 16, hours: int = 336) -> dict[str, Any]:
    """A plan of parts, each a zone and a day of its start."""
    return {
        "TrainingPlanOfferingId": f"tpo-{price.replace('.', '')}",
        "TargetResources": ["hyperpod-cluster"],
        "DurationHours": hours,
        "UpfrontFee": price,
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": [
            {
                "InstanceType": "ml.p5en.48xlarge",
                "InstanceCount": count,
                "AvailabilityZone": zone,
                "StartTime": AFTER + timedelta(days=day),
                "EndTime": AFTER + timedelta(days=day, hours=hours // len(parts)),
            }
            for zone, day in parts
        ],
    }


def block(price: str, zone: str, day: int, count: int = 4, hours: int = 336) -> dict[str, Any]:
    return {
        "CapacityBlockOfferingId": f"cbo-{price.replace('.', '')}",
        "InstanceType": "p6-b200.48xlarge",
        "AvailabilityZone": zone,
        "InstanceCount": count,
        "StartDate": AFTER + timedelta(days=day),
        "EndDate": AFTER + timedelta(days=day, hours=hours),
        "CapacityBlockDurationHours": hours,
        "UpfrontFee": price,
        "CurrencyCode": "USD",
    }


def shipped(name: str) -> Any:
    return load(ROOT / "environments" / f"{name}.yaml").environment


def test_plans_for_hyperpod_cheapest_first() -> None:
    market = Market()
    # 16 x 336 = 5376 instance-hours
    market.plans = [
        plan("430080.0", ("us-east-2a", 1)),
        plan("408576.0", ("us-east-2b", 1), ("us-east-2b", 20)),
    ]
    found = search(market.account, wishes_of(resolve(shipped("prod")), days=14, after=AFTER))
    assert [offer.per_hour for offer in found.offers] == [76.0, 80.0]
    assert [offer.zones for offer in found.offers] == [("use2-az2",), ("use2-az1",)]
    assert [offer.fits_zone for offer in found.offers] == [True, False]
    assert market.asked == [
        (
            "plan",
            {
                "InstanceType": "ml.p5en.48xlarge",
                "InstanceCount": 16,
                "StartTimeAfter": AFTER,
                "DurationHours": 336,
                "TargetResources": ["hyperpod-cluster"],
            },
        )
    ]


def test_blocks_elsewhere_on_every_page() -> None:
    market = Market()
    market.blocks = [
        block("3000.5", "us-east-2b", 1),
        block("1000", "us-east-2b", 2),
        block("2000", "us-east-2c", 3),
    ]
    found = search(market.account, wishes_of(resolve(shipped("pcs-p6-b200")), days=14, after=AFTER))
    assert [offer.price for offer in found.offers] == [1000, 2000, 3000.5]
    assert found.offers[0].per_hour == pytest.approx(1000 / 336 / 4)
    assert {name for name, _ in market.asked} == {"block"}


def test_an_instance_type_is_looked_for_both_ways() -> None:
    market = Market()
    market.plans, market.blocks = (
        [plan("672", ("us-east-2a", 1), count=1)],
        [block("336", "us-east-2a", 1, count=1)],
    )
    found = search(market.account, wishes_for("p5.48xlarge", 1, days=14, after=AFTER))
    assert [(offer.wish.kind, offer.per_hour) for offer in found.offers] == [
        ("capacity-block", 1.0), ("training-plan", 2.0),
    ]  # fmt: skip
    assert found.offers[0].fits_zone is None
    assert wishes_for("m5.xlarge", 1, days=14, after=AFTER) == []


def test_ultraservers_are_sold_whole() -> None:
    market = Market("us-east-1")
    wish = Wish(kind="training-plan", instance_type="p6e-gb200.36xlarge", count=20, hours=24, after=AFTER)
    block_wish = Wish(
        kind="capacity-block", instance_type="p6e-gb200.36xlarge", count=9, hours=24, after=AFTER
    )
    search(market.account, [wish, block_wish])
    asked = dict(market.asked)
    assert asked["plan"]["UltraServerType"] == "ml.u-p6e-gb200x72" and asked["plan"]["UltraServerCount"] == 2
    assert asked["block"]["UltraserverType"] == "u-p6e-gb200x36" and asked["block"]["UltraserverCount"] == 1


def test_one_refusal_leaves_the_other_kind() -> None:
    market = Market()
    market.blocks = [block("336", "us-east-2a", 1, count=1)]
    market.refused["plan"] = refusal("AccessDeniedException", "", "SearchTrainingPlanOfferings")
    found = search(market.account, wishes_for("p5.48xlarge", 1, days=14, after=AFTER))
    assert len(found.offers) == 1
    ((wish, why),) = found.failures
    assert wish.kind == "training-plan" and "SearchTrainingPlanOfferings is not allowed" in why


def test_an_offer_without_a_price_or_a_place_is_left_out() -> None:
    market = Market()
    unpriced, nowhere = plan("1", ("us-east-2a", 1)), plan("2")
    del unpriced["UpfrontFee"]
    market.plans = [unpriced, nowhere, plan("5376", ("us-east-2b", 1))]
    found = search(market.account, wishes_of(resolve(shipped("prod")), days=14, after=AFTER))
    assert [offer.per_hour for offer in found.offers] == [1.0]


def test_tomorrow_is_midnight() -> None:
    assert tomorrow(datetime(2026, 11, 30, 23, 59, tzinfo=UTC)) == AFTER


def run(monkeypatch: pytest.MonkeyPatch, market: Market | None, *arguments: str) -> Any:
    if market:
        monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: market.account)
    monkeypatch.setattr("ultracluster.cli.capacity_options.now", lambda: AFTER - timedelta(days=8))
    return CliRunner().invoke(app, ["capacity", "search", *arguments])


PCS = str(ROOT / "environments" / "pcs-p6-b200.yaml")


@pytest.mark.parametrize(("option", "file"), [("", "capacity.txt"), ("--json", "capacity.json")])
def test_output_is_as_reviewed(monkeypatch: pytest.MonkeyPatch, option: str, file: str) -> None:
    market = Market()
    market.blocks = [block("152000.5", "us-east-2b", 1), block("132832", "us-east-2c", 3)]
    ended = run(monkeypatch, market, PCS, "--after", "2026-12-01", *([option] if option else []))
    assert ended.exit_code == 0 and ended.stdout == (GOLDEN / file).read_text()
    if option:
        assert len(json.loads(ended.stdout)["offers"]) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name an environment, or give --instance-type"),
        ([PCS, "--instance-type", "p5.48xlarge"], "name an environment, or give"),
        (["--instance-type", "p5.48xlarg", "--region", "us-east-2"], "did you mean p5.48xlarge"),
        (["--instance-type", "p5.48xlarge", "--after", "2026-11-22"], "is past"),
        (["--instance-type", "8xH200", "--region", "us-east-2"], "p5e.48xlarge, p5en.48xlarge; name one"),
        (
            ["--instance-type", "m5.xlarge", "--region", "us-east-2"],
            "neither training plans nor Capacity Blocks",
        ),
        ([PCS, "--after", "soon"], "--after is a day"),
        ([str(ROOT / "environments" / "dev.yaml")], ""),
    ],
)
def test_bad_input(monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str) -> None:
    ended = run(monkeypatch, Market(), *arguments)
    assert ended.exit_code == 2 and says in ended.output and "Traceback" not in ended.output


def test_nothing_on_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run(monkeypatch, Market(), PCS)
    assert ended.exit_code == 1 and "Nothing is offered" in ended.output


def test_only_the_module_that_asks_can_buy() -> None:
    package = ROOT / "constructs" / "ultracluster"
    buying = {
        file.name
        for file in package.rglob("*.py")
        if "purchase_capacity_block" in (text := file.read_text()) or "create_training_plan" in text
    }
    assert buying == {"buying.py"}
