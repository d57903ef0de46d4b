"""docs/command-line.md names the environment variables that the command reads, and shows what it says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli.main import app

PAGE = ROOT / "docs" / "command-line.md"
PACKAGE = ROOT / "constructs" / "ultracluster"
ELSEWHERE = ("storage/database_user/", "account/wait/node_probe.py", "app.py")
"""What runs in a function of AWS, on a node, or is the app: who starts them sets their variables."""


def documented() -> set[str]:
    rows = re.findall(r"^\| (`[A-Z].*?`) \|", PAGE.read_text().partition("## Variables")[2], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def read_by(file: Path) -> Iterator[str]:
    """Names that a module takes out of os.environ, by constants of the package where they are."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case (
                ast.Call(func=ast.Attribute(value=where, attr="get" | "setdefault"), args=[key, *_])
                | ast.Subscript(value=where, slice=key)
                | ast.Compare(left=key, comparators=[where])
            ) if ast.unparse(where) == "os.environ":
                yield ast.unparse(key)
            case ast.Call(func=ast.Attribute(attr="getenv"), args=[key, *_]):
                yield ast.unparse(key)
            case _:
                pass


NAMED = {
    "EXTENDS_FROM": {"ULTRACLUSTER_EXTENDS_FROM"},
    "PART": {"ULTRACLUSTER_PART"},
    "name": {"ULTRACLUSTER_PAGER", "PAGER"},
}
"""What stands where a variable is read that is not written out there."""


def test_every_variable_is_on_the_page() -> None:
    found = {"LESS", "LV", "PATH"}  # of `paging.SETTINGS`; and what `with_node` is handed
    for file in PACKAGE.rglob("*.py"):
        if not str(file.relative_to(PACKAGE)).startswith(ELSEWHERE):
            for key in read_by(file):
                found |= {key[1:-1]} if key[:1] in "\"'" else NAMED[key]

    assert found == documented()


def test_variables_of_ours_are_on_the_page() -> None:
    """Also where they are handed on under a name."""
    names: set[str] = set()
    for room in ("cli", "config", "project", "account", "change", "plan", "software"):
        for file in (PACKAGE / room).rglob("*.py"):
            names |= set(re.findall(r'"(ULTRACLUSTER_[A-Z_]+)"', file.read_text(encoding="utf-8")))

    assert {name for name in names if name.startswith("ULTRACLUSTER_")} - {
        "ULTRACLUSTER_ROOT"
    } <= documented()


def test_what_the_page_shows_is_what_is_said() -> None:
    blocks = re.findall(r"```(?:console|text)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    runs = [
        part for block in blocks for part in re.findall(r"\$ ultracluster (.*)\n((?:(?!\$ ).*\n)*)", block)
    ]
    assert len(runs) > 3
    for line, said in runs:
        shown = [one for one in said.splitlines() if not one.startswith("next: ")]  # on a terminal
        assert CliRunner().invoke(app, line.split()).output.splitlines()[: len(shown)] == shown, line


def test_help_and_refusals_load_no_command() -> None:
    """`--help` answers at once, however many commands there are."""
    for words in ("--help", "vaildate"):
        code = (
            f"import sys; sys.argv = ['ultracluster', {words!r}]\n"
            "from ultracluster.cli import main\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "print([name for name in sys.modules if name in ('boto3', 'rich.progress', 'rich.live')\n"
            "       or name.startswith(('ultracluster.rules', 'ultracluster.model', 'ultracluster.plan'))])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"
