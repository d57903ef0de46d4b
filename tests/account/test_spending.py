"""Money spent, asked of moto's Cost Explorer; what AWS refuses, by botocore's Stubber."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest
import typer
from botocore.stub import Stubber
from hostile_account import hostile_account
from moto.ce.models import ce_backends
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account import spending as module
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.spending import Spent, spending, usage_group
from ultracluster.cli import accounts
from ultracluster.cli import cost as command

ACCOUNT = "123456789012"
SINCE, UNTIL = dt.date(2026, 10, 22), dt.date(2026, 11, 21)
app = typer.Typer()
app.command()(command.cost)


def page(
    *rows: tuple[str, str, str], unit: str = "USD", estimated: bool = False, **more: str
) -> dict[str, Any]:
    """One answer of GetCostAndUsage."""
    groups = [
        {"Keys": [service, usage], "Metrics": {"UnblendedCost": {"Amount": usd, "Unit": unit}}}
        for service, usage, usd in rows
    ]
    period = {"Start": str(SINCE), "End": str(UNTIL)}
    day = {"TimePeriod": period, "Total": {}, "Groups": groups, "Estimated": estimated}
    return {"ResultsByTime": [day], "DimensionValueAttributes": [], **more}


EC2, SAGEMAKER = "Amazon Elastic Compute Cloud - Compute", "Amazon SageMaker"
FIRST = page(
    (SAGEMAKER, "USW2-Cluster:ml.g6e.12xlarge", "9000.5"),
    (EC2, "USW2-NatGateway-Hours", "30"),
    (EC2, "USW2-NatGateway-Bytes", "2.25"),
    (EC2, "USW2-BoxUsage:t3.nano", "0"),
    estimated=True,
    NextPageToken="more",
)
SECOND = page((SAGEMAKER, "USW2-Cluster:ml.m5.xlarge", "100"), (EC2, "USW2-SpotUsage:p5.48xlarge", "7"))


@pytest.fixture
def answers(aws_account: None) -> Callable[..., None]:
    """What moto answers, in this order."""
    return ce_backends[ACCOUNT]["aws"].cost_usage_results_queue.extend


def test_pages_are_summed_by_service_and_group_of_usage(answers: Callable[..., None]) -> None:
    answers([FIRST, SECOND])

    found = spending(Account("us-west-2"), "dev", SINCE, UNTIL)

    assert found.rows == (
        Spent(service=SAGEMAKER, usage="Cluster", usd=9100.5),
        Spent(service=EC2, usage="NatGateway", usd=32.25),
        Spent(service=EC2, usage="SpotUsage", usd=7),
    )
    assert (found.days, found.usd, found.estimated) == (30, pytest.approx(9139.75), True)
    assert (found.requests, found.fee) == (2, pytest.approx(0.02))


def test_it_asks_for_the_environments_tag_without_credits() -> None:
    account = Account("us-west-2")
    with Stubber(account.client("ce", "us-east-1")) as stubber:
        stubber.add_response("get_cost_and_usage", page(), {
            "TimePeriod": {"Start": "2026-10-22", "End": "2026-11-21"},
            "Granularity": "MONTHLY",
            "Metrics": ["UnblendedCost"],
            "Filter": {"And": [
                {"Tags": {"Key": "ultracluster:environment", "Values": ["dev"], "MatchOptions": ["EQUALS"]}},
                {"Not": {"Dimensions": {"Key": "RECORD_TYPE", "Values": ["Credit", "Refund", "Tax"]}}},
            ]},
            "GroupBy": [
                {"Type": "DIMENSION", "Key": "SERVICE"}, {"Type": "DIMENSION", "Key": "USAGE_TYPE"},
            ],
        })  # fmt: skip
        assert spending(account, "dev", SINCE, UNTIL).rows == ()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("AccessDeniedException", "access denied: ce:GetCostAndUsage is not allowed"),
        ("ThrottlingException", "GetCostAndUsage is being throttled"),
        ("LimitExceededException", "GetCostAndUsage failed: LimitExceededException"),
        ("DataUnavailableException", "GetCostAndUsage failed: DataUnavailableException"),
        ("ExpiredTokenException", "the credentials have expired"),
    ],
)
def test_what_aws_refuses_is_one_line(code: str, said: str) -> None:
    account = Account("us-west-2")
    text = "User: arn:aws:iam::123456789012:user/a is not authorized to perform: ce:GetCostAndUsage"
    with Stubber(account.client("ce", "us-east-1")) as stubber:
        stubber.add_client_error("get_cost_and_usage", code, text)
        with pytest.raises(AccountError, match=said) as raised:
            spending(account, "dev", SINCE, UNTIL)
    assert "\n" not in str(raised.value)


def test_another_currency_and_broken_answers_are_refused(answers: Callable[..., None]) -> None:
    answers([page((EC2, "BoxUsage:p5.48xlarge", "7"), unit="CNY")])
    with pytest.raises(AccountError, match="answers in CNY, not in USD"):
        spending(Account("us-west-2"), "dev", SINCE, UNTIL)
    answers([page((EC2, "BoxUsage:p5.48xlarge", "much"))])
    with pytest.raises(AccountError, match="an answer of Cost Explorer cannot be read"):
        spending(Account("us-west-2"), "other", SINCE, UNTIL)


def test_pages_without_end_are_not_paid_for(
    answers: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PAGES", 3)
    answers([page((EC2, "BoxUsage:x", "1"), NextPageToken=str(number)) for number in range(9)])
    with pytest.raises(AccountError, match="more than 3 pages: ask for fewer days"):
        spending(Account("us-west-2"), "dev", SINCE, UNTIL)


@pytest.mark.parametrize("seed", range(8))
def test_hostile_answers_are_one_line_or_rows_of_one_line(seed: int) -> None:
    texts: list[str] = []
    try:
        found = spending(hostile_account(seed), "dev", SINCE, UNTIL)
        texts += [row.service + row.usage for row in found.rows]
    except AccountError as error:
        texts.append(str(error))
    assert all(text.isprintable() for text in texts)


@pytest.mark.parametrize(
    ("usage", "group"),
    [
        ("USW2-BoxUsage:p5.48xlarge", "BoxUsage"),
        ("BoxUsage:p5.48xlarge", "BoxUsage"),
        ("us-west-2-KMS-Keys", "KMS"),
        ("EUC1-EBS:VolumeUsage.gp3", "EBS"),
        ("EU-NatGateway-Hours", "NatGateway"),
        ("", ""),
    ],
)
def test_groups_of_usage_types(usage: str, group: str) -> None:
    assert usage_group(usage) == group


# ---- the command


def ran(*words: str) -> Result:
    file = str(ROOT / "environments" / "dev.yaml")
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, [file, "--today", "2026-11-21", *words])


@pytest.fixture
def dev(answers: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(accounts, "open_account", lambda config, profile: Account(config.region))
    return answers


def test_spent_stands_beside_the_estimate_of_the_same_days(dev: Callable[..., None]) -> None:
    dev([FIRST, SECOND])
    told = ran("--spent").stdout

    assert "dev: 30 days from 2026-10-22, by the tag ultracluster:environment" in told
    words = " ".join(told.split())
    assert "spent 9,139.75 USD before credits, refunds and tax; estimate of the same days: 19,67" in words
    assert "46% of it spent" in words
    assert "Cluster" in told and "9,100.50" in told
    assert "AWS may still change these figures" in words and "2 requests, 0.02 USD" in words


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--json"]])
def test_nothing_is_not_zero(dev: Callable[..., None], form: list[str]) -> None:
    found = ran("--spent", "--since", "2026-11-01", *form)

    words = " ".join(found.stdout.split())
    assert found.exit_code == 0 and "Nothing is not zero" in words
    assert "aws ce update-cost-allocation-tags-status" in words
    if form == ["--json"]:
        spent = json.loads(found.stdout)["spent"]
        assert (spent["usd"], spent["rows"], spent["days"]) == (None, [], 20)


def test_json_and_markdown_have_the_rows(dev: Callable[..., None]) -> None:
    dev([SECOND])
    document = json.loads(ran("--spent", "--json").stdout)
    assert document["spent"]["rows"][0] == {"service": SAGEMAKER, "usage": "Cluster", "usd": 100.0}
    assert document["spent"]["requests_usd"] == 0.01 and document["summary"]["per_hour"]
    assert f"| {SAGEMAKER} | Cluster | 100.00 |" in ran("--spent", "--markdown").stdout
    assert "spent" not in json.loads(ran("--json").stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "2026-11-01"], "--since goes with --spent"),
        (["--spent", "--since", "yesterday"], "write a day as 2026-10-22"),
        (["--spent", "--since", "2026-11-21"], "the last is 2026-11-20"),
        (["--spent", "--since", "2020-01-01"], "goes back 13 months; the first day is 2025-10-22"),
    ],
)
def test_days_that_cannot_be_asked_for_cost_nothing(words: list[str], said: str, dev: object) -> None:
    found = ran(*words)
    assert found.exit_code == 2 and said in " ".join(found.output.split())


def test_a_refused_question_ends_with_2(dev: object, monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account("us-west-2")
    monkeypatch.setattr(accounts, "open_account", lambda config, profile: account)
    with Stubber(account.client("ce", "us-east-1")) as stubber:
        stubber.add_client_error("get_cost_and_usage", "AccessDeniedException", "no")
        found = ran("--spent")
    assert found.exit_code == 2 and "access denied" in found.output
