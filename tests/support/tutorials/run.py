"""Runs a tutorial: in a folder with what a clone has, and nothing of this machine but its programs."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from page_commands import commands, environments_of, fault
from project import ROOT
from tutorials.page import Block, Page, PageError, Step, differs
from typer.testing import CliRunner
from wheel import node_of_tests

CLONE = ("environments", "examples", "app.py", "cdk.json", "package.json")
CHANGED = (
    "constructs", "stacks", "lifecycle_scripts", "tests/support", "tests/lifecycle_scripts/fakes",
    "Makefile", "pyproject.toml", "*.lock", "package-lock.json",
)  # fmt: skip
"""What else is copied for a page that changes the package itself."""
STAMPS = (".venv/.created", ".venv/.plan", ".venv/.run", ".venv/.dev", ".venv/.node", "node_modules/.stamp")
QUESTION = re.compile(r"\[[yY]/[nN]\]: (?P<answer>\S+)$")
STATUS = "echo $?"
SECONDS = 600
KERNEL = "JSII_RUNTIME_PACKAGE_CACHE_ROOT"
"""Where the CDK's kernel unpacks its library: with a home of its own each page would do it again."""
Answers = Callable[[Path, pytest.MonkeyPatch], AbstractContextManager[None]]


def run(page: Page, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all blocks of a page, in order.

    Raises:
        PageError: output or status differ from what the page shows, or a command is not there.
    """
    clone = home / "ultracluster"
    _copied((*CLONE, *(CHANGED if page.changes_the_package else ())), clone)
    shell = Shell(home, clone, _installed(clone) if page.changes_the_package else None)
    named = environments_of(page.text)
    for block in page.blocks:
        if block.file:
            path, content = block.file
            file = shell.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        elif block.answers and block.needs != "twin":
            with monkeypatch.context() as patch:
                _answered(page, block, shell, patch)
        elif block.needs:
            _typed(page, block, named)
        else:
            with monkeypatch.context() as patch:
                _run(page, block, shell, patch)


def _copied(names: Sequence[str], clone: Path) -> None:
    """Tracked files below these names, and links as links."""
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *names]
    listed = subprocess.run(git, capture_output=True, text=True, cwd=ROOT, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)


def _installed(clone: Path) -> Path:
    """As `make setup` leaves a clone: an environment that has the clone's own package; its programs."""
    folder = clone / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (library,) = folder.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if (
            not entry.name.startswith(("_editable_impl_ultracluster", "__pycache__"))
            and entry.suffix != ".pth"
        ):
            (library / entry.name).symlink_to(entry)
    (library / "ultracluster.pth").write_text(f"{clone / 'constructs'}\n")
    command = folder / "bin" / "ultracluster"
    command.write_text(f"#!{folder / 'bin' / 'python'}\nfrom ultracluster.cli import main\n\nmain()\n")
    command.chmod(0o755)
    for name in STAMPS:
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).touch()
    return folder / "bin"


class Shell:
    """One shell for a page: what a command exports, and where it goes, holds for the next one.

    Args:
        programs: of the clone's own environment; by default those of the tests.
    """

    def __init__(self, home: Path, folder: Path, programs: Path | None = None) -> None:
        self.home, self.folder, self.status = home, folder, 0
        self._exports = home / ".exports"
        self._own = programs is not None
        first = [str(programs or Path(sys.executable).parent), str(ROOT / "node_modules" / ".bin")]
        path = os.pathsep.join([*first, "/usr/local/bin", "/usr/bin", "/bin"])
        self._environment = {"HOME": str(home), "PATH": path, KERNEL: os.environ[KERNEL], **node_of_tests()}
        if "PYTHONPATH" in os.environ and not programs:  # tests of a second working tree run that tree's code
            self._environment["PYTHONPATH"] = os.environ["PYTHONPATH"]

    def runs_here(self, command: str) -> bool:
        """Whether this process can run it: it is our command alone, and nothing was exported before."""
        return _simple(command) and not self._own and not self._exported()

    def _exported(self) -> set[str]:
        text = self._exports.read_text(encoding="utf-8") if self._exports.exists() else ""
        known = {*self._environment, "OLDPWD", "PWD", "SHLVL", "_"}
        return set(re.findall(r"^declare -x (\w+)", text, re.MULTILINE)) - known

    def here(self, command: str, patch: pytest.MonkeyPatch) -> str:
        """What our command prints, run in this process as the shell would: to start it takes a second."""
        for name in list(os.environ):
            patch.delenv(name)
        for name, value in self._environment.items():
            patch.setenv(name, value)
        patch.chdir(self.folder)
        printed, self.status = _invoked(command.replace("\\\n", " ").split()[1:])
        return printed

    def run(self, command: str) -> str:
        """What it prints to a terminal: both streams."""
        kept = shlex.quote(str(self._exports))
        script = (
            f"[ ! -e {kept} ] || . {kept}\n(exit {self.status})\n{command}\n"
            f"status=$?; export -p >{kept}; pwd >>{kept}.folder; exit $status"
        )
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        self.status = done.returncode
        there = Path(f"{self._exports}.folder")
        self.folder = Path(there.read_text().splitlines()[-1]) if there.exists() else self.folder
        return done.stdout


