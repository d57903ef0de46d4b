"""Writes docs/troubleshooting.md from the tables of what goes wrong. Run by `make generate`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from tools.known_failures_page import threads
from tools.markdown_cells import cell, code
from ultracluster.account.doctor.known_failures import KnownFailure, Stage, known_failures
from ultracluster.catalog.node_faults import node_faults
from ultracluster.metrics.alert import Alert, alerts
from ultracluster.rules import RULE_SETS
from ultracluster.scripts_folder import scripts_folder

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
ENVIRONMENT, NODE = "prod", "ip-10-1-0-17"

HEAD = f"""# Troubleshooting

What you see, what mostly causes it, what to run, and where more stands. Written by `make generate` from
the tables that the commands use themselves; edit those instead. `{ENVIRONMENT}`, `{NODE}` and `4711`
and `/fsx` stand for your environment, node, job and file system.

**First**: `ultracluster doctor {ENVIRONMENT}` reads stack events, node states, logs and metrics, knows the
texts of this page, and says which of them it has found. A line that you have it reads, too, and asks no
account: `journalctl -k | ultracluster doctor {ENVIRONMENT} --log -`, or `--log` with a file or a folder.
[Known failures](known-failures.md) has what distinguishes each cause from its neighbours, and its source.
"""
WHERE = {
    "a command ends with another code than 0": "[exit codes](exit-codes.md)",
    "a file is refused, or warned of": "[A file is refused](#a-file-is-refused)",
    "a deploy fails or stops": "[The deploy fails](#the-deploy-fails)",
    "a node does not come up": "[A node does not come up](#a-node-does-not-come-up)",
    "a node comes up without something": "[A node is DEGRADED](#a-node-is-degraded)",
    "Slurm drains a node, by `ultracluster:...`": "[A node is drained](#a-node-is-drained)",
    "an alert fires": "[An alert fires](#an-alert-fires)",
    "the step is slow, and nothing complains": "[the five questions](observability.md)",
}
REFUSED = """\
Each finding has a code, a place and what works instead; `ultracluster rules FSX002` prints one rule
with bad and good lines. A warning can be accepted with a reason (`acknowledge:`), an error cannot."""
DEGRADED = """\
It takes jobs. The last line of `/var/log/provision/provisioning.log` names what it goes without and
why; `ultracluster plan` said before the deploy what its image lacks ([images](images.md)). A node that
lacks what training cannot run without is `FAILED` instead, and `ultracluster doctor` has its line."""
DRAINED = f"""\
`sinfo -R` shows a reason `ultracluster:<check>:<code>`. What one means, and what happens next, says
`ultracluster doctor {ENVIRONMENT} --reason ultracluster:xid:79`; [faults](faults.md) has every code with its
source, and its action on each generation of GPUs; [health](health.md) how a node gets back."""
OTHERS = """\
Public threads, each with what prevents or reports it here; [known failures](known-failures.md) names
the threads."""
TITLES: dict[Stage, str] = {
    "deploy": "The deploy fails",
    "node": "A node does not come up",
    "storage": "A file system is not there, or slow",
    "slurm": "Slurm",
    "kubernetes": "Kubernetes",
    "job": "A job is slow, or ends",
    "shell": "A shell does not open",
}


def page() -> str:
    """The page as Markdown."""
    where = ["| When | Go to |", "|---|---|", *(f"| {when} | {there} |" for when, there in WHERE.items())]
    parts: list[Iterable[str]] = [where, _refused()]
    for stage in get_args(Stage):
        parts.append(_failures(stage))
        if stage == "node":
            parts += [_degraded(), _drained()]
    parts += [_alerts(), _others()]
    return "\n".join([HEAD, *(line for part in parts for line in (*part, ""))]).rstrip() + "\n"


def _refused() -> Iterator[str]:
    yield "## A file is refused"
    yield ""
    yield REFUSED
    yield ""
    yield "| You see | It is about |"
    yield "|---|---|"
    for one in RULE_SETS:
        yield f"| `{one.prefix}...` | [{one.subject}](rules.md#{_anchor(one.subject)}) |"
    yield "| `CFG...`, `ACK...` | [The shape of the file](rules.md#the-shape-of-the-file) |"


def _failures(stage: Stage) -> Iterator[str]:
    yield f"## {TITLES[stage]}"
    yield ""
    yield "| You see | Cause | What to do | More |"
    yield "|---|---|---|---|"
    for one in known_failures():
        if one.when == stage:
            cause = cell(one.cause) if one.certain else f"possibly: {cell(one.cause)}"
            yield f"| {code(one.seen)} | {cause} | {cell(one.do)} | {_links(one)} |"


def _links(failure: KnownFailure) -> str:
    name = failure.page.partition("#")[0].rpartition("/")[2].removesuffix(".md")
    return f"[{name}]({failure.page})"


def _degraded() -> Iterator[str]:
    """What a node's last line says of each component that it goes without."""
    text = (scripts_folder() / "lib" / "contract.sh").read_text(encoding="utf-8")
    table = re.search(r"declare -rA CONTRACT_LOST=\(\n(.*?)\n\)", text, re.DOTALL)
    assert table
    yield "## A node is DEGRADED"
    yield ""
    yield DEGRADED
    yield ""
    yield "| You see `DEGRADED` with | What is lost |"
    yield "|---|---|"
    for name, lost in re.findall(r"\['([\w-]+)'\]=\"((?:[^\"\\]|\\.)*)\"", table[1]):
        yield f"| `{name}` | {cell(lost.replace(chr(92), ''))} |"


