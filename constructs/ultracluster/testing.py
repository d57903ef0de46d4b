"""A pytest plugin for the environments of a project: `addopts = -p ultracluster.testing`.

A test that takes the fixture `environment_file` runs once for each file in environments/.
`--update-snapshots` writes the templates that there are now into snapshots/.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ultracluster.config import InvalidEnvironmentError, load, render
from ultracluster.project.place import ProjectError, find_root
from ultracluster.project.synth import synth_each
from ultracluster.rules import enforce

SNAPSHOTS = "snapshots"
_UPDATE = "--update-snapshots"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFile:
    """A file in environments/ and what can be asked of it."""

    file: Path
    root: Path
    update: bool = False
    """Write snapshots, do not compare with them."""

    @property
    def name(self) -> str:
        return self.file.stem

    def check_rules(self) -> None:
        """Fails where a rule is broken; pytest lists warnings that nobody acknowledged as its own."""
        try:
            found = enforce(load(self.file))
        except InvalidEnvironmentError as error:
            pytest.fail(str(error), pytrace=False)
        if open_ones := [one for one in found if not one.acknowledged]:
            warnings.warn(f"\n{render(open_ones)}", stacklevel=2)

    def check_templates(self) -> None:
        """Fails where the templates are not those in snapshots/, and says what the difference does."""
        reviewed = self.root / SNAPSHOTS / self.name
        if not self.update and not reviewed.is_dir():
            pytest.fail(
                f"there are no reviewed templates of {self.name}: `pytest {_UPDATE}` writes them to "
                f"{reviewed.relative_to(self.root)}/; review and commit them",
                pytrace=False,
            )
        with TemporaryDirectory() as scratch:
            try:
                (made,) = synth_each(self.root, [(self.name, self.file)], Path(scratch))
            except ProjectError as error:
                pytest.fail(str(error), pytrace=False)
            now = dict(_texts(made))
            if self.update:
                _write(reviewed, now)
            elif now != (before := dict(_texts(reviewed))):
                pytest.fail(self._difference(reviewed, made, before, now), pytrace=False)

    def _difference(self, reviewed: Path, made: Path, before: dict[str, str], now: dict[str, str]) -> str:
        command = [sys.executable, "-m", "ultracluster", "diff", "--templates", str(reviewed), str(made)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        files = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        return (
            f"{self.name} is not as reviewed: {', '.join(files)}\n{said.stdout}{said.stderr}\n"
            f"If that is meant: pytest {_UPDATE}, then review and commit {SNAPSHOTS}/{self.name}/"
        )


def environment_files(root: Path, *, update: bool = False) -> list[EnvironmentFile]:
    """One for each file in the environments/ of a project."""
    files = sorted((root / "environments").glob("*.yaml"))
    return [EnvironmentFile(file=file, root=root, update=update) for file in files]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("ultracluster").addoption(
        _UPDATE, action="store_true", help="write the templates of each environment to snapshots/"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "environment_file" not in metafunc.fixturenames:
        return
    start = metafunc.config.rootpath
    root = find_root(start)
    files = environment_files(root, update=bool(metafunc.config.getoption(_UPDATE))) if root else []
    if not files:
        raise pytest.UsageError(f"{root or start} has no app.py with cdk.json, or nothing in environments/")
    metafunc.parametrize("environment_file", files, ids=[one.name for one in files])


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for file in folder.glob("*.template.json"):
        yield file.name, file.read_text(encoding="utf-8").rstrip("\n")


def _write(folder: Path, now: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in dict(_texts(folder)).keys() - now.keys():
        (folder / name).unlink()
    for name, text in now.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
