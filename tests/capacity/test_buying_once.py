"""Nothing is bought twice: lost answers, two at once, killed processes, torn records, other machines."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError, SSLError
from capacity_shop import ACCOUNT, ARN, BOUGHT, NEXT, Shop, file, run, shop
from hyperpod_service import refusal
from project import ROOT
from typer.testing import Result

from ultracluster.account import aws
from ultracluster.account.aws import Identity
from ultracluster.config import load

__all__ = ["file", "shop"]

pytestmark = pytest.mark.usefixtures("aws_account")


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

    target = "ultracluster.cli.capacity_buy.purchase"
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


@pytest.mark.parametrize(
    "change",
    [
        {"details": {}},
        {"details": {"start": "soon"}},
        {"time": "now"},
        {"usd": None},
        {"details": 7},
        {"x": 1},
    ],
    ids=str,
)
def test_an_intent_that_somebody_changed_is_refused(shop: Shop, file: Path, change: dict[str, Any]) -> None:
    shop.fails = ReadTimeoutError(endpoint_url="https://ec2")
    assert run(file, *BUY).exit_code == 3
    intent = file.parent / ".pcs-p6-b200.intent"
    document = json.loads(intent.read_text())
    document["intent"] |= change
    intent.write_text(json.dumps(document))
    ended = run(file, "--settle")
    assert ended.exit_code == 2 and "cannot be read, and may record" in ended.output
    assert ended.exception is None or isinstance(ended.exception, SystemExit)
    assert intent.read_text(), "it is still there"


def test_an_intent_prints_no_control_characters(shop: Shop, file: Path) -> None:
    shop.fails = ReadTimeoutError(endpoint_url="https://ec2")
    assert run(file, *BUY).exit_code == 3
    intent = file.parent / ".pcs-p6-b200.intent"
    document = json.loads(intent.read_text())
    document["intent"] |= {"settle": "true\x1b[2J\n::error::x", "subject": "cb\x1b[2J", "host": "\u202e"}
    intent.write_text(json.dumps(document))
    for words in (BUY, ["--settle"]):
        said = run(file, *words).output
        assert "\x1b" not in said and "\n::" not in said and "\u202e" not in said


def test_credentials_of_another_account_settle_and_buy_nothing(shop: Shop, file: Path) -> None:
    shop.fails = ReadTimeoutError(endpoint_url="https://ec2")
    file.write_text(file.read_text().replace(f'account: "{ACCOUNT}"\n', "", 1))
    assert run(file, *BUY, "--account", ACCOUNT).exit_code == 3
    shop.account._identity = Identity("444455556666", "arn:aws:iam::444455556666:user/other")
    other = run(file, "--settle", "--account", "444455556666")
    assert other.exit_code == 2 and "was made in 111122223333" in other.output
    file.write_text(file.read_text().replace("region:", f'account: "{ACCOUNT}"\nregion:', 1))
    wrong = run(file, *BUY)
    assert wrong.exit_code == 2 and len(shop.bought) == 1


def test_a_full_disk_after_the_purchase_loses_nothing(shop: Shop, file: Path) -> None:
    before, ledger = file.read_text(), file.parent / "pcs-p6-b200.ledger.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def sells(_: dict[str, Any]) -> dict[str, Any]:
        shop.sold.append(_block())
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, hard))
        return {"CapacityReservations": [{"CapacityReservationId": BOUGHT}]}

    shop.sells = sells
    try:
        ended = run(file, *BUY)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ended.exit_code == 1 and f"{BOUGHT} IS BOUGHT" in ended.output, ended.output
    assert file.read_text() == before and not (ledger.exists() and ledger.read_text())
    again = run(file, *BUY, "--again")
    assert again.exit_code == 2 and len(shop.bought) == 1
    settled = run(file, "--settle")
    assert settled.exit_code == 0 and BOUGHT in file.read_text() and BOUGHT in ledger.read_text()


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