def _drained() -> Iterator[str]:
    yield "## A node is drained"
    yield ""
    yield DRAINED
    yield ""
    yield "| You see | Codes that take a node out, and what then mends it |"
    yield "|---|---|"
    faults = [row for row in node_faults() if row.severity == "critical"]
    for check in dict.fromkeys(row.check for row in faults):
        by_action: dict[str, list[str]] = {}
        for row in faults:
            if row.check == check:
                words = "a person" if row.action == "none" else row.action
                codes = by_action.setdefault(words, [])
                codes += [one for one in row.codes if one not in codes]
        said = "; ".join(f"{action}: {', '.join(map(_any, codes))}" for action, codes in by_action.items())
        yield f"| [`ultracluster:{check}:`](faults.md#{check}) | {said} |"


def _any(name: str) -> str:
    return "any other" if name == "*" else name


def _alerts() -> Iterator[str]:
    yield "## An alert fires"
    yield ""
    yield "Each alert has a [runbook](runbooks/README.md) of its own name."
    yield ""
    yield "| You see | It means | First |"
    yield "|---|---|---|"
    for one in alerts():
        yield f"| [{one.name}](runbooks/{one.name}.md) | {cell(_meaning(one))} | {code(_plain(one.run))} |"


def _meaning(alert: Alert) -> str:
    """The first sentence of its runbook."""
    text = (DOCS / "runbooks" / f"{alert.name}.md").read_text(encoding="utf-8")
    found = re.search(r"^\*[^*]+\* (.+)$", text, re.MULTILINE)
    assert found, alert.name
    return re.split(r"(?<=\.) ", re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", found[1]))[0]


def _plain(command: str) -> str:
    """A command whose places are filled with what the page calls them."""
    filled = command.replace("<<environment>>", ENVIRONMENT)
    places = {"job_id": "4711", "fs": "/fsx", "check": "CHECK", "code": "CODE", "xid": "CODE"}
    return re.sub(
        r"\{\{[^}]*\$labels\.(\w+)[^}]*\}\}|<<[^>]+>>", lambda found: places.get(found[1] or "", NODE), filled
    )


def _others() -> Iterator[str]:
    """What others met, and what prevents it here."""
    yield "## What others met"
    yield ""
    yield OTHERS
    yield ""
    yield "| They saw | Here |"
    yield "|---|---|"
    for one in threads():
        yield f"| {one['failed']} | {one['here']} |"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.stdout.write(page())
