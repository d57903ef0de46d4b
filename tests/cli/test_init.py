"""`ultracluster init`: what it writes validates, or it says why there is nothing to write."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import need
from project import ROOT
from ruamel.yaml import YAML
from typer.testing import CliRunner

from ultracluster.catalog import instance_type, instance_types, offered_zone_ids, regions
from ultracluster.catalog.eks import refused_zones
from ultracluster.catalog.guidelines import guideline
from ultracluster.cli.init import init
from ultracluster.config import Environment, Finding, InvalidEnvironmentError, load, parse
from ultracluster.config.source import Source
from ultracluster.model import resolve
from ultracluster.plan import draft_check
from ultracluster.plan.choice import CAPACITIES
from ultracluster.plan.draft import ORCHESTRATORS, Wishes, draft
from ultracluster.plan.draft_place import (
    only_in_local_zones,
    regions_for,
    zones_for,
)
from ultracluster.plan.environment_plan import plan
from ultracluster.rules import check

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("init")(init)
FLAGS = [
    "--instance-type", "p5en.48xlarge", "--nodes", "16", "--orchestrator", "hyperpod-slurm",
    "--region", "us-east-2",
]  # fmt: skip


def run(*arguments: str, answers: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=answers)


def wishes(kind: str, orchestrator: str, nodes: int, region: str = "us-east-2", **changes: Any) -> Wishes:
    return Wishes(
        **{
            "region": region,
            "zone_id": next(iter(zones_for(region, kind)), f"{region}-az1"),
            "orchestrator": orchestrator,
            "instance_type": kind,
            "nodes": nodes,
        }
        | changes
    )


def judged(text: str) -> tuple[Environment | None, list[Finding]]:
    """The environment, and what is wrong with it."""
    data = cast("Any", YAML(typ="safe")).load(text)
    try:
        found = parse(Source("the draft", data=data))
    except InvalidEnvironmentError as error:
        return None, list(error.findings)
    return found.environment, [finding for finding in check(found) if finding.blocks]


SIZES = (1, 8, 9, 64, 512)
TYPES = (
    "p4d.24xlarge", "p4de.24xlarge", "p5.4xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge",
    "p6-b200.48xlarge", "p6-b300.48xlarge", "g5.48xlarge", "g6e.12xlarge", "g7e.48xlarge", "trn1.32xlarge",
    "trn2.48xlarge", "c7g.16xlarge", "m7i.48xlarge",
)  # fmt: skip


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
@pytest.mark.parametrize("kind", TYPES)
def test_what_is_written_validates(kind: str, orchestrator: str) -> None:
    for nodes in SIZES:
        environment, wrong = judged(draft(wishes(kind, orchestrator, nodes)))

        if wrong:
            # a plan, the only way to p5e on HyperPod, holds 64
            assert {finding.code for finding in wrong} == {"GRP028"}, (nodes, wrong)
            assert (kind, orchestrator, nodes) in {
                ("p5e.48xlarge", "hyperpod-eks", 512), ("p5e.48xlarge", "hyperpod-slurm", 512),
            }  # fmt: skip
        else:
            assert environment is not None
            assert _nodes(environment) == nodes


def _nodes(environment: Environment) -> int:
    groups = environment.node_groups.values()
    return sum(group.count for group in groups if group.role == "compute")


MOST = {
    # 65,531 addresses of the largest subnet, by those of a node
    ("p5.48xlarge", "hyperpod-slurm"): 2047, ("p5.48xlarge", "pcs"): 2047,
    ("p5.48xlarge", "hyperpod-eks"): 809, ("p5.48xlarge", "eks"): 1310,
    ("p6-b200.48xlarge", "hyperpod-eks"): 1149, ("p6-b200.48xlarge", "eks"): 1310,
    ("trn2.48xlarge", "hyperpod-eks"): 1008, ("trn2.48xlarge", "eks"): 1310,
    # instances of the largest cluster of PCS
    ("p6-b200.48xlarge", "pcs"): 2048, ("trn2.48xlarge", "pcs"): 2048,
}  # fmt: skip


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
@pytest.mark.parametrize("kind", ["p5.48xlarge", "p6-b200.48xlarge", "trn2.48xlarge"])
def test_up_to_4000_nodes_there_is_a_draft_or_the_limit_that_stops_it(kind: str, orchestrator: str) -> None:
    """By the figures of AWS's pages, not by those of the rules; at every edge of what a draft plans."""
    most = MOST.get((kind, orchestrator), 4000)
    for nodes in (128, 129, 403, 404, 450, 451, 512, 1000, 1024, 1025, 1200, 2100, 4000):
        asked = wishes(kind, orchestrator, nodes, "us-east-1" if kind != "trn2.48xlarge" else "us-east-2")
        found = draft_check.judged(asked)
        if nodes > most:
            assert {one.code for one in (*found.wrong, *found.unsold)} <= {"NET005", "NET006", "PCS063"}
            assert found.wrong or found.unsold
            continue
        assert not found.wrong and not found.unsold, (nodes, found.findings)
        environment, _ = judged(found.text)
        assert environment and _nodes(environment) == nodes
        lustre: Any = environment.storage.lustre
        if lustre.efa:
            each = lustre.efa_interfaces_per_client or 8
            assert nodes * each <= 1024 < nodes * each * 2 or each == 8
        assert all(group.count <= 450 for group in environment.node_groups.values()) or orchestrator != "eks"


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
@pytest.mark.parametrize("nodes", [9, 18])
def test_an_ultraserver_is_a_block_or_a_plan_in_its_local_zone(orchestrator: str, nodes: int) -> None:
    asked = wishes("p6e-gb200.36xlarge", orchestrator, nodes, "us-east-1", zone_id="use1-dfw2-az1")
    environment, wrong = judged(draft(asked))

    # EKS puts no control plane into a Local Zone: its first subnet is in the zone beside it
    assert not wrong
    assert environment is not None
    assert environment.node_groups["train"].capacity.kind in ("capacity-block", "training-plan")


