"""`ultracluster capacity search --everywhere` and `--write` as a user runs them."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from capacity_market import AFTER, World, block, denied, plan
from capacity_market import world as empty_world
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account import aws
from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.rules import check

PROD = str(ROOT / "environments" / "prod.yaml")
H100 = ("--accelerators", "64xH100", "--days", "14", "--after", "2026-12-01")


@pytest.fixture(autouse=True)
def market(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = empty_world()
    made.blocks = {
        "us-east-1": [block("cb-0a", "us-east-1b", "90000.25")],
        "us-west-2": [block("cb-0b", "us-west-2a", "80000")],
    }
    made.plans = {"us-east-2": [plan("tpo-1", "us-east-2a", "70000")]}
    monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: made.account)
    monkeypatch.setattr(
        "ultracluster.cli.capacity_options.now", lambda: datetime(2026, 11, 23, 15, tzinfo=UTC)
    )
    monkeypatch.chdir(tmp_path)
    return made


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["capacity", "search", *words])


def test_the_table_names_everything() -> None:
    ended = run("--everywhere", *H100)
    assert ended.exit_code == 0, ended.output
    rows = [line.split() for line in ended.stdout.splitlines()]
    assert [row[-1] for row in rows if row and row[0] in "123"] == ["tpo-1", "cb-0b", "cb-0a"]
    for said in (
        "8 x p5.48xlarge, 14 days from 2026-12-01: capacity-block", "64 x p5.4xlarge, 14 days",
        "70,000.00 USD", "90,000.25 USD", "3.255", "use2-az1", "2026-12-02 00:00",
        "1: HyperPod's quotas of the Region", "me-central-1: the account has not enabled it",
        "training-plan, eu-west-3: HyperPod is not there", "Nothing was bought.",
    ):  # fmt: skip
        assert said in ended.stdout, said


def test_json_has_the_same_and_keeps_its_schema() -> None:
    ended = run("--everywhere", *H100, "--regions", "us-east-1,us-east-2", "--json")
    said = json.loads(ended.stdout)
    assert [one["id"] for one in said["offers"]] == ["tpo-1", "cb-0a"]
    assert said["regions"] == ["us-east-1", "us-east-2"] and said["unasked"] == []
    first = said["offers"][0]
    assert (first["region"], first["accelerators"], first["fee_in_all"]) == ("us-east-2", 64, 70000)
    assert first["per_accelerator_hour"] == pytest.approx(70000 / 64 / 336, abs=1e-4)


@pytest.mark.parametrize(("kind", "sold"), [("hyperpod-slurm", ["tpo-1"]), ("pcs", ["cb-0b", "cb-0a"])])
def test_only_what_the_orchestrator_takes(kind: str, sold: list[str]) -> None:
    said = json.loads(run("--everywhere", *H100, "--orchestrator", kind, "--json").stdout)
    assert [one["id"] for one in said["offers"]] == sold


def test_an_environment_is_looked_for_in_other_regions_too(market: World) -> None:
    row = plan("tpo-2", "us-west-2b", "9")
    row["ReservedCapacityOfferings"][0] |= {"InstanceType": "ml.p5en.48xlarge", "InstanceCount": 16}
    market.plans = {"us-west-2": [row]}
    ended = run(PROD, "--everywhere", "--after", "2026-12-01")
    assert ended.exit_code == 0, ended.output
    text = " ".join(ended.stdout.split())  # where lines end depends on how long the path is
    assert "a move (data is copied there)" in text and "--to usw2-az2" in text
    assert {what for _, what, _ in market.asked} >= {"plans", "held", "held_plans"}
    assert not [what for _, what, _ in market.asked if what == "blocks"]
    refused = run(PROD, "--everywhere", "--write", "x.yaml")
    assert refused.exit_code == 2 and "--to ZONE --write x.yaml" in refused.output


def test_rounding_is_said(market: World) -> None:
    ended = run("--everywhere", "--accelerators", "96xH100", "--days", "16", "--after", "2026-12-01")
    assert "16 x p5.48xlarge, 21 days" in ended.stdout
    assert "12 are wanted, and AWS sells 16 at once, not fewer" in ended.stdout
    assert "16 days are wanted: after two weeks blocks have whole weeks" in ended.stdout
    large = run("--everywhere", "--accelerators", "1024xH100", "--after", "2026-12-01")
    assert "one holds 64 at most, and 128 are wanted: 2 of it" in large.stdout
    assert "all: 2 of it, bought one by one" in large.stdout


def test_nothing_on_offer_anywhere(market: World) -> None:
    market.blocks, market.plans = {}, {}
    market.fails["us-east-1", "zones"] = denied("DescribeAvailabilityZones")
    ended = run("--everywhere", *H100)
    assert ended.exit_code == 1 and "Nothing is offered in 4 Regions" in ended.stdout
    written = run("--everywhere", *H100, "--write", "x.yaml")
    assert written.exit_code == 1 and "nothing was written" in written.output
    assert not Path("x.yaml").exists()


@pytest.mark.parametrize(
    ("offer", "kind", "capacity", "zone"),
    [
        ("tpo-1", "hyperpod-slurm", "training-plan", "use2-az1"),
        ("cb-0b", "parallelcluster", "capacity-block", "usw2-az1"),
    ],
)
def test_a_draft_for_an_offer(offer: str, kind: str, capacity: str, zone: str) -> None:
    ended = run("--everywhere", *H100, "--write", "h100.yaml", "--offer", offer)
    assert ended.exit_code == 0, ended.output
    loaded = load(Path("h100.yaml"))
    made = loaded.environment
    assert not [one for one in check(loaded) if one.blocks]
    assert (made.name, made.orchestrator.kind, made.network.zone_id) == ("h100", kind, zone)
    group = made.node_groups["train"]
    assert (group.instance_type, group.count, group.capacity.kind) == ("p5.48xlarge", 8, capacity)
    assert offer in Path("h100.yaml").read_text() and "stands in for" in Path("h100.yaml").read_text()
    assert f"ultracluster capacity buy h100.yaml --offer {offer} --days 14 --after 2026-12-01" in ended.stderr
    assert "ultracluster preflight h100.yaml" in ended.stderr
    again = run("--everywhere", *H100, "--write", "h100.yaml", "--offer", offer)
    assert again.exit_code == 2 and "h100.yaml exists" in again.output


def test_the_first_offer_is_drafted_and_what_is_held_is_named(market: World) -> None:
    assert run("--everywhere", *H100, "--write", "new/one.yaml").exit_code == 0
    assert load(Path("new/one.yaml")).environment.region == "us-east-2"
    market.held = {
        "us-west-2": [
            {
                "CapacityReservationId": "cr-0fedcba9876543210", "InstanceType": "p5.48xlarge",
                "AvailabilityZone": "us-west-2c", "TotalInstanceCount": 9, "AvailableInstanceCount": 9,
                "State": "active",
            }
        ]
    }  # fmt: skip
    ended = run("--everywhere", *H100, "--write", "two.yaml", "--orchestrator", "pcs")
    assert ended.exit_code == 0, ended.output
    assert "paid" in ended.stdout and "capacity buy" not in ended.stderr
    text = Path("two.yaml").read_text()
    assert (
        "id: cr-0fedcba9876543210\n" in text
        and load(Path("two.yaml")).environment.node_groups["train"].count == 8
    )


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--offer", "cb-9"], 1, "cb-9 is not offered (any more); there is tpo-1"),
        (["--offer", "cb-0b", "--orchestrator", "hyperpod-slurm"], 1, "cb-0b is not offered"),
        (["--offer", "two"], 2, "two is in several zones (use1-az1, use1-az2)"),
        (["--offer", "nowhere"], 2, "a zone whose id AWS did not say (`us-east-1z`)"),
    ],
)
def test_offers_that_no_environment_can_use(market: World, words: list[str], code: int, says: str) -> None:
    two = plan("two", "us-east-1a", "1")
    two["ReservedCapacityOfferings"] += plan("", "us-east-1b", "1")["ReservedCapacityOfferings"]
    market.plans["us-east-1"] = [two]
    market.blocks["us-east-1"] = [block("nowhere", "us-east-1z", "2")]
    ended = run("--everywhere", *H100, "--write", "x.yaml", "--json", *words)
    assert ended.exit_code == code and says in ended.output and not Path("x.yaml").exists()
    assert json.loads(ended.stdout)["exit_code"] == code  # one document


def test_text_of_aws_is_shown_and_never_obeyed(market: World) -> None:
    market.blocks = {"us-east-1": [block("cb-\x1b[2J\nx: y", "us-east-1a\u202e", "1", CurrencyCode="U\x07")]}
    ended = run("--everywhere", *H100, "--regions", "us-east-1")
    assert "\x1b" not in ended.output and "\u202e" not in ended.output and "\x07" not in ended.output
    market.blocks = {"us-east-1": [block("cb-\n      kind: spot", "us-east-1a", "1")]}
    written = run("--everywhere", *H100, "--write", "x.yaml", "--regions", "us-east-1")
    assert written.exit_code == 0, written.output
    assert load(Path("x.yaml")).environment.node_groups["train"].capacity.kind == "capacity-block"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--accelerators", "64xH100"], "--accelerators: only with --everywhere"),
        (["--everywhere"], "name an environment, or give --accelerators 64xH100"),
        (["--everywhere", PROD, "--accelerators", "64xH100"], "name an environment, or give"),
        (["--everywhere", PROD, "--orchestrator", "pcs"], "is what"),
        (["--everywhere", "--accelerators", "H100"], "write a number and a name"),
        (["--everywhere", "--accelerators", "0xH100"], "write a number and a name"),
        (["--everywhere", "--accelerators", "64xH10"], "Did you mean H100"),
        (["--everywhere", "--accelerators", "64xL40S"], "AWS sells neither"),
        (["--everywhere", "--accelerators", "9999999xH100"], "are more than the 256 that AWS sells"),
        (["--everywhere", *H100, "--orchestrator", "slurm"], "write one of hyperpod-slurm"),
        (["--everywhere", *H100, "--regions", "us-est-1"], "did you mean us-east-1"),
        (["--everywhere", *H100, "--offer", "cb-1"], "pass --write FILE, too"),
        (["--everywhere", *H100, "--write", "x.txt"], "ends in .yaml"),
        (["--everywhere", "--accelerators", "8xH100", "--after", "2026-02-30"], "there is no such day"),
        (
            ["--everywhere", "--accelerators", "8xH100", "--after", "2026-11-01"],
            "is past: today is 2026-11-23",
        ),
        (["--everywhere", "--accelerators", "8xH100", "--after", "9999-12-31"], "up to 8 weeks ahead"),
        (["--everywhere", "--accelerators", "8xH100", "--after", "0001-01-01"], "is past"),
        (["--everywhere", "--accelerators", "8xH100", "--after", "2026-12-1"], "is a day as `2026-12-01`"),
        (["--everywhere", "--accelerators", "8xH100", "--after", "٢٠٢٦-12-01"], "is a day as"),
    ],
)
def test_bad_input_asks_nothing(market: World, words: list[str], says: str) -> None:
    ended = run(*words)
    assert ended.exit_code == 2 and says in ended.output, ended.output
    assert "Traceback" not in ended.output and market.asked == [] and not list(Path().iterdir())


def test_an_offer_in_a_local_zone_is_drafted_before_anybody_opts_in(market: World) -> None:
    market.blocks, market.plans = {"us-east-1": [block("cb-0c", "us-east-1-atl-2a", "70000.00")]}, {}
    ended = run("--everywhere", *H100, "--write", "h100.yaml", "--offer", "cb-0c", "--orchestrator", "pcs")
    assert ended.exit_code == 0, ended.output
    environment = load(Path("h100.yaml")).environment
    assert environment.network.zone_id == "use1-atl2-az1"
    assert list(environment.network.further_zones) == ["use1-az5"]
    assert environment.node_groups["login"].zone_id == "use1-az5"


def test_the_next_command_takes_the_offer(market: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What --write says to run next finds the same offer, and shows its sum."""
    ended = run("--everywhere", *H100, "--write", "h100.yaml", "--offer", "cb-0b")
    line = next(line for line in ended.stderr.splitlines() if "capacity buy" in line)
    from hyperpod_service import account, answer

    there = account("us-west-2")
    for service, operation, what, key in (
        ("ec2", "DescribeCapacityBlockOfferings", "blocks", "CapacityBlockOfferings"),
        ("ec2", "DescribeCapacityReservations", "held", "CapacityReservations"),
    ):
        rows = getattr(market, what).get("us-west-2", [])
        answer(
            there.client(service),
            operation,
            lambda _, rows=rows, key=key: {key: rows},
        )
    zones = [{"ZoneName": "us-west-2a", "ZoneId": "usw2-az1"}]
    answer(there.client("ec2"), "DescribeAvailabilityZones", lambda _: {"AvailabilityZones": zones})
    monkeypatch.setattr(aws, "Account", lambda region=None, profile=None: there)
    words = [*shlex.split(line)[1:], "--account", "111122223333"]
    bought = CliRunner().invoke(app, words, input="n\n")
    assert bought.exit_code == 2 and "80,000.00 USD are paid now" in bought.output


