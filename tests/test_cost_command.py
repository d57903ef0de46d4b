"""`ultracluster cost` as a user meets it."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from botocore.stub import Stubber
from project import ENVIRONMENTS, ROOT
from typer.testing import CliRunner, Result

from ultracluster.cli import cost as command
from ultracluster.config import load
from ultracluster.operations import aws
from ultracluster.operations.billed import billed

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command.cost)
TODAY = "2026-11-21"


def run(*arguments: str, columns: int = 100, today: str = TODAY) -> Result:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [*arguments, "--today", today])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def small(tmp_path: Path) -> str:
    data = {
        "name": "small",
        "region": "us-east-1",
        "network": {"zone_id": "use1-az6"},
        "storage": {"lustre": {"deployment": "scratch-2", "capacity_gib": 1200}},
        "orchestrator": {"kind": "hyperpod-slurm"},
        "node_groups": {
            "controller": {"role": "controller", "instance_type": "m5.xlarge", "count": 1},
            "gpu": {"role": "compute", "instance_type": "p5.48xlarge", "count": 2, "partition": "gpu"},
        },
        "software": {"release": "2026.11"},
    }
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(data))
    return str(file)


TEXT = """\
small: hyperpod-slurm in us-east-1, USD at list prices on 2026-11-21

                                 quantity            price per hour per month
nodes
  controller: m5.xlarge          1 instance  ~0.2333/h [1]  (~0.23) (~170.29) derived (1)
  controller: second volumes     500 GiB                 ?        ?         ? unknown
  gpu: p5.48xlarge               2 instances  66.048/h [2]   132.10    96,430 (2)
  gpu: second volumes            1,000 GiB               ?        ?         ? unknown
storage
  Lustre scratch-2               1,200 GiB     0.14/mo [4]   (0.23)  (168.00) expired
network
  NAT gateway                    1 gateway     0.045/h [5] (0.0450)   (32.85) expired
  public IPv4 of the NAT gateway 1 address     0.005/h [6]   0.0050      3.65
security
  KMS keys                       2 keys           1/mo [7] (0.0027)    (2.00) expired
total, 2 of 8 lines                                          132.10    96,434 incomplete
for orientation, with expired and derived figures: about 132.61 per hour / 96,807 per month,
missing: controller: second volumes; gpu: second volumes

STALE: 3 prices are past the 90 days that one is trusted, and not summed; ask AWS with --live, or
accept with --accept-expired
in parentheses: not in the total; ~: not from its own price
one failed p5.48xlarge of gpu: 66.05 per hour, 1,585.15 per day; a synchronous job on all 2 nodes
that waits for it: 132.10 per hour, 3,170.30 per day
billed by use, in no total: data through the NAT gateway, 0.045/GB [8]; S3: objects and requests;
CloudWatch: logs and metrics; traffic to other zones, Regions and the internet

left out of the total
  no price known: controller: m5.xlarge; controller: second volumes; gpu: second volumes
  price expired on 2026-05-18: Lustre scratch-2
  price expired on 2026-08-30: NAT gateway; KMS keys

notes
  (1) HyperPod's price is not known: the middle of 18-25 % over EC2's list price, for orientation
  (2) 20 % over EC2's list price [3]

prices
  [1] 2026-07-20, expired 2026-10-18, unverified: """

MARKDOWN = """\
### Cost of small: hyperpod-slurm in us-east-1, USD at list prices on 2026-11-21

| | quantity | price | per hour | per day | per month | |
|---|---:|---:|---:|---:|---:|---|
| controller: m5.xlarge | 1 instance | ~0.2333/h [1] | (~0.23) | (~5.60) | (~170.29) | derived (1) |
| controller: second volumes | 500 GiB | ? | ? | ? | ? | unknown |
| gpu: p5.48xlarge | 2 instances | 66.048/h [2] | 132.10 | 3,170 | 96,430 | (2) |
| gpu: second volumes | 1,000 GiB | ? | ? | ? | ? | unknown |
| Lustre scratch-2 | 1,200 GiB | 0.14/mo [4] | (0.23) | (5.52) | (168.00) | expired |
| NAT gateway | 1 gateway | 0.045/h [5] | (0.0450) | (1.08) | (32.85) | expired |
| public IPv4 of the NAT gateway | 1 address | 0.005/h [6] | 0.0050 | 0.12 | 3.65 |  |
| KMS keys | 2 keys | 1/mo [7] | (0.0027) | (0.0658) | (2.00) | expired |
| **total, 2 of 8 lines** | | | **132.10** | **3,170** | **96,434** | incomplete |

