"""No command lets text from outside act on a terminal, on Markdown or on a workflow.

What attacks is in tests/support/hostile_account.py: answers of AWS in which every text is hostile.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from account_fixtures import keys
from hostile_account import ATTACKS, NODE, hostile_account
from project import ROOT
from pseudo_terminal import on_terminal
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.cli.main import app
from ultracluster.cli.output import Drawn, SeenStream, seen
from ultracluster.cli.report import cell, markdown_row
from ultracluster.plan.picture_canvas import Canvas

__all__ = ["keys"]

RICH = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AKG]|\r")
"""What rich draws with: colours, the cursor, lines that are drawn again."""
TURNED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command on a pseudo-terminal and return its text."""

    def run(*words: str) -> str:
        shown = on_terminal(monkeypatch, *words)
        assert shown.code in (0, 1, 2, 3), words
        return shown.text

    return run


def harmless(shown: str) -> None:
    """Nothing but what rich draws with is obeyed by a terminal."""
    left = RICH.sub("", shown)
    assert not TURNED.search(left), repr(left[max(0, TURNED.search(left).start() - 80) :][:200])  # pyright: ignore[reportOptionalMemberAccess]
    assert "\x1b[8m" not in shown
    assert "\x1b[1;1H" not in shown
    assert not re.search(r"^FORGED", left, re.MULTILINE)


ASKING = {
    "doctor": ["doctor", "{env}"],
    "status": ["status", "{env}", "--no-jobs", "--no-drift"],
    "nodes list": ["nodes", "list", "{env}"],
    "one node": ["nodes", "list", "{env}", NODE],
    "nodes reboot": ["nodes", "reboot", "{env}", NODE, "--yes", "--dry-run"],
    "preflight": ["preflight", "{env}", "--no-sources"],
    "job why": ["job", "why", "{env}", "--nodes", NODE],
    "preflight in Markdown": ["preflight", "{env}", "--no-sources", "--markdown"],
    "connect": ["connect", "{env}"],
    "cost": ["cost", "{env}", "--live"],
    "capacity": ["capacity", "search", "{env}"],
    "software": ["software", "update", "{env}", "--dry-run"],
}
SHIPPED = ["dev", "eks-p5en", "pcs-p6-b200", "parallelcluster-p5", "hyperpod-eks-p5"]


def _region(name: str) -> str:
    text = (ROOT / "environments" / f"{name}.yaml").read_text()
    return re.findall(r"^region: (\S+)", text, re.MULTILINE)[0]


REGION = {name: _region(name) for name in SHIPPED}


