"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from command_line import ultracluster
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.plan import plan

README = ROOT / "README.md"
DOCS = ROOT / "docs"


def block(language: str, starts: str, page: Path = README) -> str:
    """The code block of a language that begins with `starts`."""
    blocks = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return next(one for one in blocks if one.startswith(starts))


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plan of prod, by lines."""
    app = typer.Typer()
    app.command("plan")(plan)
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, ["prod", "--today", "2026-11-21"])  # prices expire, the page does not
    assert result.exit_code == 0
    return result.stdout.splitlines()


def test_the_plan_is_the_one_that_is_printed(printed: list[str]) -> None:
    assert printed == block("text", "prod:", DOCS / "plan.md").splitlines()


def test_the_short_plan_leaves_lines_out_and_changes_none(printed: list[str]) -> None:
    rest = list(printed)
    for part in block("text", "prod:").split("...\n"):
        lines = part.splitlines()
        starts = [at for at in range(len(rest)) if rest[at : at + len(lines)] == lines]
        assert starts, f"not there, or not in this order:\n{part}"
        rest = rest[starts[0] + len(lines) :]


def test_its_cost_is_the_plans(printed: list[str]) -> None:
    """The number of the plan, called what it is."""
    cost = next(line for line in printed if line.startswith("cost"))
    found = re.search(r"about ([\d,]+ USD/month)", cost)
    sentence = re.search(
        r"\*\*What it costs\*\*: about ([\d,]+ USD/month) for `prod`(.*?)\.", README.read_text()
    )

    assert found
    assert sentence
    assert sentence[1] == found[1]
    assert "estimate" in sentence[2]


def test_every_link_leads_somewhere() -> None:
    text = re.sub(r"```.*?```", "", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        page = ROOT / path if path else README
        assert page.exists(), target
        heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        slugs = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}
        assert not anchor or anchor in slugs, target


def test_the_main_job_and_the_tests_come_first() -> None:
    text = README.read_text(encoding="utf-8")
    commands = [line.partition("#")[0].strip() for line in block("sh", "").splitlines()]

    assert commands == ["make synth ENV=dev", "make test"]
    assert f"In the folder you cloned:\n\n```sh\n{commands[0]}" in text
    for command in commands:
        assert re.search(rf"^\| `{command}` \| about \d+.*\| \d\.\d GB", text, re.MULTILINE), command


def test_every_target_of_make_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"\bmake ([a-z-]+)(?= [A-Z]+=|`|\n| +#)", README.read_text(encoding="utf-8"))

    assert {"plan", "synth", "deploy", "test", "wheel"} <= set(named)
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_it_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 170


def test_the_example_is_the_file() -> None:
    code = (ROOT / "examples" / "own_app" / "app.py").read_text()

    assert block("python", "from aws_cdk", DOCS / "constructs.md") in code


@pytest.mark.slow
def test_the_overlay_and_the_error_are_real(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text((ROOT / "environments" / "dev.yaml").read_text())
    overlay = tmp_path / "environments" / "big.yaml"
    shown_file = block("yaml", "# yaml-language-server")
    overlay.write_text(shown_file)
    assert block("yaml", "# yaml-language-server", DOCS / "environment-files.md") == shown_file

    good = ultracluster("validate", "environments/big.yaml", cwd=tmp_path)
    overlay.write_text(overlay.read_text() + "storage:\n  lustre:\n    capacity_gib: 5000\n")
    bad = ultracluster("validate", "environments/big.yaml", cwd=tmp_path)

    assert good.returncode == 0, good.stderr
    assert bad.returncode == 2
    assert block("text", "environments/big.yaml", DOCS / "environment-files.md") == block(
        "text", "environments/big.yaml"
    )
    shown = block("text", "environments/big.yaml").splitlines()
    assert shown == bad.stderr.splitlines()[: len(shown)]