def _simple(command: str) -> bool:
    """Whether a shell only splits it into words: nothing is quoted, expanded, redirected or connected."""
    words = command.replace("\\\n", " ")
    return words.split()[:1] == ["ultracluster"] and not re.search(r"[\n|&;<>()$`\\\"'*?\[\]#~=%{}!]", words)


def _run(page: Page, block: Block, shell: Shell, patch: pytest.MonkeyPatch) -> None:
    for number, step in enumerate(block.steps):
        if shell.runs_here(step.command):
            printed = shell.here(step.command, patch)
        else:
            command = step.command if step.output is not None else f"set -e\n{step.command}\nset +e"
            printed = shell.run(command)
        _compare(page, block, number, printed, shell.status)


def _compare(page: Page, block: Block, number: int, printed: str, status: int) -> None:
    step, after = block.steps[number], block.steps[number + 1 : number + 2]
    if status and not (after and after[0].command == STATUS):
        raise PageError(f"{_at(page, step)} ended with {status}:\n{step.command}\n{printed}")
    if step.output is not None and (said := differs(step.output, printed)):
        raise PageError(f"{_at(page, step)} {step.command}\n{said}")


def _answered(page: Page, block: Block, shell: Shell, patch: pytest.MonkeyPatch) -> None:
    """In this process, where an account stands in for the real one."""
    module = importlib.import_module(f"tutorials.answers.{page.path.stem.replace('-', '_')}")
    answers: Answers = getattr(module, block.answers)
    patch.chdir(shell.folder)
    for name in [name for name in os.environ if name.startswith(("AWS_", "ULTRACLUSTER_"))]:
        patch.delenv(name)
    status = 0
    with answers(shell.folder, patch):
        for number, step in enumerate(block.steps):
            if step.command == STATUS:
                printed = f"{status}\n"
            else:
                words = shlex.split(step.command.replace("\\\n", " "), comments=True)
                if words[0] != "ultracluster":
                    raise PageError(f"{_at(page, step)} only `ultracluster` is answered by {block.answers}")
                typed = [found for line in step.output or () if (found := QUESTION.search(line))]
                given = "".join(f"{one['answer']}\n" for one in typed)
                printed, status = _invoked(words[1:], given)
            _compare(page, block, number, printed, status if step.command != STATUS else 0)


def _invoked(words: Sequence[str], given: str = "") -> tuple[str, int]:
    """What the command prints in this process, and how it ends."""
    from ultracluster.cli.main import app

    ended = CliRunner().invoke(app, list(words), input=given)
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended.output, ended.exit_code


def _typed(page: Page, block: Block, named: set[str]) -> None:
    """What nothing here can run: its commands are at least there."""
    for step in block.steps:
        for one in commands(f"```sh\n{step.command}\n```\n"):
            if said := fault(one, named):
                raise PageError(f"{_at(page, step)} {said}")


def _at(page: Page, step: Step) -> str:
    return f"{page.path.name}:{step.line}:"
