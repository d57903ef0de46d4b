"""`ultracluster plan`: the figures of an environment, and how they are told."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import typer
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from ultracluster.catalog import InstanceType, instance_types, ultraservers
from ultracluster.catalog.sizing import accelerator_domain
from ultracluster.cli.plan import plan as command
from ultracluster.cli.plan_markdown import as_markdown
from ultracluster.cli.plan_text import as_text, duration, quota_amount
from ultracluster.config import Environment, load
from ultracluster.model import resolve
from ultracluster.model.quota_needs import needs
from ultracluster.plan.cost import Idle
from ultracluster.plan.environment_plan import CostPlan, Plan, QuotaPlan, parameters, plan, size_text
from ultracluster.rules import enforce

TODAY = dt.date(2026, 11, 21)


def environment(name: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(name), changes or {})).environment


def planned(name: str, changes: dict[str, Any] | None = None, model: float | None = None) -> Plan:
    return plan(resolve(environment(name, changes)), model, TODAY)


# environment and group -> accelerators, their GiB, domain, EFA interfaces and Gbit/s of a node, Gbit/s of all
FIGURES = {
    ("dev", "gpu"): (8, 357.62, (1, ""), 1, 100, 200),
    ("prod", "train"): (128, 18_048, (8, "NVLink"), 16, 3200, 51_200),
    ("trainium", "trn2"): (128, 12_288, (16, "NeuronLink"), 16, 3200, 25_600),
    # an instance carries 3200 Gbit/s, of which EFA has 1600: AWS's 28,800 for the UltraServer of 18
    ("parallelcluster-gb200", "gb200"): (72, 13_320, (72, "NVLink"), 4, 1600, 28_800),
    # four that are reserved; four more that come for a job count, too
    ("parallelcluster-p5", "reserved"): (32, 2560, (8, "NVLink"), 32, 3200, 12_800),
    ("parallelcluster-p5", "more"): (32, 2560, (8, "NVLink"), 32, 3200, 12_800),
    ("pcs-p6-b200", "train"): (32, 5729.96, (8, "NVLink"), 8, 3200, 12_800),
}


@pytest.mark.parametrize("case", FIGURES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_figures_of_a_group(case: tuple[str, str]) -> None:
    group = next(one for one in planned(case[0]).groups if one.name == case[1])
    domain = (group.domain.size, group.domain.link) if group.domain else None

    assert (
        group.accelerators, round(group.accelerator_memory_gib, 2), domain,
        group.efa_interfaces, group.efa_gbps_per_node, group.efa_gbps,
    ) == FIGURES[case]  # fmt: skip


PLACEMENTS = {
    ("prod", "train"): "hyperpod",
    ("prod", "login"): "",
    ("parallelcluster-p5", "reserved"): "none",
    ("parallelcluster-p5", "more"): "cluster",
    ("eks-p5en", "train"): "none",
}


@pytest.mark.parametrize("case", PLACEMENTS, ids=lambda case: f"{case[0]}-{case[1]}")
def test_placement_of_a_group(case: tuple[str, str]) -> None:
    assert next(one for one in planned(case[0]).groups if one.name == case[1]).placement == PLACEMENTS[case]


def test_a_reservation_in_a_group_is_placed_there() -> None:
    capacity = {"kind": "reservation", "id": "cr-0123456789abcdef0", "placement_group": "theirs"}
    found = planned("eks-p5en", {"node_groups.train.capacity": capacity})
    assert found.groups[1].placement == "reservation-group"


def test_a_group_may_decline_its_placement_group() -> None:
    changes: dict[str, Any] = {"node_groups.train.capacity": {"kind": "on-demand"}}
    assert planned("eks-p5en", changes).groups[1].placement == "cluster"
    changes["node_groups.train.placement_group"] = "none"
    assert planned("eks-p5en", changes).groups[1].placement == "none"


@pytest.mark.parametrize(
    ("nodes", "size", "name"),
    [(18, 72, "u-p6e-gb200x72"), (36, 72, "u-p6e-gb200x72"), (9, 36, "u-p6e-gb200x36"), (10, None, None)],
)
def test_ultraservers_come_whole(nodes: int, size: int | None, name: str | None) -> None:
    found = accelerator_domain(instance_types()["p6e-gb200.36xlarge"], nodes)
    assert (found and found.size, found and found.ultraserver) == (size, name)


def test_every_accelerated_type_has_a_known_domain() -> None:
    """The table of links has every family of the catalogue's accelerated types."""
    for name, known in instance_types().items():
        if known.accelerator is None:
            continue
        nodes = max((ultraservers()[one].instances for one in known.ultraserver), default=1)
        found = accelerator_domain(known, nodes)
        assert found is not None, name
        assert found.size in (1, known.accelerator.count) or found.ultraserver, name