@pytest.mark.parametrize("command", ASKING)
def test_answers_of_aws_on_a_terminal(
    command: str, terminal: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(5):
        environment = SHIPPED[seed % 5]
        made = hostile_account(seed, REGION[environment])
        monkeypatch.setattr(aws, "Account", lambda *_, made=made, **__: made)
        monkeypatch.setattr("time.sleep", lambda _: None)
        words = [word.format(env=ROOT / "environments" / f"{environment}.yaml") for word in ASKING[command]]

        shown = terminal(*words)

        assert shown
        assert "Traceback" not in shown
        harmless(shown)


@pytest.mark.parametrize("command", ["doctor", "status", "nodes list", "one node", "preflight", "connect"])
def test_answers_of_aws_as_json(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they hold: a document, in ASCII."""
    for seed in range(100, 105):
        made = hostile_account(seed, REGION[SHIPPED[seed % 5]])
        monkeypatch.setattr(aws, "Account", lambda *_, made=made, **__: made)
        environment = ROOT / "environments" / f"{SHIPPED[seed % 5]}.yaml"
        words = [word.format(env=environment) for word in ASKING[command]]

        ended = CliRunner().invoke(app, [*words, "--json"])

        assert isinstance(ended.exception, SystemExit | None), (seed, ended.exception)
        assert ended.exit_code in (0, 1, 2, 3)
        assert json.loads(ended.stdout)["schema"].startswith("ultracluster.")
        assert ended.stdout.isascii()
        assert "##[" not in ended.stdout


def test_what_a_file_says_on_a_terminal(terminal: Callable[..., str], tmp_path: Path) -> None:
    """An escape that YAML writes as `\\e` is a character in the value, and none in the file."""
    good = (ROOT / "environments" / "dev.yaml").read_text()
    for attack in ATTACKS:
        text = json.dumps(attack.encode("utf-8", "replace").decode())
        for line in (f"name: {text}", f"{text}: 1", f"tags: {{{text}: {text}}}", f"region: {text}"):
            rest = [one for one in good.splitlines() if not one.startswith(line.partition(":")[0] + ":")]
            (tmp_path / "dev.yaml").write_text("\n".join([*rest, line, ""]))
            for words in (["validate"], ["plan"]):
                shown = terminal(*words, str(tmp_path / "dev.yaml"))
                assert "Traceback" not in shown
                harmless(shown)


def test_a_file_in_a_workflow_gives_no_orders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (tmp_path / "dev.yaml").write_text(
        'name: "x\\n::stop-commands::t\\n##[add-mask]a"\nregion: "##[error]x"\n"::error::x": 1\n'
    )
    for form in ("text", "github", "json", "sarif"):
        ended = CliRunner().invoke(app, ["validate", "--format", form, str(tmp_path / "dev.yaml")])

        lines = ended.output.splitlines()
        orders = [one for one in lines if one.lstrip().startswith("::")]
        assert all(one.startswith(("::error file=", "::warning file=")) for one in orders), orders
        assert all("##[" not in one for one in lines if not one.startswith("::"))
        assert bool(orders) == (form == "github")


def test_markdown_of_an_acknowledgement() -> None:
    text = "<img src=x onerror=alert(1)>![x](https://evil.example/x)[y](z) @everyone a|b\n<!-- \x1b[2J \u202e"

    shown = cell(text)

    assert "<" not in shown.replace("<br>", "")
    assert "](" not in shown
    assert "@everyone" not in shown
    assert not TURNED.search(shown)
    assert "|" not in shown.replace("\\|", "")
    assert markdown_row([text]).count("\n") == 0


def test_every_console_is_ours() -> None:
    """One of rich's own would print what it is given."""
    for file in (ROOT / "constructs" / "ultracluster").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if file.name != "console.py":
            made = re.sub(r"if TYPE_CHECKING:\n(?:    .*\n|\n)+", "", text)
            assert "rich.console" not in made, file


def test_a_picture_holds_no_control_character() -> None:
    page = Canvas(200)
    for attack in ATTACKS:
        page.text(0, 10, attack)

    drawn = page.svg(100, "\x1b[2J <b>")

    assert not TURNED.search(drawn)
    assert len(ElementTree.fromstring(drawn).findall(".//{*}text")) == len(ATTACKS)  # noqa: S314 - made here


def test_what_rules_write_stays_as_it_is() -> None:
    for text in (
        "`capacity_gib: 4800` or 7200",
        "node_groups.gpu.mounts[0]",
        "10.0.1.6@tcp",
        "**open**",
        "a (b) [c]",
    ):
        assert cell(text) == text


def test_a_stream_of_ours_writes_what_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    stream = SeenStream(sys.stdout)
    stream.write(Drawn("\x1b[1mbold\x1b[0m\n"))
    stream.write("\x1b[1mbold\x1b[0m\n")
    stream.writelines(["a\x07\n"])

    assert capsys.readouterr().out == "\x1b[1mbold\x1b[0m\n\\x1b[1mbold\\x1b[0m\na\\x07\n"
    assert stream.encoding


def test_orders_to_a_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert seen("::error::x") == "::error::x"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert seen("  ::error::x\na::b ##[error]") == "  : :error::x\na::b # #[error]"


def test_logs_of_a_node_before_they_are_judged(terminal: Callable[..., str], tmp_path: Path) -> None:
    for number, attack in enumerate(ATTACKS):
        (tmp_path / f"{number}.log").write_text(
            f"# nccl-tests version 2.17.6 {attack}\n{attack}: NCCL INFO {attack}\n",
            "utf-8",
            "backslashreplace",
        )
        shown = terminal("acceptance", str(tmp_path / f"{number}.log"))
        assert "Traceback" not in shown
        harmless(shown)


def test_names_of_a_template(terminal: Callable[..., str], tmp_path: Path) -> None:
    for attack in ATTACKS:
        name = attack.encode("utf-8", "replace").decode()
        for side, size in (("old", 1), ("new", 2)):
            resource = {"Type": f"AWS::S3::Bucket{name}", "Properties": {name: size, "Tags": [name]}}
            template = {"Resources": {f"Bucket{name}": resource}}
            (tmp_path / f"{side}.template.json").write_text(json.dumps(template))
        words = [
            "diff",
            "--templates",
            str(tmp_path / "old.template.json"),
            str(tmp_path / "new.template.json"),
        ]
        for more in ([], ["--markdown"]):
            shown = terminal(*words, *more)
            assert "Traceback" not in shown
            harmless(shown)
