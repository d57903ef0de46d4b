"""`ultracluster init` over the whole catalogue: drafts are sold there, refusals have a neighbour.

Types that are alike in family and in how they are sold in a Region count once; a deep run tries each Region.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import typer
import yaml
from depth import examples
from typer.testing import CliRunner
from yaml import CSafeLoader

from ultracluster.catalog import (
    InstanceType,
    instance_type,
    instance_types,
    offered_zone_ids,
    region,
    regions,
)
from ultracluster.catalog.eks import refused_zones
from ultracluster.cli.init import init
from ultracluster.config import Environment, load
from ultracluster.config.orchestrator import HYPERPOD, OrchestratorKind
from ultracluster.plan.draft import ORCHESTRATORS, Wishes
from ultracluster.plan.draft_check import Judgement, judged
from ultracluster.plan.draft_place import NoZoneError

pytestmark = pytest.mark.slow
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("init")(init)
DEEP = examples(1) > 1
NODES = 9  # an UltraServer of GB200; the second row of the guidelines


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def in_region(places: tuple[str, ...], name: str) -> bool:
    """A Region, or a Local Zone of it, is among the places."""
    return any(place == name or place.startswith(f"{name}-") for place in places)


def has_it(known: InstanceType, name: str) -> bool:
    return in_region((*known.regions, *known.hyperpod_regions, *known.capacity_block_regions), name)


@cache
def cases() -> tuple[tuple[str, str], ...]:
    """Types and Regions that the catalogue says have them."""
    found: dict[tuple[object, ...], tuple[str, str]] = {}
    for name, known in instance_types().items():
        if not known.accelerator:
            continue
        places = (known.regions, known.hyperpod_regions, known.capacity_block_regions)
        for place in regions():
            if has_it(known, place):
                zones = offered_zone_ids(name, place)
                means = (*(in_region(sold, place) for sold in places), bool(zones), known.on_demand)
                alike = (known.family, places, place, zones) if DEEP else (known.family, *means)
                found.setdefault(alike, (name, place))
    return tuple(found.values())


@cache
def judgements(orchestrator: OrchestratorKind) -> Mapping[tuple[str, str], Judgement | str]:
    """For each case the draft, or why none is written."""
    found: dict[tuple[str, str], Judgement | str] = {}
    for kind, place in cases():
        asked = Wishes(instance_type=kind, nodes=NODES, orchestrator=orchestrator, region=place)
        try:
            one = judged(asked)
        except NoZoneError as error:
            found[kind, place] = str(error)
        else:
            reasons = [*one.wrong, *one.unsold]
            found[kind, place] = "; ".join(f"{reason.code} {reason.message}" for reason in reasons) or one
    return found


def test_the_matrix_is_the_catalogue() -> None:
    accelerated = {one.family for one in instance_types().values() if one.accelerator}
    assert {cast("InstanceType", instance_type(kind)).family for kind, _ in cases()} == accelerated
    assert len(cases()) > (300 if DEEP else 60)


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
def test_what_is_drafted_is_sold_there(orchestrator: OrchestratorKind) -> None:
    """By the catalogue itself, not by the rules that `init` asks."""
    drafted = {case: one for case, one in judgements(orchestrator).items() if isinstance(one, Judgement)}
    assert len(drafted) > len(cases()) / 2
    for (kind, place), one in drafted.items():
        data: Any = read(one.text)
        known, group = instance_type(kind), data["node_groups"]["train"]
        assert known is not None
        capacity, zone = group["capacity"]["kind"], data["network"]["zone_id"]
        assert capacity != "spot"
        if capacity == "on-demand":
            places = known.hyperpod_regions if orchestrator in HYPERPOD else known.regions
            assert place in places, (kind, place)
        elif capacity == "capacity-block":
            assert in_region(known.capacity_block_regions, place), (kind, place)
        else:
            assert capacity == "training-plan" and known.training_plan, (kind, place)
        assert re.fullmatch(r"[a-z0-9]+-az\d+", zone), (kind, place)
        assert zone in (offered_zone_ids(kind, place) or cast("Any", region(place)).zone_ids)
        assert data["orchestrator"].get("second_zone_id") not in refused_zones()
        for name, other in data["node_groups"].items():
            general = instance_type(other["instance_type"])
            assert general is not None
            sold = (
                general.hyperpod_regions if orchestrator in HYPERPOD and name != "system" else general.regions
            )
            assert name == "train" or place in sold, (kind, place, name)
        assert {finding.severity for finding in one.findings} <= {"warning"}


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
def test_each_default_has_its_reason(orchestrator: OrchestratorKind) -> None:
    for case, one in judgements(orchestrator).items():
        if isinstance(one, Judgement):
            assert re.search(r"^  # The zone: .+", one.text, re.M), case
            assert re.search(r"^    capacity:\n      # [A-Z].+", one.text, re.M), case
            if "  lustre:\n" in one.text:
                assert "Required: " in one.text, case


REASONS = r"Pass --zone-id|(ENV002|GRP02[3568]|GRP034|HYP02[36]|PCS022|HYP04[01]|PCL061|PCS001|EKS017) "
"""Why a combination cannot be had: no zone is known, or a Local one only; sold elsewhere or by other means;
not in HyperPod, ParallelCluster or PCS, or not in that Region."""


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
def test_what_is_refused_has_a_neighbour_that_is_not(orchestrator: OrchestratorKind) -> None:
    """For each reason the command line is asked for one type of each kind: G, P, Inf, Trn."""
    seen: set[tuple[str, str]] = set()
    for (kind, place), why in judgements(orchestrator).items():
        if isinstance(why, Judgement):
            continue
        assert re.match(REASONS, why), (kind, place, why)
        alike = (kind[:1], why.partition(" ")[0])
        if alike in seen:
            continue
        seen.add(alike)
        refused = run(
            "--instance-type", kind, "--nodes", str(NODES), "--orchestrator", orchestrator, "--region", place
        )
        assert (refused.exit_code, refused.stdout) == (2, ""), (kind, place)
        assert "Nothing was written: the environment would be rejected:" in refused.stderr
        near = neighbours(refused.stderr)
        assert near, (kind, place, refused.stderr)
        accepted = run(*near[0])
        assert accepted.exit_code == 0, (near[0], accepted.stderr)
    assert seen


def neighbours(text: str) -> list[list[str]]:
    """The commands that a refusal names."""
    return [shlex.split(one) for one in re.findall(r"^  ultracluster init (.+)$", text, re.M)]


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
@pytest.mark.parametrize(
    ("asked", "region_name", "kind", "nodes", "accelerators"),
    [
        (("--accelerators", "64xH100"), "us-east-1", "p5.48xlarge", 8, "64 x H100"),
        (("--accelerators", "512 x b200"), "us-east-2", "p6-b200.48xlarge", 64, "512 x B200"),
        (("--accelerators", "16xTrn2"), "us-east-2", "trn2.48xlarge", 1, "16 x Trainium2"),
        (("--instance-type", "trn2.48xlarge", "--nodes", "16"), "us-east-2", "trn2.48xlarge", 16, "256 x"),
    ],
)
def test_what_people_ask_for_first(
    orchestrator: OrchestratorKind,
    asked: tuple[str, ...],
    region_name: str,
    kind: str,
    nodes: int,
    accelerators: str,
    tmp_path: Path,
) -> None:
    file = tmp_path / "train.yaml"
    result = run(*asked, "--orchestrator", orchestrator, "--region", region_name, "-o", str(file))

    assert result.exit_code == 0, result.stderr
    environment: Environment = load(file).environment
    group = environment.node_groups["train"]
    assert (group.instance_type, group.count) == (kind, nodes)
    assert re.fullmatch(r"use[12]-az\d", environment.network.zone_id)
    assert environment.network.zone_id in offered_zone_ids(kind, region_name)
    known = instance_type(kind)
    assert known is not None
    blocks = known.on_demand is False and orchestrator not in HYPERPOD
    assert group.capacity.kind == ("capacity-block" if blocks else "on-demand")
    text = file.read_text()
    assert text.startswith(f"# {accelerators}")
    assert "# The zone: one of the zones known to offer" in text
    assert (f"# Capacity Blocks of {kind} are sold" if blocks else "# On demand: nothing is bought") in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--nodes", "-3"), "--nodes -3: a number of nodes, 1 to 6758"),
        (("--nodes", "0"), "--nodes 0: a number of nodes"),
        (("--nodes", "9" * 400), "a number of nodes, 1 to 6758"),
        (
            ("--region", "us-nowhere-1"),
            "--region us-nowhere-1: Unknown Region 'us-nowhere-1'. Did you mean us-",
        ),
        (("--zone-id", "use1-az99"), "GRP026"),
        (("--zone-id", "mars-az1"), "ENV003"),
        (("--zone-id", ""), None),
        (("--instance-type", "p9.48xlarge"), "Unknown instance type 'p9.48xlarge'"),
        (("--instance-type", "64xh100"), "write --accelerators 64xh100"),
        (("--instance-type", "*"), "Unknown instance type '*'"),
        (("--instance-type", "p5.48xlarge: {"), "Unknown instance type"),
        (("--name", "a\nregion: mars"), "write it on one line"),
        (("--name", "yes"), None),
        (("--image", "!ami"), "CFG005"),
        (("--lustre-tib", "1e300"), "a number of TiB below 100,000"),
        (("--lustre-tib", "nan"), "a number of TiB below 100,000"),
        (("--lustre-tib", "-1"), "a number of TiB below 100,000"),
        (("--name", "Not_a_name"), "CFG005 name"),
        (("--capacity", "training-plan"), "SageMaker"),
    ],
)
def test_bad_flags_are_rows_and_no_traceback(arguments: tuple[str, str], says: str | None) -> None:
    flags = {
        "--instance-type": "p5.48xlarge", "--nodes": "8", "--orchestrator": "pcs", "--region": "us-east-1",
    } | dict([arguments])  # fmt: skip
    result = run(*(word for pair in flags.items() for word in pair))

    if says is None:
        assert result.exit_code == 0, result.stderr
        return
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    for near in neighbours(result.stderr)[:1]:
        assert run(*near).exit_code == 0, near


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("0xH100", "1 to "),
        ("-8xH100", "write a number and a name: 64xH100"),
        ("H100", "write a number and a name: 64xH100"),
        ("8xH900", "No instance type has H900. Did you mean H100 or H200?"),
        ("999999999xH100", "which 6758 nodes of p5.48xlarge have"),
        ("8xp5.48xlarge", "No instance type has p5.48xlarge"),
    ],
)
def test_accelerators_that_cannot_be_read(asked: str, says: str) -> None:
    result = run("--accelerators", asked, "--orchestrator", "pcs", "--region", "us-east-1")

    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("asked", "kind", "nodes"),
    [
        ("1xH100", "p5.4xlarge", 1), ("8xH100", "p5.48xlarge", 1), ("60xH100", "p5.48xlarge", 8),
        ("16xA100-80GB", "p4de.24xlarge", 2), ("64xH200", "p5en.48xlarge", 8),
        ("32xTrainium2", "trn2.48xlarge", 2), ("16xTrainium", "trn1.32xlarge", 1),
        ("8 NVIDIA L40S", "g6e.48xlarge", 1),
    ],
)  # fmt: skip
def test_accelerators_choose_the_type(asked: str, kind: str, nodes: int) -> None:
    result = run(
        "--accelerators", asked, "--orchestrator", "hyperpod-slurm", "--region",
        "us-west-2" if kind.startswith("p4de") else "us-east-2", "--anyway",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    group = read(result.stdout)["node_groups"]["train"]
    assert (group["instance_type"], group["count"]) == (kind, nodes)
    assert (" more than asked" in result.stdout) == (asked == "60xH100")


def test_accelerators_exclude_type_and_number() -> None:
    result = run("--accelerators", "8xH100", "--nodes", "2", "--orchestrator", "eks", "--region", "us-east-1")
    assert result.exit_code == 2
    assert "Pass either --accelerators, or --instance-type and --nodes" in result.stderr


def test_what_is_not_known_to_be_sold_is_written_when_asked_to() -> None:
    flags = (
        "--instance-type", "p6-b200.48xlarge", "--nodes", "8", "--orchestrator", "eks", "--region",
        "eu-central-1",
    )  # fmt: skip
    refused, written = run(*flags), run(*flags, "--anyway")

    assert refused.exit_code == 2
    assert "GRP025" in refused.stderr and "--anyway" in refused.stderr
    assert written.exit_code == 0
    assert "GRP025" in written.stderr
    # what is wrong for certain stays refused
    wrong = run("--instance-type", "inf2.48xlarge", "--nodes", "1", "--orchestrator", "hyperpod-eks",
                "--region", "us-east-2", "--anyway")  # fmt: skip
    assert wrong.exit_code == 2
    assert "--anyway" not in wrong.stderr


def read(text: str) -> Any:
    return yaml.load(text, CSafeLoader)
