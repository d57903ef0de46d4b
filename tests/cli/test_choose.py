"""`ultracluster choose`: the orchestrators ranked, with reasons."""

from __future__ import annotations

import json
import shlex
from typing import Any, get_args

import pytest
import typer
import yaml
from project import ENVIRONMENTS, ROOT
from typer.testing import CliRunner

from ultracluster.catalog import instance_type, ultraservers
from ultracluster.catalog.wishes import wishes
from ultracluster.cli.choose import choose
from ultracluster.cli.init import init
from ultracluster.config import load
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM, OrchestratorKind
from ultracluster.model.capacity import decide
from ultracluster.plan.choice import CAPACITIES, Wanted, comparison, questions, ranking
from ultracluster.plan.draft_size import read_type

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("choose")(choose)
KINDS: tuple[OrchestratorKind, ...] = get_args(OrchestratorKind)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def possible(*features: str, capacity: str = "", kind: str = "") -> list[str]:
    """The orchestrators that lack nothing, best first."""
    known = instance_type(kind) if kind else None
    found = ranking(Wanted(features=features, capacity=capacity, instance_type=known))
    return [rank.orchestrator for rank in found if rank.possible]


DECISIONS: dict[str, tuple[list[str], dict[str, str], list[str]]] = {
    "nothing asked": ([], {}, ["hyperpod-slurm", "hyperpod-eks", "parallelcluster", "pcs", "eks"]),
    "Slurm scripts": (["slurm"], {}, ["hyperpod-slurm", "parallelcluster", "pcs"]),
    "pods": (["kubernetes"], {}, ["hyperpod-eks", "eks"]),
    "Slurm that heals": (["slurm", "recovery"], {}, ["hyperpod-slurm", "parallelcluster", "pcs"]),
    "managed Slurm": (["slurm", "managed"], {}, ["pcs", "hyperpod-slurm"]),
    "elastic Slurm": (["slurm", "elastic"], {}, ["parallelcluster", "pcs"]),
    "cheap Slurm in the account": (["slurm", "own_nodes", "cheap"], {}, ["parallelcluster", "pcs"]),
    "a Capacity Block": ([], {"capacity": "capacity-block"}, ["parallelcluster", "pcs", "eks"]),
    "a training plan": ([], {"capacity": "training-plan"}, ["hyperpod-slurm", "hyperpod-eks"]),
    "a reservation and pods": (["kubernetes"], {"capacity": "reservation"}, ["eks"]),
    "Spot": (["slurm"], {"capacity": "spot"}, ["parallelcluster", "pcs", "hyperpod-slurm"]),
    "GB200 on demand": ([], {"capacity": "on-demand", "kind": "p6e-gb200.36xlarge"}, []),
    # a warning costs places and rules nobody out; HyperPod has a price of its own
    "Trn2 on demand": (
        [],
        {"capacity": "on-demand", "kind": "trn2.48xlarge"},
        ["hyperpod-slurm", "hyperpod-eks", "parallelcluster", "pcs", "eks"],
    ),
    "GB200 by plan": (
        ["slurm"],
        {"capacity": "training-plan", "kind": "p6e-gb200.36xlarge"},
        ["hyperpod-slurm"],
    ),
    "Trn2 UltraServers": ([], {"kind": "trn2u.48xlarge"}, ["parallelcluster", "pcs", "eks"]),
    "both at once": (["slurm", "kubernetes"], {}, []),
}


@pytest.mark.parametrize("case", DECISIONS)
def test_who_suits(case: str) -> None:
    features, rest, expected = DECISIONS[case]
    found = possible(*features, **rest)

    assert found == expected


def test_two_wishes_that_a_page_keeps_apart_are_a_reason() -> None:
    def words(*features: str, capacity: str = "") -> dict[str, tuple[str, str]]:
        (rank,) = [
            one
            for one in ranking(Wanted(features=features, capacity=capacity))
            if one.orchestrator == "hyperpod-eks"
        ]
        return {
            one.title: (one.answer, one.words)
            for one in rank.reasons
            if one.words.startswith(("not in", "AWS"))
        }

    assert words("elastic", capacity="training-plan") == {
        "a training plan with nodes that come for pods": ("partly", "not in one group")
    }
    assert set(words("restricted-groups", "inference-endpoints")) == {
        "the inference operator with restricted groups"
    }
    assert words("elastic", capacity="spot") == {}
    assert words("restricted-groups") == {}


