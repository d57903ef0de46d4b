"""`ultracluster move` as a user runs it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account, answer
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account import aws
from ultracluster.cli.main import app
from ultracluster.config import load

START = datetime(2027, 1, 1, 11, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["move", *words])


def test_the_plan_says_all_of_it() -> None:
    ended = run("prod", "--to", "use2-az1")
    assert ended.exit_code == 0
    for said in (
        "Carries over:", "Copied:", "Bought again:", "Made again:", "Cost:", "To fill in", "Order;",
        "[has to pass]", "back: ", "$ ultracluster deploy prod-use2-az1", "both for 3 days",
    ):  # fmt: skip
        assert said in ended.stdout
    assert all(
        len(line) <= 100 for line in ended.stdout.splitlines() if "$" not in line and "arn:" not in line
    )


def test_markdown_has_the_same_words() -> None:
    ended = run("prod", "--to", "us-west-2", "--markdown")
    assert ended.exit_code == 0 and ended.stdout.startswith("# prod from use2-az2 to ")
    assert "\n1. " in ended.stdout and "   - `ultracluster deploy prod-" in ended.stdout


def test_the_second_environment_is_written_once(tmp_path: Path) -> None:
    file = tmp_path / "new" / "second.yaml"
    ended = run("prod", "--to", "use2-az1", "--write", str(file), "--json")
    assert ended.exit_code == 0 and f"{file} is written" in ended.stderr
    assert json.loads(ended.stdout)["text"] == file.read_text()
    assert load(file).environment.name == "prod-use2-az1"
    again = run("prod", "--to", "use2-az1", "--write", str(file))
    assert again.exit_code == 2 and "exists" in again.stderr


def test_a_target_without_the_type_is_said_so() -> None:
    """The plan is printed all the same: AWS may have it since."""
    ended = run("pcs-p6-b200", "--to", "ca-west-1")
    assert ended.exit_code == 1
    assert "The target may not have it:" in ended.stdout and "p6-b200.48xlarge" in ended.stdout


def test_a_second_environment_that_would_be_refused_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "second.yaml"
    ended = run("eks-p5en", "--to", "use1-az3", "--write", str(file))
    assert ended.exit_code == 1 and not file.exists()
    assert "nothing was written: the second environment would be refused" in ended.output
    assert "EKS017" in ended.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["prod", "--to", "nowhere"], "neither a zone id nor a Region"),
        (["prod", "--to", "use2-az1", "--json", "--markdown"], "exclude each other"),
        (["prod", "--to", "use2-az1", "--name", "Prod_2"], "small letters"),
        (["nope", "--to", "use2-az1"], "nope"),
        (["prod", "--to", "capacity:nothing"], "names no capacity"),
    ],
)
def test_bad_input(words: list[str], says: str) -> None:
    ended = run(*words)
    assert ended.exit_code == 2 and says in ended.output and "Traceback" not in ended.output


ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q2"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An account with a training plan and a block, each in its Region; the Regions that were asked."""
    asked: list[str] = []

    def opened(region: str | None = None, profile: str | None = None) -> Any:
        asked.append(str(region))
        made = account(str(region))
        begins = {"StartDate": START, "EndDate": START + timedelta(days=14)}
        block = {
            "CapacityReservationId": "cr-0fedcba9876543210", "InstanceType": "p6-b200.48xlarge",
            "TotalInstanceCount": 4, "State": "scheduled", "ReservationType": "capacity-block", **begins,
            "AvailabilityZoneId": "use1-az6" if region == "us-east-1" else "use2-az2",
        }  # fmt: skip
        plan = {
            "TrainingPlanArn": ARN, "TrainingPlanName": "q2", "Status": "Active", "TotalInstanceCount": 16,
            "ReservedCapacitySummaries": [
                {
                    "ReservedCapacityArn": f"{ARN}/one", "InstanceType": "ml.p5en.48xlarge",
                    "TotalInstanceCount": 16, "AvailabilityZoneId": "usw2-az3", "Status": "Active",
                }
            ],
        }  # fmt: skip
        there = [block] if region == "us-east-1" else []
        answer(made.client("ec2"), "DescribeCapacityReservations", lambda _: {"CapacityReservations": there})
        answer(made.client("sagemaker"), "DescribeTrainingPlan", lambda _: plan)
        return made

    monkeypatch.setattr(aws, "Account", opened)
    return asked


@pytest.mark.parametrize(
    ("name", "to", "zone"),
    [
        ("prod", f"capacity:{ARN}", "usw2-az3"),
        ("pcs-p6-b200", "capacity:us-east-1/cr-0fedcba9876543210", "use1-az6"),
    ],
)
def test_to_capacity_of_another_region(
    held: list[str], tmp_path: Path, name: str, to: str, zone: str
) -> None:
    file = tmp_path / "second.yaml"
    ended = run(name, "--to", to, "--write", str(file))
    assert ended.exit_code == 0, ended.output
    assert load(file).environment.network.zone_id == zone and len(held) == 1
    assert f"--to {to} --write" in ended.stdout and "capacity buy" not in ended.stdout


def test_capacity_that_is_not_there(held: list[str]) -> None:
    ended = run("pcs-p6-b200", "--to", "capacity:cr-0fedcba9876543210")
    assert ended.exit_code == 2 and "there is no cr-0fedcba9876543210 in us-east-2" in ended.output


@pytest.mark.parametrize(
    ("file", "says"),
    [("file/x.yaml", "is no folder"), (f"{'x' * 300}.yaml", "too long"), ("x.txt", "ends in .yaml")],
)
def test_where_nothing_can_be_written(tmp_path: Path, file: str, says: str) -> None:
    (tmp_path / "file").write_text("")
    ended = run("prod", "--to", "use2-az1", "--write", str(tmp_path / file))
    assert ended.exit_code == 2 and says in ended.output and "Traceback" not in ended.output


def test_nobody_is_told_to_delete_a_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["move", "prod", "--to", "use2-az1", "--write", str(tmp_path)])
    assert result.exit_code == 2 and result.stderr == f"{tmp_path} exists: name another file\n"
