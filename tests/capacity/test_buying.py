"""Buying an offer: asked for, once, within a limit, written into the file; or not bought, and said so."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from capacity_shop import ACCOUNT, ARN, BOUGHT, NEXT, Shop, file, run, shop
from hyperpod_service import refusal
from project import ROOT

from ultracluster.capacity.buying import plan_name
from ultracluster.capacity.search import Offer, Segment, Wish
from ultracluster.config import load

__all__ = ["file", "shop"]

pytestmark = pytest.mark.usefixtures("aws_account")


def test_bought_once_and_written(shop: Shop, file: Path) -> None:
    before = file.read_text()
    ended = run(file, "--yes", "--max-usd", "100000", "--json")
    assert ended.exit_code == 0, ended.output
    assert shop.bought == [{"CapacityBlockOfferingId": "cb-1", "InstancePlatform": "Linux/UNIX"}]
    assert file.read_text() == before.replace("cr-0123456789abcdef0 # replace", f"{BOUGHT}")
    document = json.loads(ended.stdout)
    assert (document["id"], document["upfront_fee"], document["zone_id"]) == (BOUGHT, 100000, "use2-az2")
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