def test_what_lacks_more_comes_later_and_is_never_hidden() -> None:
    found = ranking(Wanted(features=("slurm", "recovery", "managed"), capacity="capacity-block"))

    assert {rank.orchestrator for rank in found} == set(KINDS)
    assert [(not rank.possible, rank.lacks) for rank in found] == sorted(
        (not rank.possible, rank.lacks) for rank in found
    )
    assert all(len(rank.reasons) == 4 for rank in found)
    assert all(reason.words and reason.source for rank in found for reason in rank.reasons)


def test_the_comparison_is_that_of_the_capacity_table() -> None:
    table = comparison()
    for capacity, sample in CAPACITIES.items():
        for kind in KINDS:
            known = instance_type("p5.48xlarge")
            assert known is not None
            legal = decide(sample, orchestrator=kind, placement="none", instance_type=known).legal
            assert (table[capacity][kind].answer == "yes") == legal, (capacity, kind)


def test_the_comparison_is_that_of_the_orchestrators() -> None:
    table = comparison()
    assert len(table) == len(questions()) + len(wishes()) + len(CAPACITIES)
    for kind in KINDS:
        assert (table["Slurm"][kind].answer == "yes") == (kind in SLURM)
        assert (table["Kubernetes"][kind].answer == "yes") == (kind in KUBERNETES)
        assert (table["instances in your account"][kind].answer == "yes") == (kind not in HYPERPOD)
        for title, row in table.items():
            assert row[kind].source, (title, kind)
            assert "cr-0123" not in row[kind].words


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_orchestrator_of_a_working_environment_is_possible(name: str) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    kind = environment.orchestrator.kind
    features = ("slurm",) if kind in SLURM else ("kubernetes",)
    for group in environment.groups("compute").values():
        found = possible(*features, capacity=group.capacity.kind, kind=group.instance_type)
        assert kind in found


def test_text_ranks_with_reasons_and_table() -> None:
    result = run("--slurm", "--managed")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "1. pcs: AWS Parallel Computing Service"
    assert any(line.split()[:2] == ["+", "Slurm"] for line in lines)
    assert any(line.split() == ["training-plan", "yes", "yes", "no", "no", "no"] for line in lines)
    assert lines[-1] == "Next: ultracluster init --orchestrator pcs"


def test_text_says_when_nobody_has_it_all() -> None:
    assert run("--slurm", "--kubernetes").stdout.splitlines()[-1].startswith("No orchestrator has all")


def test_json_has_ranking_and_comparison() -> None:
    result = run("--kubernetes", "--own-nodes", "--capacity", "capacity-block", "--json")
    document = json.loads(result.stdout)

    assert document["wanted"] == {
        "features": ["kubernetes", "own_nodes"], "capacity": "capacity-block", "instance_type": "",
    }  # fmt: skip
    assert [rank["place"] for rank in document["ranking"]] == [1, 2, 3, 4, 5]
    assert document["ranking"][0]["orchestrator"] == "eks"
    assert document["ranking"][0]["possible"] is True
    assert set(document["comparison"]["spot"]) == set(KINDS)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "--slurm"),
        (["--json"], "stdin is not a terminal"),
        (["--capacity", "block"], "capacity-block"),
        (["--instance-type", "p5.49xlarge"], "p5.48xlarge"),
    ],
)
def test_what_cannot_be_answered_is_told(options: list[str], told: str) -> None:
    result = run(*options)

    assert result.exit_code == 2
    assert told in result.stderr
    assert (result.stdout == "") is ("--json" not in options)
    assert len(result.stderr.splitlines()) == 1


def asked(monkeypatch: pytest.MonkeyPatch, *answers: str) -> dict[str, Any]:
    monkeypatch.setattr("ultracluster.cli.choose.can_ask", lambda: True)
    result = CliRunner().invoke(app, ["--json"], input="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_questions_are_asked_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    document = asked(
        monkeypatch,
        "n",
        "y",
        "y",
        "n",
        "n",
        "n",
        "n",
        "p5.49xlarge",
        "p5.48xlarge",
        "block",
        "training-plan",
        "nonsense",
        "none",
    )

    assert document["wanted"] == {
        "features": ["kubernetes", "recovery"], "capacity": "training-plan", "instance_type": "p5.48xlarge",
    }  # fmt: skip
    assert document["ranking"][0]["orchestrator"] == "hyperpod-eks"


def test_who_wants_slurm_is_not_asked_for_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    document = asked(monkeypatch, "y", "n", "y", "n", "n", "n", "", "", "")

    assert document["wanted"] == {"features": ["slurm", "managed"], "capacity": "", "instance_type": ""}
    assert document["ranking"][0]["orchestrator"] == "pcs"


