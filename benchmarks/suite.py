"""CPU seconds of the tests by folder: the last whole `make test` beside suite.csv.

Usage: python benchmarks/suite.py MEASURED [--record]. MEASURED is what `pytest --cpu-times` wrote; --record
writes its sums to suite.csv, for a commit.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

SUITE = Path(__file__).with_name("suite.csv")
GROWTH = 5
"""CPU seconds that a folder may grow by until a commit has to say what it saves elsewhere."""


@dataclass
class Folder:
    tests: int = 0
    cpu_seconds: float = 0


def by_folder(measured: Path) -> dict[str, Folder]:
    """Sums of a table of files, by a folder of at most two levels: `tests/cli`, `docs`."""
    folders: dict[str, Folder] = defaultdict(Folder)
    with measured.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            parents = Path(row["file"]).parent.parts[:2]
            folder = folders["/".join(parents) or "."]
            folder.tests += int(row["tests"])
            folder.cpu_seconds += float(row["cpu_seconds"])
    return dict(folders)


def read(suite: Path) -> dict[str, Folder]:
    with suite.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {row["folder"]: Folder(int(row["tests"]), float(row["cpu_seconds"])) for row in rows}


def write(suite: Path, folders: dict[str, Folder]) -> None:
    with suite.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("folder", "tests", "cpu_seconds"))
        for name, folder in sorted(folders.items()):
            rows.writerow((name, folder.tests, f"{folder.cpu_seconds:.2f}"))


def compared(measured: dict[str, Folder], suite: dict[str, Folder]) -> list[str]:
    """The lines of the comparison, the sum last; a folder that grew by more than GROWTH is marked."""
    lines = [f"{'tests: folder':<30} {'tests':>7} {'before':>7} {'CPU s':>8} {'before':>8} {'change':>8}"]
    for name in sorted(measured.keys() | suite.keys()):
        now, before = measured.get(name, Folder()), suite.get(name, Folder())
        change = now.cpu_seconds - before.cpu_seconds
        mark = f"   OVER: more than {GROWTH} CPU seconds" if change > GROWTH else ""
        lines.append(_line(name, now, before) + mark)
    return [*lines, _line("sum", _sum(measured), _sum(suite))]


def age(measured: Path) -> str:
    """A note on a missing or old measurement; empty if there is neither."""
    if not measured.exists():
        return f"no CPU seconds of tests: `make test` writes {measured}, if it runs the whole suite"
    newest = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],  # noqa: S607
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    )  # fmt: skip
    if newest.stdout.strip() and measured.stat().st_mtime < int(newest.stdout):
        return f"{measured} is older than the newest commit: `make test` measures again"
    return ""


def _line(name: str, now: Folder, before: Folder) -> str:
    change = now.cpu_seconds - before.cpu_seconds
    return (
        f"{name:<30} {now.tests:>7,} {before.tests:>7,} "
        f"{now.cpu_seconds:>8,.1f} {before.cpu_seconds:>8,.1f} {change:>+8,.1f}"
    )


def _sum(folders: dict[str, Folder]) -> Folder:
    every = folders.values()
    return Folder(sum(one.tests for one in every), sum(one.cpu_seconds for one in every))


def main(measured: Path, *, record: bool = False) -> int:
    if note := age(measured):
        print(note)
    if not measured.exists():
        return 1 if record else 0
    folders = by_folder(measured)
    if record:
        write(SUITE, folders)
    else:
        print("\n".join(compared(folders, read(SUITE))))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), record="--record" in sys.argv[2:]))
