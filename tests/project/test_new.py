"""`ultracluster new`: what it takes, what it refuses, and what it pins."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, cast

import pytest
import typer
import yaml
from project import ROOT
from typer.testing import CliRunner

from ultracluster.catalog import instance_type
from ultracluster.cli.main import app as command
from ultracluster.cli.new import new
from ultracluster.config import load
from ultracluster.plan.draft import ORCHESTRATORS
from ultracluster.project.scaffold import COMMIT, Source, installed_from, texts
from ultracluster.rules import enforce

pytestmark = pytest.mark.slow

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("new")(new)


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
@pytest.mark.parametrize(
    "flags",
    [(), ("--accelerators", "64xB200", "--region", "us-east-1"), ("--instance-type", "trn2.48xlarge")],
)
def test_both_environments_break_no_rule(orchestrator: str, flags: tuple[str, ...]) -> None:
    found = run("acme", "--orchestrator", orchestrator, *flags)

    if found.exit_code:  # where AWS does not sell it, the nearest that it sells is named, and can be taken
        assert "nearest that works:" in found.stderr and not Path("acme").exists()
        (nearest, *_) = [line for line in found.stderr.splitlines() if line.startswith("  ultracluster new")]
        found = run(*nearest.split()[2:])
    assert found.exit_code == 0, found.stderr
    dev, prod = (load(Path("acme/environments") / f"{name}.yaml").environment for name in ("dev", "prod"))
    for name in ("dev", "prod"):
        enforce(load(Path("acme/environments") / f"{name}.yaml"))
    assert prod.protect and not dev.protect
    small, large = (instance_type(one.node_groups["train"].instance_type) for one in (dev, prod))
    assert small is not None and large is not None and small.accelerator and large.accelerator
    assert small.vcpu <= large.vcpu and small.efa_interfaces
    assert small.accelerator.manufacturer == large.accelerator.manufacturer
    assert dev.node_groups["train"].count == 2
    assert (dev.region, dev.orchestrator.kind) == (prod.region, prod.orchestrator.kind)


@pytest.mark.parametrize("there", ["a file", "a folder", "a hidden file", "a dangling link"])
def test_what_is_there_is_not_touched(there: str) -> None:
    place = Path("acme")
    match there:
        case "a file":
            place.write_text("mine")
        case "a dangling link":
            place.symlink_to("nowhere")
        case _:
            place.mkdir()
            (place / (".env" if there == "a hidden file" else "notes")).write_text("mine")
    before = sorted(one.name for one in Path().rglob("*"))

    found = run("acme")

    assert found.exit_code == 2 and "name a folder that does not exist, or is empty" in found.stderr
    assert sorted(one.name for one in Path().rglob("*")) == before


def test_an_empty_folder_and_an_empty_repository_will_do() -> None:
    Path("acme/.git").mkdir(parents=True)

    assert run("acme").exit_code == 0
    assert run("acme").exit_code == 2  # not twice
    Path("deep/down").mkdir(parents=True)
    assert run("deep/down/here").exit_code == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--region", "us-west-9"], "Did you mean"),
        (["--instance-type", "p9.48xlarge"], "Did you mean"),
        (["--orchestrator", "slurm"], "write one of hyperpod-slurm"),
        (["--nodes", "0"], "--nodes 0"),
        (["--accelerators", "8xH100", "--nodes", "2"], "either --accelerators"),
    ],
)
def test_wrong_wishes_write_nothing(flags: list[str], words: str) -> None:
    found = run("acme", *flags)

    assert found.exit_code == 2 and words in found.stderr
    assert "Traceback" not in found.stderr and not Path("acme").exists()


class Installed:
    """What pip records of an installation."""

    version = "0.4.2"

    def __init__(self, direct_url: dict[str, Any] | None) -> None:
        self._text = json.dumps(direct_url) if direct_url else None

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._text


def from_(direct_url: dict[str, Any] | None) -> Source:
    return installed_from(cast("Distribution", Installed(direct_url)))


def test_requirements_say_where_it_was_installed_from(tmp_path: Path) -> None:
    """An index is never asked for our name, which it may have from somebody else."""
    wheel = tmp_path / "a b" / "ultracluster-0.4.2-py3-none-any.whl"
    expected = "./wheels/ultracluster-0.4.2-py3-none-any.whl\n# Until that line ends with the hash"
    assert from_(None).requirement.startswith(expected)
    git = {
        "url": "https://git.example.com/ultracluster",
        "vcs_info": {"vcs": "git", "commit_id": "0123abc", "requested_revision": "v0.4.2"},
    }
    assert from_(git).commit == "ultracluster @ git+https://git.example.com/ultracluster@0123abc"
    assert from_(git).requirement.startswith("#")
    assert from_({"url": wheel.as_uri(), "archive_info": {}}).requirement.startswith(expected), "it is gone"
    wheel.parent.mkdir()
    wheel.write_bytes(b"wheel")
    there = from_({"url": wheel.as_uri(), "archive_info": {}})
    digest = sha256(b"wheel").hexdigest()
    assert there == Source(f"./wheels/{wheel.name} --hash=sha256:{digest}", wheel)
    checkout = from_({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    assert checkout.wheel is None and checkout.requirement.startswith(expected)
    archive = {"hashes": {"sha256": "ab" * 32}}
    index = from_({"url": f"https://example.com/{wheel.name}", "archive_info": archive})
    assert index.requirement == f"ultracluster @ https://example.com/{wheel.name} --hash=sha256:{'ab' * 32}"
    without = from_({"url": f"https://example.com/{wheel.name}", "archive_info": {}})
    assert "pip refuses" in without.requirement


def test_a_commit_is_installed_without_asking_an_index_for_our_name() -> None:
    found = texts(
        "acme", "us-west-2", {}, Source("# a commit", commit="ultracluster @ git+https://g/u@0123abc")
    )
    assert found[COMMIT] == "ultracluster @ git+https://g/u@0123abc\n"
    for name in (".github/workflows/environments.yml", ".gitlab-ci.yml"):
        installs = [line for line in found[name].splitlines() if "pip install" in line]
        assert all("--require-hashes" in line for line in installs)
        with_us = [line for line in installs if "-r requirements.txt" in line]
        assert with_us and all(line.endswith(f"pip install --no-deps -r {COMMIT}") for line in with_us)


def test_everything_but_us_is_pinned_by_hash_and_tests_stay_out_of_deploys() -> None:
    """The versions are those that this repository is tested with."""
    found = texts("acme", "us-west-2", {}, Source("./wheels/ultracluster.whl --hash=sha256:00"))
    ours = (ROOT / "requirements-dev.lock").read_text()
    for name in ("requirements.txt", "requirements-test.txt"):
        pins = re.findall(r"^([a-z0-9][\w.-]*==[^\s;]+)(.*)$", found[name], re.MULTILINE)
        assert pins and all(f"{pin}" in ours for pin, _ in pins)
        assert found[name].count("--hash=sha256:") > len(pins)
    assert "pytest==" in found["requirements-test.txt"] and "pytest==" not in found["requirements.txt"]
    github = yaml.safe_load(found[".github/workflows/environments.yml"])
    for job, steps in ((name, one["steps"]) for name, one in github["jobs"].items()):
        installs = "".join(step.get("run", "") for step in steps if "pip install" in step.get("run", ""))
        assert ("requirements-test.txt" in installs) == (job == "check"), job


def test_init_writes_one_more_environment_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run("acme")
    flags = ["--accelerators", "16xH100", "--orchestrator", "pcs", "--region", "us-east-1", "--name", "big"]
    monkeypatch.chdir("acme/environments")
    shown = CliRunner().invoke(command, ["init", *flags])
    assert "# Save it as environments/big.yaml; then" in shown.stdout
    monkeypatch.chdir("..")
    written = CliRunner().invoke(command, ["init", *flags, "-o", "environments/big.yaml"])
    assert written.exit_code == 0, written.stderr
    lines = Path("environments/big.yaml").read_text().splitlines()
    assert lines[0] == "# yaml-language-server: $schema=../environment.schema.json"
    assert "# What it will be and need: ultracluster plan big" in lines
    monkeypatch.chdir("environments")
    for place in ("big", "big.yaml"):
        assert CliRunner().invoke(command, ["plan", place]).exit_code == 0, place
