"""`pytest --quick`: tests that need no CDK, process or socket, those of what a change touches first.

A file is left out by its folder, or by a line `pytestmark = pytest.mark.slow`; a test by that mark, or by
a fixture that asks for the fixture `outside`. Nothing else decides, and a guard fails who needs more.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest
import urllib3.util.connection  # noqa: F401 # binds a socket, once, when it is imported: before the guard

ROOMS = frozenset({
    "catalog", "change", "config", "imports", "jobs", "kubernetes", "metrics", "model", "moving", "plan",
    "project", "rules", "serving", "slurm", "software", "supply",
})  # fmt: skip
"""Folders of tests/ that a quick run collects, beside the files of tests/ itself."""
SLOW_ROOMS = frozenset({
    "acceptance", "account", "capacity", "cli", "clusters", "emulated_account", "examples", "guard",
    "lifecycle", "lifecycle_scripts", "network", "observability", "security", "slurm_twin", "stacks",
    "storage", "tutorials",
})  # fmt: skip
"""Those that it leaves out: their tests synthesise, start daemons, run programs or talk to an account."""
CDK = frozenset({"aws_cdk", "cdk_nag", "constructs", "jsii"})
"""Whoever imports one of these starts a Node process."""
EVENTS = frozenset({
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn", "socket.bind",
    "socket.connect", "socket.getaddrinfo", "subprocess.Popen",
})  # fmt: skip
"""Audit events of processes and sockets."""
_WHOLE_FILE = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)


class Quick(MetaPathFinder):
    """A plugin, and what stands between a quick test and what it is not for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tests = root / "tests"
        self._running = False
        self._refused: list[str] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        if config.args_source is config.ArgsSource.TESTPATHS:
            config.args = [str(self._tests)]  # code blocks of pages show constructs
        if not hasattr(config, "workerinput"):
            config.stash[CHANGED] = changed(self._root)
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._audit)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["changed"] = node.config.stash[CHANGED]

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Whether the file or folder is left out: it is not even imported."""
        if collection_path.is_dir():
            return (
                True if collection_path.parent == self._tests and collection_path.name in SLOW_ROOMS else None
            )
        return True if collection_path.suffix == ".py" and slow(collection_path) else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [
            item
            for item in items
            if item.get_closest_marker("slow") or "outside" in getattr(item, "fixturenames", ())
        ]
        config.hook.pytest_deselected(items=left_out)
        worker = getattr(config, "workerinput", None)
        files = worker["changed"] if worker else config.stash[CHANGED]
        rooms = {_room(file) for file in files}

        def order(item: pytest.Item) -> int:
            file = item.path.relative_to(self._root).as_posix()
            return 0 if file in files else 1 if _room(file) in rooms else 2

        items[:] = sorted((item for item in items if item not in set(left_out)), key=order)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        if fullname.partition(".")[0] in CDK:
            self._refuse(fullname)

    def _audit(self, event: str, arguments: object) -> None:
        if event in EVENTS and self._running:
            self._refuse(event)

    def _refuse(self, what: str) -> None:
        self._refused.append(what)
        raise RuntimeError(f"a quick test needs {what}: mark it `slow`, or let its fixture ask for `outside`")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Iterator[Any]:
        self._running = True
        try:
            return (yield)
        finally:
            self._running = False

    pytest_runtest_protocol = pytest_make_collect_report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Fails who caught the refusal, too."""
        report = yield
        if self._refused:
            report.outcome = "failed"
            report.longrepr = (
                f"{item.nodeid} is a quick test and needs {', '.join(dict.fromkeys(self._refused))}: mark it "
                "`slow`, or let its fixture ask for `outside` (tests/support/quick.py)"
            )
            self._refused.clear()
        return report


CHANGED = pytest.StashKey[list[str]]()


def slow(file: Path) -> bool:
    """Whether the file says that all of it is slow."""
    return _WHOLE_FILE.search(file.read_text(encoding="utf-8")) is not None


def changed(root: Path) -> list[str]:
    """Files that are new, or differ from where this branch left `main`; none without git."""

    def git(*arguments: str) -> list[str]:
        try:
            done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return []
        return done.stdout.split("\n")[:-1]

    base = git("merge-base", "HEAD", "main") or git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    return git("diff", "--name-only", base[0]) + git("ls-files", "--others", "--exclude-standard")


def _room(file: str) -> str:
    """The folder of tests/ for a file of the repository; a name of its own for a file that has none."""
    *folders, _ = file.split("/")
    if folders[:1] == ["lifecycle_scripts"]:
        return folders[0]
    below = {"constructs": 2, "tests": 1}.get(folders[0], len(folders)) if folders else 0
    return folders[below] if len(folders) > below else file
