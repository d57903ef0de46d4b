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

from ultracluster.account import aws
from ultracluster.cli import cost as command
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.plan.billed import billed

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
about 96,800 USD/month, 133 USD/h (estimate; only 96,600 USD have a current price); 2 of 6 prices
are older than 90 days; not priced: second volumes
current prices (this Region, last 90 days): 4 of 8, 96,600 USD/month
If one p5.48xlarge in group gpu fails: about 66.0 USD/h wasted (estimate); 132 USD/h while a job on
2 nodes waits for it

                                 quantity           price per hour per month
nodes
  controller: m5.xlarge          1 instance    0.23/h [1]     0.23    167.90
  controller: second volumes     500 GiB                ?        ?         ? not priced
  gpu: p5.48xlarge               2 instances 66.048/h [2]   132.10    96,430
  gpu: second volumes            1,000 GiB              ?        ?         ? not priced
storage
  Lustre scratch-2               1,200 GiB    0.14/mo [3]     0.23    168.00 277 days old
network
  NAT gateway                    1 gateway    0.045/h [4]   0.0450     32.85
  public IPv4 of the NAT gateway 1 address    0.005/h [4]   0.0050      3.65
security
  KMS keys                       2 keys          1/mo [5]   0.0027      2.00 173 days old
estimate, 6 of 8 lines                                      132.61    96,804
current prices, 4 of 8 lines                                132.38    96,634

nodes on demand, with a commitment to spend that reserves no capacity: SageMaker AI Savings Plan, at
most 64 % off (AWS's page names notebooks, training and inference, and not HyperPod: ask AWS before
you buy)
`ultracluster cost small --refresh` asks AWS for these prices and writes them into prices.csv next
to the environment; add there by hand what AWS does not list
billed by use, in no sum: data through the NAT gateway, 0.045/GB [4]; S3: objects and requests;
CloudWatch: logs and metrics; traffic to other zones, Regions and the internet

prices
  [1] 2026-09-16: """

MARKDOWN = """\
### Cost of small: hyperpod-slurm in us-east-1, USD at list prices on 2026-11-21

**about 96,800 USD/month, 133 USD/h (estimate; only 96,600 USD have a current price); 2 of 6 prices \
are older than 90 days; not priced: second volumes**\x20\x20
current prices (this Region, last 90 days): 4 of 8, 96,600 USD/month\x20\x20
If one p5.48xlarge in group gpu fails: about 66.0 USD/h wasted (estimate); 132 USD/h while a job on \
2 nodes waits for it\x20\x20

| | quantity | price | per hour | per day | per month | |
|---|---:|---:|---:|---:|---:|---|
| controller: m5.xlarge | 1 instance | 0.23/h [1] | 0.23 | 5.52 | 167.90 |  |
| controller: second volumes | 500 GiB | ? | ? | ? | ? | not priced |
| gpu: p5.48xlarge | 2 instances | 66.048/h [2] | 132.10 | 3,170 | 96,430 |  |
| gpu: second volumes | 1,000 GiB | ? | ? | ? | ? | not priced |
| Lustre scratch-2 | 1,200 GiB | 0.14/mo [3] | 0.23 | 5.52 | 168.00 | 277 days old |
| NAT gateway | 1 gateway | 0.045/h [4] | 0.0450 | 1.08 | 32.85 |  |
| public IPv4 of the NAT gateway | 1 address | 0.005/h [4] | 0.0050 | 0.12 | 3.65 |  |
| KMS keys | 2 keys | 1/mo [5] | 0.0027 | 0.0658 | 2.00 | 173 days old |
| **estimate, 6 of 8 lines** | | | **132.61** | **3,183** | **96,804** | |
| **current prices, 4 of 8 lines** | | | **132.38** | **3,177** | **96,634** | |

