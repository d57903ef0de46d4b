"""Check the subjects of commits since the one in tools/prose/since: a step of CI."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 72
NOT_IMPERATIVE = re.compile(r"[A-Z][a-z]*(?:[^s]s|ed|ing)$")
"""Third persons, participles and gerunds; `Embed`, `Bring` and their like are in IMPERATIVES."""
IMPERATIVES = frozenset(
    {"Bring", "Embed", "Feed", "Focus", "Need", "Proceed", "Speed", "String", "Seed", "Shed"}
)
UNFINISHED = re.compile(r"\bwip\d*\b|^(?:fixup|squash)!|\btodo\b", re.IGNORECASE)


def problems(subject: str, parents: int = 1) -> Iterator[str]:
    """Each thing that is wrong with a subject."""
    if parents > 1:
        yield "a merge commit: rebase the branch"
    if len(subject) > LONGEST:
        yield f"{len(subject)} characters: at most {LONGEST}"
    if UNFINISHED.search(subject):
        yield "unfinished work: squash it into the commit that finishes it"
    first = subject.split(" ")[0]
    if not re.fullmatch(r"[A-Z][a-z]+(?:-[a-z]+)?", first):
        yield f"begins with `{first}`: begin with a verb and a capital letter"
    elif first not in IMPERATIVES and NOT_IMPERATIVE.match(first):
        yield f"begins with `{first}`: use the imperative, as in `Fix ...`"
    if subject.endswith("."):
        yield "ends with a full stop"


def main() -> int:
    since = (ROOT / "tools/prose/since").read_text().strip()
    command = ["git", "-C", str(ROOT), "log", "--format=%h%x09%p%x09%s", f"{since}..HEAD"]
    log = subprocess.run(command, capture_output=True, text=True, check=False)
    if log.returncode:
        print(f"{log.stderr.strip()}\nIs the clone shallow? Run `git fetch --unshallow`.")
        return 2
    wrong = 0
    for line in log.stdout.splitlines():
        commit, parents, subject = line.split("\t", 2)
        for problem in problems(subject, len(parents.split())):
            wrong = 1
            print(f"{commit} {subject}\n  {problem}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
