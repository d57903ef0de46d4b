"""`ultracluster plan`: the figures of an environment, and how they are told."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import typer
from project import ENVIRONMENTS, ROOT
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from ultracluster.cli.plan import plan as command
from ultracluster.cli.plan_markdown import as_markdown
from ultracluster.cli.plan_text import as_text, quota_amount
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.model.quota_needs import needs
from ultracluster.plan.cost import Idle
from ultracluster.plan.environment_plan import CostPlan, Plan, QuotaPlan, plan
from ultracluster.rules import enforce

TODAY = dt.date(2026, 11, 21)


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [
        (1, "addresses", "1 address"),
        (2, "addresses", "2 addresses"),
        (1, "vCPUs", "1 vCPU"),
        (1, "MB/s", "1 MB/s"),
        (1536, "vCPUs", "1,536 vCPUs"),
    ],
)
def test_amounts_of_quotas(amount: float, unit: str, text: str) -> None:
    quota = QuotaPlan(service="ec2", name="n", code="L-1", amount=amount, unit=unit, why="w", scope="region")

    assert quota_amount(quota) == text


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_has_a_plan(name: str) -> None:
    file = load(ROOT / "environments" / f"{name}.yaml")
    found = plan(resolve(file.environment), 70e9, TODAY, warnings=enforce(file))
    document = json.loads(json.dumps(found.document()))

    assert [one.name for one in found.quotas] == [one.quota.name for one in needs(resolve(file.environment))]
    assert document["stacks"] == list(file.environment.stack_names)
    assert document["groups"][0]["nodes"] == found.groups[0].nodes
    assert document["model"]["fits"] is found.model.fits if found.model else False
    text, markdown = as_text(found, terminal=False), as_markdown(found)
    for group in file.environment.node_groups:
        assert group in text
        assert f"| {group} |" in markdown
    for one in found.quotas:
        assert one.name in markdown
    assert "--markdown" not in markdown
    assert found.cost.text in markdown
    assert found.cost.per_hour is not None
    for one in found.endpoints:
        assert f"| {one.service} | {one.kind} |" in markdown
    network = file.environment.network
    assert (found.perimeter in markdown) and bool(found.perimeter) is bool(found.endpoints)
    assert ("every bucket of S3 (to read)" in found.perimeter) is (network.egress == "nat")
    rows = [line.count("|") for line in markdown.splitlines() if line.startswith("|")]
    assert min(rows) >= 2
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def told() -> Plan:
    """A plan whose words do not change with prices and quotas."""
    file = load(ROOT / "environments" / "prod.yaml")
    found = plan(resolve(file.environment), 70e9, TODAY, warnings=enforce(file))
    idle = Idle(
        group="train", instance_type="p5en.48xlarge", prepaid=True, mark="", node_per_hour=0.5,
        job_groups=("train",), job_nodes=16, job_per_hour=8,
    )  # fmt: skip
    cost = CostPlan(
        per_hour=10.5, per_month=7665, most_per_month=8760, strict_per_month=1022, things=15, priced=13,
        strict=9, marks=("derived", "older than 90 days"), not_priced=("login", "second volumes"),
        nodes_not_priced=("login",), idle=idle, order=None,
        faults=("prices.csv:3: made up; the line is not used",),
    )  # fmt: skip
    return replace(found, cost=cost, quotas=found.quotas[:3])


def test_text(snapshot: SnapshotAssertion) -> None:
    assert as_text(told(), terminal=False) == snapshot


def test_markdown(snapshot: SnapshotAssertion) -> None:
    assert as_markdown(told()) == snapshot


def test_json(snapshot: SnapshotAssertion) -> None:
    assert json.dumps(told().document(), indent=2) == snapshot


def test_names_that_look_like_markup_stay() -> None:
    found = replace(told(), software="[red]2026.07[/red]")
    assert "[red]2026.07[/red]" in as_text(found, terminal=False)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("plan")(command)
DEV = str(ROOT / "environments" / "dev.yaml")


BAD = {
    "model": (["--model", "70"], "write it with M, B or T"),
    "two formats": (["--json", "--markdown"], "exclude each other"),
    "picture": (["--picture", "plan.pdf"], ".svg or .png"),
    "day": (["--today", "yesterday"], "YYYY-MM-DD"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_one_line_and_exit_code_2(case: str) -> None:
    options, told = BAD[case]
    result = CliRunner().invoke(app, [DEV, *options])

    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (result.stdout == "") is ("--json" not in options)


def test_json_of_the_command_is_the_plan() -> None:
    result = CliRunner().invoke(app, [DEV, "--json", "--model", "8B", "--today", "2026-11-21"])

    assert result.exit_code == 0
    assert json.loads(result.stdout)["model"]["checkpoint_gb"] == 112


@pytest.mark.slow
def test_only_what_is_asked_for_is_imported() -> None:
    program = (
        "import sys; from typer import Typer; from ultracluster.cli.plan import plan; app = Typer();"
        "app.command()(plan); sys.argv = ['plan', 'dev']\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "found = {'aws_cdk', 'boto3', 'botocore', 'resvg_py', 'diagrams', 'xml.etree',"
        " 'ultracluster.plan.picture'} & set(sys.modules)\n"
        "sys.exit(str(sorted(found)) if found else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("dev:")


@pytest.mark.parametrize(
    ("name", "count"), [("dev", 0), ("parallelcluster-p5", 3), ("parallelcluster-gb200", 1)]
)
def test_stacks_that_others_make_are_named(name: str, count: int) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    made = plan(resolve(environment), 70e9, TODAY)
    assert len(made.stacks_of_aws) == count
    assert all(environment.cluster_name in one for one in made.stacks_of_aws[-1:])