@pytest.mark.parametrize(
    ("asked", "flags"),
    [
        ("h100", "--instance-type p5.48xlarge"),
        ("64xH100", "--accelerators 64xH100"),
        ("512 b200", "--accelerators 512xB200"),
        ("8xRTX PRO 4500", "--accelerators '8xRTX PRO 4500'"),
        ("p5en.48xlarge", "--instance-type p5en.48xlarge"),
    ],
)
def test_accelerators_are_types_and_what_is_known_goes_on_to_init(asked: str, flags: str) -> None:
    result = run("--slurm", "--instance-type", asked, "--capacity", "on-demand")

    assert result.exit_code == 0, result.stderr
    following = result.stdout.splitlines()[-1]
    assert following == f"Next: ultracluster init --orchestrator hyperpod-slurm {flags} --capacity on-demand"
    both = typer.Typer()
    both.command("init")(init)
    nodes = [] if "--accelerators" in flags else ["--nodes", "4"]
    words = [*shlex.split(following)[3:], "--region", "us-east-2", *nodes]
    done = CliRunner().invoke(both, words)
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("asked", ["h900", "0xH100", "-5xH100", "*", "p9.48xlarge", "999999999999xH100"])
def test_a_type_that_nobody_knows_is_a_row(asked: str) -> None:
    result = run("--instance-type", asked)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"--instance-type {asked}: ")
    assert "p5" in result.stderr and "Traceback" not in result.stderr


def test_a_wish_names_an_environment_that_has_it() -> None:
    ended = run("--wish", "io2-volumes")
    assert ended.exit_code == 0
    assert "io2-volumes: an environment with it is environments/wishes/io2-volumes.yaml" in ended.stdout
    assert "docs/wishes/io2-volumes.md says how" in ended.stdout


def test_ultraservers_are_types_that_say_how_many_nodes() -> None:
    found = run("--slurm", "--instance-type", "u-p6e-gb200x72")
    assert found.exit_code == 0 and "p6e-gb200.36xlarge in UltraServers" in found.stdout
    assert "--orchestrator hyperpod-slurm --instance-type u-p6e-gb200x72" in found.stdout
    sized = read_type("ml.u-p6e-gb200x36")
    assert (sized.instance_type, sized.nodes) == ("p6e-gb200.36xlarge", 9)


@pytest.mark.parametrize("name", [name for name, one in ultraservers().items() if one.published])
def test_every_published_ultraserver_is_known(name: str) -> None:
    server = ultraservers()[name]
    assert (read_type(name).instance_type, read_type(name).nodes) == (server.member, server.instances)


@pytest.mark.parametrize(
    "name",
    ["p6e-gb300", "u-p6e-gb300x72", "p6e-gb300.36xlarge", "GB300", "72xGB300", "trn3", "trn3.48xlarge",
     "trn3-gen1", "trn3-gen2.16xlarge", "Trainium3", "144xTrainium3", "ml.trn3.48xlarge"],
)  # fmt: skip
def test_announced_types_are_known_and_can_be_declared(name: str) -> None:
    found = run("--instance-type", name)
    assert found.exit_code == 2
    assert "is announced, and EC2's API does not have its name" in found.output
    assert "environments/announced/types.yaml" in found.output


@pytest.mark.parametrize("name", ["trn9", "p6e", "gb", "b", "300", "p6e-gb200", "trainium"])
def test_other_names_are_not_taken_for_announced_ones(name: str) -> None:
    assert "is announced" not in run("--instance-type", name).output


def test_what_is_announced_is_declared_in_the_file_that_is_named() -> None:
    declared = yaml.safe_load((ROOT / "environments" / "announced" / "types.yaml").read_text())
    for name in declared["instance_types"]:
        assert "is announced" in run("--instance-type", name).output


def test_types_for_a_model_are_compared() -> None:
    found = run("--model", "70B")
    assert found.exit_code == 0
    assert "70B parameters: 1,043 GiB of training state" in found.stdout
    assert "p6e-gb200.36xlarge" in found.stdout and "1. hyperpod" not in found.stdout
    both = run("--model", "70B", "--slurm", "--capacity", "training-plan").stdout
    assert "trn1n.32xlarge" not in both and "1. hyperpod-slurm" in both
    document = json.loads(run("--model", "8B", "--json").stdout)
    row = next(one for one in document["types"]["rows"] if one["instance_type"] == "p5.48xlarge")
    assert row["nodes"] == 1 and all(price["source"] and price["date"] for price in row["prices"])
    assert "types" not in json.loads(run("--slurm", "--json").stdout)


@pytest.mark.parametrize("size", ["70x", "0B", "9999T", ""])
def test_a_wrong_size_is_refused(size: str) -> None:
    found = run("--model", size)
    assert found.exit_code == 2 and "is not a model size" in found.output
