"""Which command ended with which code in which test: docs/exit-codes.md is held to runs.

`tests/cli/exit_runs.yaml` names, for each code of each command on the page, one test that ends so. When that
test runs and the command does not end so, the test fails. `EXIT_RUNS=FILE pytest ...` writes what was seen.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

TABLE = Path(__file__).parents[1] / "cli" / "exit_runs.yaml"


@cache
def table() -> dict[str, list[tuple[str, int]]]:
    """Command and code, by the test that must see them."""
    proven: Mapping[str, Mapping[int, str]] = yaml.safe_load(TABLE.read_text())["proven"]
    tests: dict[str, list[tuple[str, int]]] = {}
    for command, codes in proven.items():
        for code, test in codes.items():
            tests.setdefault(test, []).append((command, code))
    return tests


class ExitRuns:
    """Watches every command that a test runs in this process."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self.file = os.environ.get("EXIT_RUNS")
        invoke = CliRunner.invoke

        def watched(runner: CliRunner, app: Any, args: Any = None, *rest: Any, **more: Any) -> Any:
            result = invoke(runner, app, args, *rest, **more)
            self.seen.add((_command(app, args), result.exit_code))
            return result

        setattr(CliRunner, "invoke", watched)  # noqa: B010 (its type has no name for more arguments)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """A row that names a case which its test does not have proves nothing."""
        ids = {item.nodeid for item in items}
        names = {name.partition("[")[0] for name in ids}
        gone = [test for test in table() if test.partition("[")[0] in names and test not in ids | names]
        if gone and not any("::" in word for word in config.args):
            raise pytest.UsageError(f"{TABLE.name}: there is no {', '.join(gone)}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        self.seen.clear()
        yield
        name = item.nodeid.partition("[")[0]
        if self.file:
            with Path(self.file).open("a", encoding="utf-8") as file:
                file.writelines(f"{command}\t{code}\t{item.nodeid}\n" for command, code in self.seen)
        for nodeid in (item.nodeid, name):
            missing = [run for run in table().get(nodeid, []) if run not in self.seen]
            if missing and not (nodeid == name and "[" in item.nodeid):
                pytest.fail(f"{TABLE.name}: this test no longer ends {missing}; it saw {sorted(self.seen)}")


def _command(app: Any, args: Any) -> str:
    words = [str(word) for word in args or ()]
    plain = [word for word in words if not word.startswith("-")]
    before = _group(app)
    named = [*before, *plain]
    from ultracluster.cli.habits import HABITS  # a run without commands loads none of them

    return next((" ".join(named[:size]) for size in (2, 1) if " ".join(named[:size]) in HABITS), "")


def _group(app: Any) -> list[str]:
    """The word before an app that is one command of the first level: `connect`."""
    from ultracluster.cli.commands import COMMANDS  # as above

    alone = [one.callback for one in getattr(app, "registered_commands", [])]
    for name, row in COMMANDS.items():
        module, _, function = row.place.rpartition(".")
        if function and alone == [getattr(import_module(f"ultracluster.cli.{module or name}"), function)]:
            return [name]
    return []
