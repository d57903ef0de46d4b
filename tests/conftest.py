"""Shared fixtures: one jsii kernel per worker, one synth per environment, one wheel per run."""

from __future__ import annotations

import os
import shutil
import tempfile
import time

import pytest
from machine_log import forbid
from needs import last_line
from project import ENVIRONMENTS, ROOT

if (ROOT / "constructs" / "__init__.py").exists():  # nothing later could explain the ImportError
    raise pytest.UsageError("delete constructs/__init__.py: it shadows the distribution `constructs`")

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assemblies import Synthesised

# Fixtures import what only their tests use: a run of one file, or a quick one, starts without it. What is
# synthesised is kept only where no source changed since START, so the package comes after it.
START = time.time()
NO_INPUT = pytest.StashKey[bool]()
OWN_CACHE = pytest.StashKey[str]()
LONGEST_FIRST = (
    "lifecycle_scripts/test_bats.py",
    "lifecycle_scripts/test_first_boot.py",
    "slurm_twin/test_health_fire.py",
    "lifecycle_scripts/test_source_builds.py",
    "lifecycle_scripts/test_debian_packages.py",
    "stacks/test_wishes.py",
    "slurm_twin/test_health.py",
    "lifecycle_scripts/test_metrics_remote_write.py",
    "tests/test_site.py",
    "tutorials/test_tutorials.py",
    "lifecycle_scripts/test_health_loop.py",
    "tests/test_conformance.py",
    "slurm_twin/test_fairness.py",
    "slurm_twin/test_job_queue.py",
    "metrics/test_rules.py",
    "stacks/test_environments.py",
    "project/test_own_repository.py",
    "storage/test_database_user.py",
    "tests/test_examples.py",
    "clusters/test_rehearsal.py",
    "lifecycle_scripts/test_debian_root.py",
    "rules/test_examples.py",
    "change/test_other_version.py",
    "examples/test_train.py",
    "stacks/test_properties.py",
    "cli/test_init_matrix.py",
)
"""Files are handed to workers whole: a long one at the end would leave the other workers idle.

By clock seconds (build/suite-files.csv), 2026-11-28: files of more than 20.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Debian roots and programs are kept from run to run; where there is no place, they are this run's."""
    forbid()
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        own = tempfile.mkdtemp(prefix="ultracluster-cache-")
        os.environ["XDG_CACHE_HOME"] = own  # workers have it, too
        config.add_cleanup(lambda: shutil.rmtree(own, ignore_errors=True))
        config.stash[OWN_CACHE] = f"{error}: what others keep there is this run's own; see XDG_CACHE_HOME"


def pytest_report_header(config: pytest.Config) -> str:
    return config.stash.get(OWN_CACHE, "")


@pytest.fixture(autouse=True)
def _path() -> Iterator[None]:
    """Commands that a test puts in front are its own: the next test of the worker finds the real ones."""
    before = os.environ["PATH"]
    yield
    os.environ["PATH"] = before


@pytest.fixture(autouse=True, scope="session")
def _service_models() -> None:
    """A worker reads the description of each AWS service once, where each session of boto3 would.

    It is megabytes of JSON, and all clients of one session share it, so nothing writes to it.
    """
    from botocore.loaders import JSONFileLoader

    read = JSONFileLoader.load_file
    known: dict[str, Any] = {}

    def load_file(self: JSONFileLoader, file_path: str) -> Any:
        if known.get(file_path) is None:
            known[file_path] = read(self, file_path)
        return known[file_path]

    JSONFileLoader.load_file = load_file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get("/".join(item.path.parts[-2:]), len(place)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose `needs_input` files are not there, before any fixture is made."""
    for marker in item.iter_markers("needs_input"):
        variable, *patterns = marker.args
        folder = os.environ.get(variable, "")
        if folder and not Path(folder).is_dir():
            pytest.fail(f"{variable} is {folder}, which is no folder", pytrace=False)
        if not folder or not any(path for pattern in patterns for path in Path(folder).glob(pattern)):
            item.stash[NO_INPUT] = True
            where = f"in {variable} ({folder})" if folder else f"({variable} names no folder)"
            pytest.skip(f"{marker.kwargs['reason']}: no {' or '.join(patterns)} {where}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """In CI a skipped test is a failed one: what is skipped there is proven nowhere.

    But for files that no package archive has: a test that `needs_input` is skipped there, too, and the
    summary says why.
    """
    outcome = yield
    report = outcome.get_result()
    if report.skipped and NO_INPUT in item.stash:
        report.user_properties.append(("needs_input", str(call.excinfo.value) if call.excinfo else ""))
    elif report.skipped and os.environ.get("ULTRACLUSTER_NO_SKIPS"):
        report.outcome = "failed"
        report.longrepr = f"skipped although ULTRACLUSTER_NO_SKIPS is set: {report.longrepr}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("skipped", []):
        for name, reason in report.user_properties:
            if name == "needs_input":
                terminalreporter.write_line(f"not proven here: {report.nodeid}: {reason}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """The last line of a run says what was skipped, and how to run it."""
    yield
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and (skipped := reporter.stats.get("skipped")):
        reasons = [report.longrepr[2] for report in skipped]
        reporter.write_line(last_line([reason.removeprefix("Skipped: ") for reason in reasons]))


@pytest.fixture(scope="session")
def outside() -> None:
    """What a fixture asks for that needs the CDK, a process or a socket: a quick run leaves its tests out."""


@pytest.fixture(autouse=True, scope="session")
def _assemblies(tmp_path_factory: pytest.TempPathFactory) -> None:
    from assemblies import keep_in

    keep_in(_of_run(tmp_path_factory), START)


@pytest.fixture(scope="session")
def synthesised(outside: None) -> Callable[[str], Synthesised]:
    """Gives the assembly of a shipped environment, with strict validation and cdk-nag."""
    from assemblies import assembly

    from ultracluster.config import load

    return cache(lambda name: assembly(load(ROOT / "environments" / f"{name}.yaml").environment))


@pytest.fixture(scope="session")
def templates_of(synthesised: Callable[[str], Synthesised]) -> Callable[[str], dict[str, Any]]:
    """Gives the templates of an environment, by a name of `iam_proof.environments.EVERY`."""
    from assemblies import templates_alone
    from iam_proof.environments import config_of

    def get(name: str) -> dict[str, Any]:
        return synthesised(name).templates if name in ENVIRONMENTS else templates_alone(config_of(name))

    return cache(get)


@pytest.fixture(scope="session")
def wheel(outside: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel, the same for all workers."""
    from wheel import built_wheel

    return built_wheel(_of_run(tmp_path_factory) / "wheel")


@pytest.fixture(scope="session")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its dependencies, away from this checkout; one for all workers."""
    from wheel import site_with

    return site_with(wheel, _of_run(tmp_path_factory) / "wheel")


def _of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run that all workers see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