nodes on demand, with a commitment to spend that reserves no capacity: SageMaker AI Savings Plan, at \
most 64 % off (AWS's page names notebooks, training and inference, and not HyperPod: ask AWS before \
you buy)\x20\x20
`ultracluster cost small --refresh` asks AWS for these prices and writes them into prices.csv next to \
the environment; add there by hand what AWS does not list\x20\x20
billed by use, in no sum: data through the NAT gateway, 0.045/GB [4]; S3: objects and requests; \
CloudWatch: logs and metrics; traffic to other zones, Regions and the internet\x20\x20

<details><summary>prices</summary>"""


@pytest.fixture
def by_name(small: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same environment in environments/ of the current folder, where commands take its name."""
    file = Path(small)
    (file.parent / "environments").mkdir()
    file.rename(file.parent / "environments" / file.name)
    monkeypatch.chdir(file.parent)
    return "small"


def test_text(by_name: str) -> None:
    result = run(by_name)

    assert result.exit_code == 0
    assert result.output[: len(TEXT)] == TEXT


def test_markdown(by_name: str) -> None:
    result = run(by_name, "--markdown")

    assert result.exit_code == 0
    assert result.output[: len(MARKDOWN)] == MARKDOWN
    assert result.output.count("<details>") == result.output.count("</details>") == 1


def test_json(small: str) -> None:
    document = json.loads(run(small, "--json").output)

    assert (document["date"], document["currency"], document["complete"]) == (TODAY, "USD", False)
    assert document["estimate"] == {"hour": 132.608877, "day": 3182.613041, "month": 96804.48}
    assert document["strict"] == {"hour": 132.376, "day": 3177.024, "month": 96634.48}
    assert document["not_priced"] == ["controller: second volumes", "gpu: second volumes"]
    summary = document["summary"]
    assert (summary["per_month"], summary["strict_per_month"], summary["most_per_month"]) == (
        96804.48, 96634.48, None,
    )  # fmt: skip
    assert (summary["things"], summary["priced"], summary["strict"]) == (8, 6, 4)
    assert summary["text"].startswith("about 96,800 USD/month, 133 USD/h (estimate; ")
    assert document["lines"][1]["cost"] is None
    assert document["lines"][2] == {
        "area": "nodes",
        "what": "gpu: p5.48xlarge",
        "purchase": "on-demand",
        "quantity": 2,
        "at_most": 2,
        "unit": "instance",
        "mark": None,
        "days_old": 48,
        "upfront": False,
        "note": None,
        "price": {
            "usd": 66.048,
            "per": "hour",
            "region": "us-east-1",
            "source": "third party's live record of the AWS price list "
            "(HyperPod, usage type USE1-Cluster:ml.*)",
            "date": "2026-10-04",
            "verified": True,
            "live": False,
        },
        "cost": {"hour": 132.096, "day": 3170.304, "month": 96430.08},
    }
    assert document["lines"][4]["mark"] == "old"
    assert document["idle"] == {
        "group": "gpu",
        "instance_type": "p5.48xlarge",
        "prepaid": False,
        "mark": None,
        "node": {"hour": 66.048, "day": 1585.152, "month": 48215.04},
        "job_groups": ["gpu"],
        "job_nodes": 2,
        "job": {"hour": 132.096, "day": 3170.304, "month": 96430.08},
    }


def test_the_example_of_the_page_is_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "cost.md").read_text()
    found = re.search(r"`ultracluster (cost [^`]+)`, on ([0-9-]+):\n\n```text\n(.*?)```", page, re.DOTALL)
    assert found

    printed = run(*found[1].split()[1:], today=found[2])

    assert printed.output.startswith(found[3] + "\nprices\n")


@pytest.mark.parametrize("columns", [30, 40, 55, 60, 76, 90, 110, 200])
@pytest.mark.parametrize("name", ["parallelcluster-p5", "prod"])
def test_no_figure_is_cut_in_a_narrow_terminal(name: str, columns: int) -> None:
    file = str(ROOT / "environments" / f"{name}.yaml")
    lines = run(file, columns=columns).output.splitlines()
    wide = run(file, columns=300).output

    assert max(map(len, lines)) <= columns
    months = re.findall(r"(\S*\d\S*) +(?:derived|us-east-1|undated|\d+ days old)", wide)
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