REFUSED = {
    ("trn2u.48xlarge", "hyperpod-slurm", 4): "HYP040",
    ("trn2u.48xlarge", "pcs", 8): "the largest UltraServer of trn2u.48xlarge has 4",
    ("inf2.48xlarge", "hyperpod-eks", 4): "HYP040",
    ("p9.48xlarge", "eks", 4): "Unknown instance type 'p9.48xlarge'. Did you mean p5.48xlarge or",
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_cannot_be_had_is_refused_by_its_rule(case: tuple[str, str, int], tmp_path: Path) -> None:
    kind, orchestrator, nodes = case
    file = tmp_path / "train.yaml"
    result = run(
        "--instance-type", kind, "--orchestrator", orchestrator, "--nodes", str(nodes),
        "--region", "us-east-2", "-o", str(file),
    )  # fmt: skip

    assert result.exit_code == 2
    assert REFUSED[case] in result.stderr
    assert result.stdout == ""
    assert not file.exists()


@settings(deadline=None, max_examples=examples(5))
@given(
    kind=st.sampled_from(sorted(name for name, known in instance_types().items() if known.accelerator)),
    orchestrator=st.sampled_from(ORCHESTRATORS),
    region=st.sampled_from(sorted(regions())),
    nodes=st.integers(1, 2000),
    capacity=st.sampled_from(sorted(CAPACITIES)),
    tib=st.one_of(st.none(), st.just(0.0), st.floats(0.1, 500)),
)
def test_it_writes_what_validates_or_refuses_with_a_reason(
    kind: str, orchestrator: str, region: str, nodes: int, capacity: str, tib: float | None
) -> None:
    zone = zones_for(region, kind)
    options = [
        "--instance-type", kind, "--orchestrator", orchestrator, "--region", region, "--nodes", str(nodes),
        "--capacity", capacity,
    ]  # fmt: skip
    result = run(*options, *([] if tib is None else ["--lustre-tib", str(tib)]))

    assert result.exit_code in (0, 2), result.exception
    if result.exit_code == 2:
        alone = not zone or only_in_local_zones(region, kind)
        assert "the environment would be rejected" in result.stderr
        assert not alone or "--zone-id" in result.stderr
        assert result.stdout == ""
        return
    environment, wrong = judged(result.stdout)
    assert wrong == []
    assert environment is not None
    assert environment.network.zone_id == zones_for(region, kind, cast("Any", orchestrator))[0]
    assert (environment.storage.lustre is None) == (tib == 0)
    lustre = cast("Any", environment.storage.lustre)
    if tib:
        assert lustre.capacity_gib >= tib * 1000 - 1


@pytest.mark.parametrize("nodes", [8, 64, 512])
@pytest.mark.parametrize("kind", ["p5.48xlarge", "p5en.48xlarge", "trn2.48xlarge"])
def test_lustre_takes_a_checkpoint_in_the_time_of_the_guideline(kind: str, nodes: int) -> None:
    environment, _ = judged(draft(wishes(kind, "parallelcluster", nodes)))
    known = instance_type(kind)
    assert environment is not None
    assert known is not None
    assert known.accelerator is not None

    # a training state that fills half of the memory, at 16 bytes a parameter
    model = known.accelerator.memory_gib * 2**30 * nodes * 0.5 / 16
    found = plan(resolve(environment), model).model

    assert found is not None
    assert found.write_seconds is not None
    assert found.write_seconds <= guideline(nodes).checkpoint_minutes * 60


def test_the_controller_grows_with_the_cluster() -> None:
    sizes = []
    for nodes in (8, 64, 512):
        environment, _ = judged(draft(wishes("p5.48xlarge", "parallelcluster", nodes)))
        assert environment is not None
        sizes.append(plan(resolve(environment)).groups[0].memory_gib or 0)
        # aws-parallelcluster 3.16.1: a head node has at least min(nodes / 25 + 0.6, 16) GB
        assert sizes[-1] >= min(nodes / 25 + 0.6, 16)
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("kind", ["p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"])
def test_a_local_zone_is_nobodys_default(kind: str) -> None:
    """us-east-1 has a Local Zone in Atlanta, whose id comes first in the alphabet."""
    first = zones_for("us-east-1", kind)[0]
    assert re.fullmatch(r"use1-az\d", first)
    result = run(
        "--instance-type", kind, "--nodes", "8", "--orchestrator", "pcs", "--region", "us-east-1", "--yes"
    )
    assert f"zone_id: {first}" in result.stdout


def test_what_only_a_local_zone_has_asks_for_the_zone() -> None:
    result = run(
        "--instance-type", "p6e-gb200.36xlarge", "--nodes", "9", "--orchestrator", "pcs", "--region",
        "us-east-1",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "Pass --zone-id: in" in result.stderr and "an account opts in to it" in result.stderr


@pytest.mark.parametrize("region", ["us-east-1", "us-west-1", "ca-central-1"])
def test_a_control_plane_gets_no_zone_that_eks_refuses(region: str) -> None:
    for zone in zones_for(region, "g5.48xlarge"):
        asked = wishes("g5.48xlarge", "eks", 2, region, zone_id=zone)
        text = draft(asked)
        refused = {one for one in refused_zones() if f"second_zone_id: {one}" in text}
        assert not refused, zone


def test_zones_are_those_of_the_price_table_first() -> None:
    offered = offered_zone_ids("p5en.48xlarge", "us-east-2")
    assert offered
    assert zones_for("us-east-2", "p5en.48xlarge")[: len(offered)] == offered
    assert "us-east-2" in regions_for("p5en.48xlarge")
    assert zones_for("us-nowhere-1", "p5en.48xlarge") == ()


def test_a_file_is_written_once(tmp_path: Path) -> None:
    file = tmp_path / "environments" / "train.yaml"

    first = run(*FLAGS, "-o", str(file))
    content = file.read_text()
    again = run(*FLAGS, "--name", "other", "-o", str(file))
    unchanged = file.read_text()
    forced = run(*FLAGS, "--name", "other", "-o", str(file), "--force")

    assert (first.exit_code, again.exit_code, forced.exit_code) == (0, 2, 0)
    assert first.stdout == ""
    assert "--force" in again.stderr
    assert unchanged == content
    assert load(file).environment.name == "other"


def test_standard_output_is_the_file_and_nothing_else() -> None:
    result = run(*FLAGS, "--name", "big")
    environment, wrong = judged(result.stdout)

    assert wrong == []
    assert environment is not None
    assert (environment.name, environment.region) == ("big", "us-east-2")
    assert "#" in result.stdout


def project(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which everything is installed; the schema's place in it."""
    (root / ".venv/bin").mkdir(parents=True)
    (root / "node_modules/.bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", root)
    for name in (
        "cdk.json", "requirements.lock", "pyproject.toml", "package.json", "package-lock.json",
        "requirements-node.lock", "requirements-plan.lock", "requirements-build.lock", ".venv/.created",
        ".venv/.plan", ".venv/.run", ".venv/.node", "node_modules/.stamp",
    ):  # fmt: skip
        (root / name).touch()
    program = root / ".venv/bin/ultracluster"
    program.write_text(
        f"#!/bin/bash\nexec '{sys.executable}' -c 'from ultracluster.cli.main import app; app()' \"$@\"\n"
    )
    program.chmod(0o755)
    schema = root / "constructs" / "ultracluster" / "config" / "environment.schema.json"
    monkeypatch.setattr("ultracluster.cli.draft_words._SCHEMA", schema)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return schema


def told(text: str) -> list[str]:
    """The commands of a draft's head."""
    return re.findall(r"^# (?:What it will be and need|Whether the account can have it): (.+)$", text, re.M)


@pytest.mark.parametrize("above", [False, True])
def test_a_file_in_the_project_names_its_schema(
    above: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = project(tmp_path / "mine", monkeypatch)
    monkeypatch.chdir(tmp_path if above else tmp_path / "mine")

    run(*FLAGS, "-o", "mine/environments/train.yaml" if above else "environments/train.yaml")

    first = (tmp_path / "mine" / "environments" / "train.yaml").read_text().splitlines()[0]
    place = first.removeprefix("# yaml-language-server: $schema=")
    assert (tmp_path / "mine" / "environments" / place).resolve() == schema


@pytest.mark.parametrize(
    ("output", "command"),
    [
        ("environments/big.yaml", "make plan ENV=big"),
        ("environments/more/big.yaml", "ultracluster plan environments/more/big.yaml"),
        ("my cluster.yml", "ultracluster plan 'my cluster.yml'"),
        ("../big.yaml", "ultracluster plan ../big.yaml"),
        (None, "make plan ENV=train"),
    ],
)
def test_the_head_names_commands_that_work_where_the_file_lies(
    output: str | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("make")
    root = tmp_path / "checkout"
    project(root, monkeypatch)
    monkeypatch.chdir(root)
    result = run(*FLAGS, *(["-o", output] if output else []))
    assert result.exit_code == 0, result.stderr
    text = Path(output).read_text() if output else result.stdout
    if not output:  # where the head says that it is to be saved
        place = re.findall(r"^# Save it as (\S+); then$", text, re.M)
        assert place == ["environments/train.yaml"]
        Path("environments").mkdir()
        Path(place[0]).write_text(text)

    plans, asks = told(text)

    assert plans == command
    done = subprocess.run(plans, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert done.returncode == 0, done.stdout + done.stderr
    assert "p5en.48xlarge" in done.stdout
    # asking needs an account; the command finds the file, and says that credentials are missing
    assert asks == command.replace("plan", "preflight", 1)


def test_outside_a_checkout_the_head_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installed wheel."""
    monkeypatch.setattr("ultracluster.cli.draft_words._SCHEMA", tmp_path / "a/b/c/environment.schema.json")
    monkeypatch.chdir(tmp_path)

    assert told(run(*FLAGS).stdout)[0] == "ultracluster plan train.yaml"
    assert "# Save it as train.yaml; then" in run(*FLAGS).stdout


@pytest.mark.parametrize("extra", [[], ["--yes"]])
def test_without_a_terminal_flags_are_needed(extra: list[str]) -> None:
    result = run("--nodes", "8", *extra)

    assert result.exit_code == 2
    assert all(flag in result.stderr for flag in ("--instance-type", "--orchestrator", "--region"))
    assert "--nodes," not in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--orchestrator", "slurm"], "hyperpod-slurm, hyperpod-eks, parallelcluster, pcs, eks"),
        (["--capacity", "block"], "capacity-block"),
        (["--zone-id", "use1-az1"], "ENV003"),
        (["--name", "Not_a_name"], "CFG005"),
    ],
)
def test_wrong_flags_are_told(options: list[str], told: str) -> None:
    result = run(*FLAGS, *options)

    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def asked(
    monkeypatch: pytest.MonkeyPatch, file: Path, *answers: str
) -> tuple[Environment | None, list[Finding], str]:
    monkeypatch.setattr("ultracluster.cli.init.can_ask", lambda: True)
    result = run("-o", str(file), answers="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.stderr
    return *judged(file.read_text()), result.stderr


def test_questions_are_asked_on_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each slip is told, and asked again."""
    environment, wrong, told = asked(
        monkeypatch, tmp_path / "new.yaml",
        "trn3.48xlarge", "trn2.48xlarge", "none", "0", "4", "slurm", "pcs", "us-east-22", "us-east-2",
        "use2-az3", "block", "capacity-block", "-1", "much", "9.6", "trainium",
    )  # fmt: skip

    assert wrong == []
    assert environment is not None
    assert (environment.name, environment.network.zone_id) == ("trainium", "use2-az3")
    assert environment.node_groups["train"].count == 4
    assert environment.node_groups["train"].capacity.kind == "capacity-block"
    assert cast("Any", environment.storage.lustre).capacity_gib == 9600
    assert told.count("]:   ") == 8, told
    assert "Unknown Region 'us-east-22'. Did you mean us-east-2" in told


def test_accelerators_are_an_answer_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A number of them leaves no question for the nodes."""
    environment, wrong, told = asked(
        monkeypatch, tmp_path / "new.yaml", "0xH100", "64xh900", "64 x h100", "eks", "us-west-2", *[""] * 4
    )

    assert wrong == []
    assert environment is not None
    group = environment.node_groups["train"]
    assert (group.instance_type, group.count, group.capacity.kind) == ("p5.48xlarge", 8, "on-demand")
    assert "Compute nodes" not in told
    assert told.count("]:   ") == 2


@pytest.mark.parametrize(("words", "count"), [([], 18), (["--nodes", "9"], 9)])
def test_an_ultraserver_says_its_number_of_nodes(words: list[str], count: int) -> None:
    told = run(
        "--instance-type", "u-p6e-gb200x72", *words, "--orchestrator", "parallelcluster", "--region",
        "us-east-1", "--zone-id", "use1-dfw2-az1",
    )  # fmt: skip

    assert told.exit_code == 0, told.output
    assert f"count: {count}" in told.stdout and "instance_type: p6e-gb200.36xlarge" in told.stdout


@pytest.mark.parametrize(
    "words", [["--instance-type", "trn3.48xlarge", "--nodes", "4"], ["--accelerators", "72xGB300"]]
)
def test_announced_types_are_known_and_point_to_where_they_are_declared(words: list[str]) -> None:
    told = run(*words, "--orchestrator", "eks", "--region", "us-east-1")

    assert told.exit_code == 2 and "is announced" in told.output
    assert "environments/announced/types.yaml" in told.output


def test_empty_answers_are_the_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked(monkeypatch, tmp_path / "train.yaml", *[""] * 8)
    told = run(
        "--instance-type", "p5en.48xlarge", "--nodes", "8", "--orchestrator", "hyperpod-slurm", "--region",
        "us-east-2", "--yes",
    )  # fmt: skip

    written = (tmp_path / "train.yaml").read_text()
    assert written.partition("\nname:")[2] == told.stdout.partition("\nname:")[2]


def test_nothing_is_written_when_the_questions_are_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ultracluster.cli.init.can_ask", lambda: True)

    result = run("-o", str(tmp_path / "train.yaml"), answers="p5.48xlarge\n")

    assert result.exit_code == 1
    assert not list(tmp_path.iterdir())


def test_what_is_given_goes_into_the_file() -> None:
    plan_arn = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/mine"
    role = "arn:aws:iam::111122223333:role/people"
    kubernetes = draft(wishes("p5.48xlarge", "eks", 8, admin=role))
    trained = draft(
        wishes("p5.48xlarge", "hyperpod-slurm", 8, capacity="training-plan", capacity_id=plan_arn)
    )
    block = wishes("p5.48xlarge", "pcs", 8, capacity="capacity-block", image="ami-00000000000000001")

    assert f"- {role}" in kubernetes
    assert f"arn: {plan_arn}\n" in trained
    assert "stands in" not in kubernetes + trained
    assert draft(block).count("ami-00000000000000001") == 2
    assert "stands in for the id of yours" in draft(block)


def test_commands_in_findings_name_the_file_that_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    arm = "--instance-type p6e-gb200.36xlarge --nodes 18 --orchestrator pcs --region us-east-1"
    ended = run(*arm.split(), "--zone-id", "use1-dfw2-az1", "--output", str(file))

    assert ended.exit_code == 0, ended.output
    assert f"`ultracluster software lock --for {file}`" in " ".join(ended.output.split())
