"""Run each test file that waits for something repeatedly, beside busy loops: `tools/flaky.py [ROUNDS]`.

A file waits if it, or a support module that it imports, sleeps, polls, sets a time-out, opens a socket or
starts a process. A failure ends the run: fix the test, never retry it.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
WAITS = re.compile(
    r"\b(?:sleep|timeout|deadline|monotonic|poll|select|socket|subprocess|Popen|Thread|HTTPServer|wait_for)\b"
)

BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Ends with who started it, however that ends."""


def waiting_files() -> list[Path]:
    """Test files that wait, by their own text or by that of a support module they import."""
    support = {path.stem: path for path in (TESTS / "support").glob("*.py")}
    support |= {path.parent.name: path for path in (TESTS / "support").glob("*/__init__.py")}
    support |= {path.name: path for path in (TESTS / "support").iterdir() if path.is_dir()}
    waits = {name: _waits(path) for name, path in support.items()}
    return [
        path
        for path in sorted(TESTS.rglob("test_*.py"))
        if _waits(path) or any(waits.get(name, False) for name in _imports(path))
    ]


def _waits(path: Path) -> bool:
    files = path.rglob("*.py") if path.is_dir() else [path]
    return any(WAITS.search(file.read_text(encoding="utf-8")) for file in files)


def _imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.partition(".")[0] for name in plain} | {
        node.module.partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=10)
    parser.add_argument("--loops", type=int, default=os.cpu_count() or 1, help="busy loops beside the tests")
    parser.add_argument("--only", default="", help="files whose path contains this text")
    parser.add_argument("--list", action="store_true", help="print the files")
    arguments, others = parser.parse_known_args()
    files = [name for path in waiting_files() if arguments.only in (name := str(path.relative_to(ROOT)))]
    if not files:
        parser.error(f"no test file that waits has {arguments.only} in its path")
    if arguments.list:
        print("\n".join(files))
        return 0
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(arguments.loops)]
    try:
        for number in range(1, arguments.rounds + 1):
            print(f"round {number} of {arguments.rounds}: {len(files)} files", flush=True)
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-x", *others, *files]
            if status := subprocess.run(command, cwd=ROOT, check=False).returncode:
                return status
    finally:
        for loop in loops:
            loop.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