def test_a_declared_type_has_an_unknown_domain() -> None:
    assert accelerator_domain(InstanceType(name="p9.48xlarge"), 4) is None


MODELS: dict[str, tuple[str, dict[str, Any], float, tuple[float, float | None, str, int | None, bool]]] = {
    # parameters -> GB of a checkpoint (14 bytes each), seconds, limit, nodes for 16 bytes each, fits
    "prod, 70B": ("prod", {}, 70e9, (980, 51.0, "file system", 1, True)),
    "prod, 405B": ("prod", {}, 405e9, (5670, 295.3, "file system", 6, True)),
    "prod, 1.8T": ("prod", {}, 1.8e12, (25_200, 1312.5, "file system", 24, False)),
    "dev, 8B": ("dev", {}, 8e9, (112, 373.3, "file system", 1, True)),
    # scratch reads 200 MB/s per TiB and writes 100
    "scratch": (
        "dev",
        {"storage.lustre": {"deployment": "scratch-2", "capacity_gib": 1200}},
        8e9,
        (112, 933.3, "file system", 1, True),
    ),
    # one client over TCP: 100 Gbit/s, which is less than 48 TiB at 1000 MB/s per TiB
    "one client": (
        "dev",
        {
            "storage.lustre.capacity_gib": 48_000,
            "storage.lustre.throughput_mbps_per_tib": 1000,
            "node_groups.gpu.count": 1,
        },
        8e9,
        (112, 9.0, "clients", 1, True),
    ),
    "existing": (
        "dev",
        {
            "storage.lustre": {
                "deployment": "existing",
                "id": "fs-0123456789abcdef0",
                "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
                "mount_name": "fsx",
                "security_group_id": "sg-0123456789abcdef0",
            }
        },
        8e9,
        (112, None, "", 1, True),
    ),
    "no Lustre": ("dev", {"storage.lustre": None}, 8e9, (112, None, "", 1, True)),
    "no accelerators": (
        "dev",
        {"node_groups.gpu.instance_type": "m5.24xlarge"},
        8e9,
        (112, 373.3, "file system", None, False),
    ),
}


@pytest.mark.parametrize("case", MODELS)
def test_checkpoint_and_training_state(case: str) -> None:
    name, changes, size, expected = MODELS[case]
    model = planned(name, changes, size).model
    assert model is not None
    seconds = model.write_seconds and round(model.write_seconds, 1)
    assert (model.checkpoint_gb, seconds, model.write_limit, model.nodes, model.fits) == expected
    text = as_text(planned(name, changes, size), terminal=False)
    assert ("does NOT fit" in text) == (not model.fits and model.nodes is not None)


@pytest.mark.parametrize(
    ("text", "number"),
    [("70B", 70e9), ("70b", 70e9), (" 1.8T ", 1.8e12), ("350M", 350e6), ("8 B", 8e9), ("0.5B", 5e8)],
)
def test_model_sizes(text: str, number: float) -> None:
    assert parameters(text) == number
    assert parameters(size_text(number)) == number


@pytest.mark.parametrize("text", ["", "70", "B", "70X", "-8B", "1e9", "0B", "9999T", "0.1M", "seventy"])
def test_what_is_no_model_size(text: str) -> None:
    with pytest.raises(ValueError, match="model size"):
        parameters(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.96, "10.0 s"), (51, "51 s"), (600, "10 min"), (36_000, "10.0 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


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
        nodes_not_priced=("login",), idle=idle, faults=("prices.csv:3: made up; the line is not used",),
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


def test_only_what_is_asked_for_is_imported() -> None:
    program = (
        "import sys; from typer import Typer; from ultracluster.cli.plan import plan; app = Typer();"
        "app.command()(plan); sys.argv = ['plan', 'dev']\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "found = {'aws_cdk', 'boto3', 'botocore', 'resvg_py', 'diagrams', 'xml.etree',"
        " 'ultracluster.cli.plan_markdown', 'ultracluster.plan.picture'} & set(sys.modules)\n"
        "sys.exit(str(sorted(found)) if found else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("dev:")