for orientation, with expired and derived figures: about 132.61 per hour / 96,807 per month, missing: \
controller: second volumes; gpu: second volumes\x20\x20
**STALE: 3 prices are past the 90 days that one is trusted, and not summed; ask AWS with --live, or accept \
with --accept-expired**\x20\x20
in parentheses: not in the total; ~: not from its own price\x20\x20
one failed p5.48xlarge of gpu: 66.05 per hour, 1,585.15 per day; a synchronous job on all 2 nodes that \
waits for it: 132.10 per hour, 3,170.30 per day\x20\x20
billed by use, in no total: data through the NAT gateway, 0.045/GB [8]; S3: objects and requests; \
CloudWatch: logs and metrics; traffic to other zones, Regions and the internet\x20\x20

<details><summary>left out of the total</summary>

- no price known: """


def test_text(small: str) -> None:
    result = run(small)

    assert result.exit_code == 0
    assert result.output[: len(TEXT)] == TEXT


def test_markdown(small: str) -> None:
    result = run(small, "--markdown")

    assert result.exit_code == 0
    assert result.output[: len(MARKDOWN)] == MARKDOWN
    assert result.output.count("<details>") == result.output.count("</details>") == 3


def test_json(small: str) -> None:
    document = json.loads(run(small, "--json").output)

    assert (document["date"], document["currency"], document["complete"]) == (TODAY, "USD", False)
    assert document["total"] == {"hour": 132.101, "day": 3170.424, "month": 96433.73}
    assert document["left_out"] == [
        "controller: m5.xlarge (no price known)",
        "controller: second volumes (no price known)",
        "gpu: second volumes (no price known)",
        "Lustre scratch-2 (price expired on 2026-05-18)",
        "NAT gateway (price expired on 2026-08-30)",
        "KMS keys (price expired on 2026-08-30)",
    ]
    assert document["lines"][2] == {
        "area": "nodes",
        "what": "gpu: p5.48xlarge",
        "purchase": "on-demand",
        "quantity": 2,
        "at_most": 2,
        "unit": "instance",
        "state": "counted",
        "reason": None,
        "note": None,
        "price": {
            "usd": 66.048,
            "per": "hour",
            "region": "us-east-1",
            "source": "third party's live record of the AWS price list "
            "(HyperPod, usage type USE1-Cluster:ml.*)",
            "date": "2026-10-04",
            "expires": "2027-01-02",
            "expired": False,
            "verified": True,
            "live": False,
        },
        "price_elsewhere": None,
        "ec2_price": {
            "usd": 55.04,
            "per": "hour",
            "region": "us-east-1",
            "source": "aws/karpenter-provider-aws@1d92708 pkg/providers/pricing/zz_generated.pricing_aws*.go "
            "(generated 2026-07-20)",
            "date": "2026-07-20",
            "expires": "2026-10-18",
            "expired": True,
            "verified": True,
            "live": False,
        },
        "premium_over_ec2": 0.2,
        "per_hour_around": None,
        "orientation": {
            "basis": "own",
            "price": document["lines"][2]["price"],
            "cost": document["lines"][2]["cost"],
        },
        "cost": {"hour": 132.096, "day": 3170.304, "month": 96430.08},
        "fee": None,
    }
    assert document["idle"] == {
        "group": "gpu",
        "instance_type": "p5.48xlarge",
        "state": "counted",
        "node": {"hour": 66.048, "day": 1585.152, "month": 48215.04},
        "job_groups": ["gpu"],
        "job_nodes": 2,
        "job": {"hour": 132.096, "day": 3170.304, "month": 96430.08},
        "orientation": {
            "node": {"hour": 66.048, "day": 1585.152, "month": 48215.04},
            "job": {"hour": 132.096, "day": 3170.304, "month": 96430.08},
        },
    }
    assert document["orientation"] == {
        "hour": 132.612157,
        "day": 3182.691761,
        "month": 96806.8744,
        "hour_by_kind": {"derived": 0.23328, "counted": 132.101, "expired": 0.277877},
        "missing": ["controller: second volumes", "gpu: second volumes"],
    }


def test_the_example_of_the_page_is_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "cost.md").read_text()
    found = re.search(r"`ultracluster (cost [^`]+)`, on ([0-9-]+):\n\n```text\n(.*?)```", page, re.DOTALL)
    assert found

    printed = run(*found[1].split()[1:], today=found[2])

    assert printed.output.startswith(found[3] + "\nleft out of the total\n")


@pytest.mark.parametrize("columns", [30, 40, 55, 60, 76, 90, 110, 200])
@pytest.mark.parametrize("name", ["parallelcluster-p5", "prod"])
def test_no_figure_is_cut_in_a_narrow_terminal(name: str, columns: int) -> None:
    file = str(ROOT / "environments" / f"{name}.yaml")
    lines = run(file, columns=columns).output.splitlines()
    wide = run(file, columns=300).output

    assert max(map(len, lines)) <= columns
    months = re.findall(r"(\S*\d\S*) +(?:derived|us-east-1|expired|indicative|incomplete)", wide)
    assert months
    for sum_of in months:
        assert any(sum_of in line for line in lines)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]], ids=["text", "JSON", "Markdown"])
def test_every_environment_has_an_estimate(name: str, form: list[str]) -> None:
    file = str(ROOT / "environments" / f"{name}.yaml")
    result = run(file, *form, "--days", "30")

    assert result.exit_code == 0
    assert "None" not in result.output
    assert "nan" not in result.output


def test_expired_prices_are_summed_on_request_and_loudly(small: str) -> None:
    output = run(small, "--accept-expired", columns=200).output

    assert (
        "STALE: summed although expired (--accept-expired): Lustre scratch-2; NAT gateway; KMS keys" in output
    )
    assert "total, 5 of 8 lines" in output
    assert " 168.00" in output
    assert "for orientation, with derived figures: about" in output


@pytest.mark.parametrize("name", ["dev", "eks-p5en", "parallelcluster-p5", "pcs-p6-b200", "prod"])
def test_each_resource_has_one_line_of_a_hundred_columns(name: str) -> None:
    file = str(ROOT / "environments" / f"{name}.yaml")
    table = run(file).output.split("\n\n")[1].splitlines()
    items = [item for item in billed(load(Path(file)).environment) if item.area != "by use"]

    indented = [line for line in table if line.startswith("  ") and "per hour" not in line]
    assert all(line.strip().startswith(item.what) for line, item in zip(indented, items, strict=True))
    assert max(map(len, table)) <= 100


def test_the_orientation_is_never_in_the_total() -> None:
    file = str(ROOT / "environments" / "dev.yaml")
    output = run(file, columns=400).output

    assert "total, 1 of 10 lines" in output
    line = next(one for one in output.splitlines() if one.startswith("for orientation, with "))
    assert line.startswith(
        "for orientation, with expired, derived and other Regions' figures: "
        "about 26.59 per hour / 19,414 per month"
    )
    assert line.endswith("missing: controller: second volumes; login: second volumes; gpu: second volumes")
    assert "one failed g6e.12xlarge of gpu: unknown, it has no price; for orientation about 12.75" in output


def test_a_fee_wants_days() -> None:
    file = str(ROOT / "environments" / "pcs-p6-b200.yaml")

    assert "the whole fee of a block or plan; give its length with --days" in run(file).output
    assert "upfront for 30 days, beside the total: 327,352.32" in run(file, "--days", "30").output
    document = json.loads(run(file, "--days", "30", "--json").output)
    assert document["upfront"] == 327352.32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "nosuch.yaml does not exist"),
        (["SMALL", "--json", "--markdown"], "--json and --markdown exclude each other"),
        (["SMALL", "--days", "0"], "--days"),
        (["SMALL", "--live", "--profile", "nosuch"], "there is no such profile"),
    ],
)
def test_bad_input(small: str, arguments: list[str], message: str) -> None:
    result = run(*(small if one == "SMALL" else one for one in arguments))

    assert result.exit_code == 2
    assert message in result.output


def test_a_day_that_is_none(small: str) -> None:
    result = run(small, today="2026-13-01")

    assert (result.exit_code, "write a day as 2026-11-21" in result.output) == (2, True)


# --live


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The account that the command opens, with a stubbed price list."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    account = aws.Account(region="us-east-1")
    monkeypatch.setattr(aws, "Account", lambda **_: account)
    with ExitStack() as stack:
        yield stack.enter_context(Stubber(account.client("pricing", "us-east-1")))


def test_live_prices_win(small: str, stubbed: Any) -> None:
    wanted = {
        "hyperpod.m5.xlarge": ("Cluster:ml.m5.xlarge", "0.23"),
        "hyperpod.p5.48xlarge": ("Cluster:ml.p5.48xlarge", "60.5"),
    }
    for item in billed(load(Path(small)).environment):
        if item.key and item.key != "hyperpod-volume":
            usage, usd = wanted.get(item.key, ("", ""))
            stubbed.add_response("get_products", {"PriceList": [_product(usage, usd)] if usd else []})
    document = json.loads(run(small, "--live", "--json").stdout)

    costs = {line["what"]: line["cost"] and line["cost"]["hour"] for line in document["lines"]}
    assert (costs["controller: m5.xlarge"], costs["gpu: p5.48xlarge"]) == (0.23, 121.0)
    assert document["lines"][0]["price"]["live"]
    assert any(fault.startswith("nat: the price list of AmazonEC2 has none") for fault in document["faults"])
    stubbed.assert_no_pending_responses()


def test_without_permission_the_table_answers(small: str, stubbed: Any) -> None:
    stubbed.add_client_error("get_products", "AccessDeniedException", "no")
    result = run(small, "--live", columns=200)

    assert result.exit_code == 0
    assert "no live list prices: " in result.stdout
    assert "66.048/h [2]" in result.stdout


def _product(usagetype: str, usd: str) -> str:
    price = {"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usagetype}, "sku": "SKU1"},
            "terms": {"OnDemand": {"SKU1.A": {"priceDimensions": {"SKU1.A.B": price}}}},
            "publicationDate": "2026-11-18T00:57:01Z",
        }
    )