def test_strict_is_for_a_pipeline(small: str, tmp_path: Path) -> None:
    result = run(small, "--strict", columns=200)
    assert result.exit_code == 1
    assert "estimate, 6 of 8 lines" in result.output
    assert "4 of 8 lack one: controller: second volumes; gpu: second volumes; Lustre scratch-2; KMS keys" in (
        result.output
    )

    prices = {"hyperpod-volume": 0.125, "lustre.scratch-2": 0.14, "kms.key": 1}
    table = "key,region,usd,unit,date,source\n"
    table += "".join(f"{key},us-east-1,{usd},month,2026-11-20,ours\n" for key, usd in prices.items())
    (tmp_path / "prices.csv").write_text(table)
    complete = run(small, "--strict")
    assert complete.exit_code == 0
    assert "current prices, 8 of 8 lines" in complete.output

    (tmp_path / "prices.csv").write_text(f"{table}nat,us-east-1,0,hour,2026-11-20,ours\n")
    damaged = run(small, "--strict", columns=400)
    assert damaged.exit_code == 1
    assert "prices.csv:5: 0 is not a price" in damaged.output


def test_the_price_file_of_the_team_wins_and_its_faults_are_told(small: str, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(
        "key,region,usd,unit,date,source\n"
        "hyperpod.p5.48xlarge,us-east-1,50,hour,2026-11-01,our contract\n"
        "nat,us-east-1,free,hour,2026-11-01,our contract\n"
    )
    output = run(small, columns=400).output

    assert "50/h [2]" in output
    assert "2026-11-01: our contract (us-east-1)" in output
    assert "prices.csv:3: 'free' is not a price in USD; the line is not used" in output
    assert "0.045/h" in output  # the shipped price of the gateway counts, not 0
    assert json.loads(run(small, "--json").output)["faults"][0].endswith("the line is not used")


def test_a_type_without_any_price_is_a_clear_row(small: str) -> None:
    file = Path(small)
    file.write_text(file.read_text().replace("p5.48xlarge", "p5e.48xlarge"))
    output = run(small, columns=400).output

    assert "WITHOUT the nodes of gpu" in output.splitlines()[1]
    assert re.search(r"gpu: p5e.48xlarge +2 instances +\? +\? +\? +\? +not priced", output)
    assert "If one p5e.48xlarge in group gpu fails: its cost is unknown (not priced)" in output


@pytest.mark.parametrize(
    ("count", "code", "told"),
    [
        ("6758", 0, "about 326,000,000 USD/month"),
        ("1000000", 2, "1000000 is out of range"),
        ("-1", 2, "-1 is out of range"),
    ],
)
def test_counts_at_and_beyond_the_bounds(small: str, count: str, code: int, told: str) -> None:
    file = Path(small)
    file.write_text(file.read_text().replace("count: 2", f"count: {count}"))
    result = run(small, columns=400)

    assert (result.exit_code, told in result.output) == (code, True)


@pytest.mark.parametrize("name", ["dev", "eks-p5en", "parallelcluster-p5", "pcs-p6-b200", "prod"])
def test_each_resource_has_one_line_of_a_hundred_columns(name: str) -> None:
    file = str(ROOT / "environments" / f"{name}.yaml")
    table = run(file).output.split("\n\n")[1].splitlines()
    items = [item for item in billed(resolve(load(Path(file)).environment)) if item.area != "by use"]

    indented = [line for line in table if line.startswith("  ") and "per hour" not in line]
    assert all(line.strip().startswith(item.what) for line, item in zip(indented, items, strict=True))
    assert max(map(len, table)) <= 100


def test_a_fee_needs_days() -> None:
    file = str(ROOT / "environments" / "pcs-p6-b200.yaml")

    assert "--days gives it for a number of days" in run(file, columns=400).output
    assert "for 30 days about 327,000 USD" in run(file, "--days", "30", columns=400).output
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
    for key in dict.fromkeys(item.key for item in billed(resolve(load(Path(small)).environment))):
        if key:
            usage, usd = wanted.get(key, ("", ""))
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
    assert "66.048/h [2]" in result.stdout  # the table's


def _product(usagetype: str, usd: str) -> str:
    price = {"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usagetype}, "sku": "SKU1"},
            "terms": {"OnDemand": {"SKU1.A": {"priceDimensions": {"SKU1.A.B": price}}}},
            "publicationDate": "2026-11-18T00:57:01Z",
        }
    )
