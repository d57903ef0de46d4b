"""`ultracluster cost --refresh` as a user meets it. The answers are checked against botocore's models."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber
from project import ROOT
from typer.testing import CliRunner, Result

from ultracluster.account import aws
from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.plan.billed import billed

TODAY = "2026-11-21"
HEADER = "key,region,usd,unit,date,source"
LISTED = {  # usage type, price and unit of what the price list is to have
    "hyperpod.m5.2xlarge": ("USW2-Cluster:ml.m5.2xlarge", "0.4608", "Hrs"),
    "hyperpod.g6e.12xlarge": ("USW2-Cluster:ml.g6e.12xlarge", "13.1158", "Hrs"),
    "hyperpod-volume": ("USW2-Cluster:VolumeUsage.gp2", "0.125", "GB-Mo"),
    "nat": ("USW2-NatGateway-Hours", "0.045", "Hrs"),
}


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    file = tmp_path / "dev.yaml"
    file.write_text((ROOT / "environments" / "dev.yaml").read_text())
    return file


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The account that the command opens, with a stubbed price list."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    account = aws.Account(region="us-west-2")
    monkeypatch.setattr(aws, "Account", lambda **_: account)
    with ExitStack() as stack:
        yield stack.enter_context(Stubber(account.client("pricing", "us-east-1")))


def answers(service: Any, file: Path, listed: dict[str, tuple[str, str, str]]) -> None:
    for key in dict.fromkeys(item.key for item in billed(resolve(load(file).environment)) if item.key):
        products = [_product(*listed[key])] if key in listed else []
        service.add_response("get_products", {"PriceList": products})


def _product(usagetype: str, usd: str, unit: str) -> str:
    price = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usagetype}, "sku": "SKU1"},
            "terms": {"OnDemand": {"SKU1.A": {"priceDimensions": {"SKU1.A.B": price}}}},
            "publicationDate": "2026-11-18T00:57:01Z",
        }
    )


def test_a_file_that_the_environment_names_is_written_and_read(dev: Path, service: Any) -> None:
    dev.write_text(f"{dev.read_text()}prices: ../prices/mine.csv\n")
    dev = dev.rename(dev.parent / "team.yaml")
    (dev.parent.parent / "prices").mkdir()
    answers(service, dev, LISTED)
    assert run("cost", "--refresh", str(dev)).exit_code == 0

    file = dev.parent.parent / "prices" / "mine.csv"
    assert "nat,us-west-2,0.045" in file.read_text()
    assert not (dev.parent / "prices.csv").exists()
    file.write_text(f"{HEADER}\nnat,us-west-2,7,hour,2026-11-20,our contract\n")
    for command in ("cost", "plan"):
        told = run(command, str(dev), "--json")
        assert told.exit_code == 0, told.output
    assert '"our contract"' in run("cost", str(dev), "--json").output


def run(*arguments: str) -> Result:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*arguments, "--today", TODAY])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_what_is_asked_is_written_and_wins(dev: Path, service: Any) -> None:
    answers(service, dev, LISTED)
    result = run("cost", "--refresh", str(dev))

    file = dev.with_name("prices.csv")
    assert result.exit_code == 0
    assert "hyperpod.g6e.12xlarge in us-west-2: 13.1158 USD per hour, new" in result.stdout
    assert f"{file}: 4 prices asked; commit it next to the environments" in result.stdout
    assert "hyperpod.m5.xlarge: the price list of AmazonSageMaker has none for us-west-2" in result.stderr
    assert file.read_text().splitlines() == [
        HEADER,
        *(
            f'{key},us-west-2,{usd},{unit},{TODAY},"AWS Price List, {service_code} SKU1 of 2026-11-18"'
            for key, usd, unit, service_code in (
                ("hyperpod-volume", "0.125", "month", "AmazonSageMaker"),
                ("hyperpod.g6e.12xlarge", "13.1158", "hour", "AmazonSageMaker"),
                ("hyperpod.m5.2xlarge", "0.4608", "hour", "AmazonSageMaker"),
                ("nat", "0.045", "hour", "AmazonEC2"),
            )
        ),
    ]
    service.assert_no_pending_responses()

    told = json.loads(run("cost", str(dev), "--json").stdout)
    costs = {line["what"]: (line["mark"], line["cost"]["hour"]) for line in told["lines"] if line["cost"]}
    assert costs["gpu: g6e.12xlarge"] == (None, 26.2316)
    assert costs["gpu: second volumes"] == (None, round(1000 * 0.125 / 730, 6))
    assert told["not_priced"] == []
    planned = json.loads(run("plan", str(dev), "--json").stdout)
    assert planned["cost"] == told["summary"]


def test_lines_that_aws_does_not_answer_stay(dev: Path, service: Any) -> None:
    file = dev.with_name("prices.csv")
    ours = "pcs.node,us-west-2,0.02,hour,2026-01-05,our contract"
    file.write_text(f"{HEADER}\n{ours}\nnat,us-west-2,0.04,hour,2026-01-05,the list of January\n")
    answers(service, dev, LISTED)
    result = run("cost", "--refresh", str(dev), "--json")

    document = json.loads(result.stdout)
    (changes,) = document["files"].values()
    assert {"key": "nat", "region": "us-west-2", "per": "hour", "before": 0.04, "usd": 0.045} in changes
    assert ours in file.read_text().splitlines()
    assert "the list of January" not in file.read_text()


def test_without_an_answer_the_file_stays_as_it_is(dev: Path, service: Any) -> None:
    service.add_client_error("get_products", "AccessDeniedException", "no")
    result = run("cost", "--refresh", str(dev))

    assert result.exit_code == 1
    assert "AWS answered nothing: no file is changed" in result.stderr
    assert not dev.with_name("prices.csv").exists()


def test_a_damaged_file_is_not_overwritten(dev: Path, service: Any) -> None:
    file = dev.with_name("prices.csv")
    file.write_text(f"{HEADER}\nnat,us-west-2,-1,hour,2026-01-05,x\n")
    before = file.read_text()
    result = run("cost", "--refresh", str(dev))

    assert result.exit_code == 2
    assert "prices.csv:2: -1 is not a price" in result.stderr
    assert "nothing written: correct these lines, or delete the file" in result.stderr
    assert file.read_text() == before


def test_a_file_that_cannot_be_written(dev: Path, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    answers(service, dev, LISTED)
    result = run("cost", "--refresh", str(dev))

    assert result.exit_code == 2
    assert "prices.csv cannot be written: No space left on device" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nosuch"], "nosuch.yaml does not exist"),
        (["DEV", "--profile", "nosuch"], "there is no such profile"),
    ],
)
def test_bad_input(dev: Path, arguments: list[str], told: str) -> None:
    result = run("cost", "--refresh", *(str(dev) if one == "DEV" else one for one in arguments))

    assert (result.exit_code, told in result.output) == (2, True)


def test_plan_tells_what_is_wrong_with_the_file(dev: Path) -> None:
    dev.with_name("prices.csv").write_text("hello\n")
    result = run("plan", str(dev))

    assert result.exit_code == 0
    assert "the first line must be" in result.stdout
    assert "about 19,900 USD/month" in result.stdout


def test_commands_are_named_by_the_file_that_was_asked_for(dev: Path) -> None:
    assert f"ultracluster cost {dev}".replace(" ", "") in "".join(run("plan", str(dev)).stdout.split())
    assert f"`ultracluster cost {dev} --refresh`".replace(" ", "") in "".join(
        run("cost", str(dev)).stdout.split()
    )
    assert "asked_as" not in json.loads(run("plan", str(dev), "--json").stdout)


def test_without_credentials_the_file_stays_as_it_is(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(dev.with_name("none")))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(dev.with_name("none")))
    result = run("cost", "--refresh", str(dev))

    assert result.exit_code == 1
    assert "no AWS credentials: run `aws configure`" in result.stderr
    assert not dev.with_name("prices.csv").exists()