def test_the_page_shows_what_is_printed(market: World) -> None:
    page = (ROOT / "docs" / "capacity.md").read_text()
    shown = page.split("--orchestrator pcs\n", 1)[1].split("```", 1)[0]
    later = {"StartDate": AFTER + timedelta(days=3.5), "EndDate": AFTER + timedelta(days=17.5)}
    later = {key: day - timedelta(minutes=30) for key, day in later.items()}
    market.plans = {}
    market.blocks = {
        "us-east-1": [block("cb-0a1b2c3d4e5f67890", "us-east-1b", "94185.00", **later)],
        "us-west-2": [block("cb-0f9e8d7c6b5a43210", "us-west-2a", "84537.60")],
    }
    held = {
        "CapacityReservationId": "cr-0123456789abcdef0", "InstanceType": "p5.48xlarge", "State": "active",
        "AvailabilityZone": "us-east-2b", "TotalInstanceCount": 12, "AvailableInstanceCount": 4,
    }  # fmt: skip
    market.held = {"us-east-2": [held]}
    market.fails["eu-west-3", "blocks"] = denied("DescribeCapacityBlockOfferings")
    assert run("--everywhere", *H100, "--orchestrator", "pcs").stdout == shown


def test_a_folder_that_cannot_be_made_is_said(market: World) -> None:
    Path("file").write_text("")
    ended = run("--everywhere", *H100, "--write", "file/x.yaml")
    assert ended.exit_code == 2 and "file is no folder" in ended.output and market.asked == []
    long = run("--everywhere", *H100, "--write", f"{'x' * 300}.yaml")
    assert long.exit_code == 2 and "too long" in long.output and market.asked == []
