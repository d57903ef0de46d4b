"""Both tables of environments as Markdown, with what the evaluator says: `python -m iam_proof [NAME...]`.

Names are those of environments/, with or without what the tests change in one, or paths of files, also of
overlays. By default all that the tests ask about. Ends with 1 where a row turns out otherwise than its table
says, or a role has a right that no row of tests/security/rights/ allows.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from assemblies import keep_in, templates_alone

from iam_proof.allow_list import AllowList, names_of_file, rows
from iam_proof.environments import NAMES, config_of, rows_for, worlds_of
from iam_proof.evaluator import Evaluator, why_not_here
from iam_proof.rights import in_words, rights_of
from iam_proof.verdicts import Verdict, verdicts
from ultracluster.config import InvalidEnvironmentError

HEADS = {"allowed": "What must be allowed", "denied": "What must be denied"}


def page(name: str, found: Sequence[Verdict]) -> Iterator[str]:
    """Lines of one environment."""
    yield f"# {name}\n"
    for table, head in HEADS.items():
        yield f"## {head}\n"
        yield "| | who | calls | on | by |"
        yield "|---|---|---|---|---|"
        for verdict in found:
            if verdict.row.table == table:
                yield line(verdict)
        yield ""


def line(verdict: Verdict) -> str:
    row = verdict.row
    who = sorted({one.call.who.label for one in verdict.outcomes})
    resources = sorted({one.call.resource for one in verdict.outcomes})
    by = sorted({one.because for one in verdict.outcomes if one.because} if row.table == "denied" else set())
    mark = "**NO**: " if verdict.surprises else ""
    more = f" and {len(resources) - 2} more" if len(resources) > 2 else ""
    cells = [f"{mark}{row.row}", ", ".join(who), ", ".join(row.calls), ", ".join(resources[:2]) + more]
    return "| " + " | ".join(one.replace("|", "\\|") for one in [*cells, ", ".join(by)]) + " |"


def main(names: Sequence[str]) -> int:
    if missing := why_not_here():
        sys.stderr.write(f"{missing}\n")
        return 2
    if unknown := [name for name in names if name not in NAMES and not Path(name).is_file()]:
        there = f"there are: {'; '.join(NAMES)}; or give the path of an environment's file"
        sys.stderr.write(f"no environment is called {', '.join(unknown)}; {there}\n")
        return 2
    asked = [name if name in NAMES else str(Path(name).resolve()) for name in names] or NAMES
    try:
        for name in asked:
            config_of(name)
    except InvalidEnvironmentError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, Evaluator() as evaluator:
        keep_in(Path(folder), time.time())
        for name in asked:
            templates = templates_alone(config_of(name))
            world, neighbour = worlds_of(name, templates)
            found = verdicts(world, evaluator, rows_for(name), others=[neighbour])
            sys.stdout.write("\n".join(page(name, list(found.values()))) + "\n")
            more = AllowList(rows()).findings(
                rights_of(in_words(config_of(name), templates)), names_of_file(config_of(name))
            )
            sys.stdout.write("".join(f"- **NO**: {one}\n" for one in more))
            wrong += sum(bool(one.surprises) for one in found.values()) + len(more)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
