"""Check added lines of documentation, docstrings, comments and messages against words.yml, with textlint.

`python -m tools.prose` reads lines added since the commit in `since`; `--all` reads every line.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
READ = ("*.md", "constructs/*", "stacks/*", "lifecycle_scripts/*", "tools/*", "benchmarks/*", "examples/*")
SUFFIXES = (".md", ".py", ".sh", ".yaml", ".json")
GENERATED = (
    "CHANGELOG.md",  # states what earlier versions printed
    "docs/rules.md",
    "docs/*reference.md",
    "docs/backends.md",
    "docs/faults.md",
    "docs/troubleshooting.md",
    "docs/permissions.md",
    "*schema*.json",
    "*/schemas/*",
    "*/rules/examples*",
    "*/dashboards/*",
    "tools/prose/*",
)
"""Files whose text comes from others, which are read."""


def main(arguments: list[str]) -> int:
    names = sorted(filter(_is_read, _git("ls-files").splitlines()))
    added = (
        None if "--all" in arguments else _among(names, added_lines(_git("diff", "--unified=0", _since())))
    )
    findings = list(check(dict.fromkeys(names) if added is None else added))
    for finding in findings:
        print(finding)
    return bool(findings)


def check(lines: dict[str, set[int] | None], root: Path = ROOT) -> Iterator[str]:
    """One finding a line, for the lines of each file; for all of its lines where the set is None."""
    with tempfile.TemporaryDirectory() as folder:
        for name in lines:
            copy = Path(folder, f"{name}.txt" if not name.endswith(".md") else name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text_of(name, (root / name).read_text(encoding="utf-8")), encoding="utf-8")
        if not lines:
            return
        command = [HERE / "node_modules/.bin/textlint", "--config", HERE / ".textlintrc.json"]
        command += ["--rules-base-directory", HERE / "node_modules", "--format", "json", folder]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout.startswith("["):
            raise SystemExit(done.stdout + done.stderr)
        for result in json.loads(done.stdout):
            name = (
                Path(result["filePath"]).relative_to(Path(folder).resolve()).as_posix().removesuffix(".txt")
            )
            for message in result["messages"]:
                checked = lines[name]
                if checked is None or message["line"] in checked:
                    words, _, better = message["message"].partition(" => ")
                    yield f"{name}:{message['line']}:{message['column']}: `{words}`: write `{better}`"


def text_of(name: str, content: str) -> str:
    """The same lines and columns, without the code of Python; other files are text as they are."""
    if not name.endswith(".py"):
        return content
    lines = content.splitlines()
    kept = [" " * len(line) for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type in TEXT:
            for number in range(token.start[0], token.end[0] + 1):
                line = lines[number - 1]
                first = token.start[1] if number == token.start[0] else 0
                last = token.end[1] if number == token.end[0] else len(line)
                kept[number - 1] = kept[number - 1][:first] + line[first:last] + kept[number - 1][last:]
    return "\n".join(kept) + "\n"


TEXT = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""F-strings are tokens of their own from Python 3.12 on."""


def added_lines(diff: str) -> dict[str, set[int] | None]:
    """Line numbers by file, of a diff without context; a text that only moved, from any file, is none."""
    added: dict[str, dict[int, str]] = {}
    lines: dict[int, str] = {}
    removed: set[str] = set()
    number = 0
    for line in diff.splitlines():
        if line.startswith("+++ "):
            lines = added.setdefault(line.removeprefix("+++ b/"), {})
        elif hunk := re.match(r"@@ -\S+ \+(\d+)", line):
            number = int(hunk[1])
        elif line.startswith("-") and not line.startswith("--- "):
            removed.add(_bare(line[1:]))
        elif line.startswith("+"):
            lines[number] = _bare(line[1:])
            number += 1
    new = {name: {at for at, text in rows.items() if text not in removed} for name, rows in added.items()}
    return {name: numbers for name, numbers in new.items() if numbers}


def _bare(line: str) -> str:
    """Return a line without punctuation at its ends: a title that became a docstring is the same."""
    return line.strip(" \t\"',.")


def _among(names: list[str], added: dict[str, set[int] | None]) -> dict[str, set[int] | None]:
    return {name: numbers for name, numbers in added.items() if name in names}


def _is_read(name: str) -> bool:
    return (
        name.endswith(SUFFIXES)
        and any(fnmatch(name, pattern) for pattern in READ)
        and not name.startswith("tests/")
        and not any(fnmatch(name, pattern) for pattern in GENERATED)
    )


def _since() -> str:
    commit = (HERE / "since").read_text().strip()
    if not _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False):
        raise SystemExit(f"the history of this clone ends after {commit}: run `git fetch --unshallow`")
    return commit


def _git(*arguments: str, check: bool = True) -> str:
    command = ["git", "-C", str(ROOT), "-c", "core.quotePath=off", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
