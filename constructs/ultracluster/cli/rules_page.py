"""docs/rules.md, written from the rules themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ultracluster.catalog.combinations import pairs, unknown_pairs
from ultracluster.cli.rule_words import as_markdown
from ultracluster.rules import RULE_SETS

SHAPE = {
    "CFG001": "the file does not exist or cannot be read",
    "CFG002": "the file is not YAML: a tab, an open bracket, a type that is not used here; or it is too much",
    "CFG003": "a key stands twice",
    "CFG004": "a key that does not exist here",
    "CFG005": "a value of the wrong type, form, unit or range",
    "CFG006": "a key is missing",
    "CFG007": "the file is empty",
    "CFG008": "`extends:` names no environment file of the folder, or the files extend each other",
    "CFG009": "`${...}`, which is not expanded",
    "CFG010": "more is wrong than is shown",
    "CPY000": "two files that are checked together are the same stacks",
    "ACK001": "an acknowledgement of an unknown rule or of an error",
    "ACK002": "an acknowledgement that no longer covers anything",
}
"""What is wrong with a file before a rule can judge it, and with its acknowledgements."""

HEAD = """\
<!-- Written by `make generate` from the rules and rules/examples.json; edit those instead. -->
# Rules

What AWS would refuse, or silently get wrong, is found before anything is deployed. An **error** stops the
synth. A **warning** is printed, and can be accepted in the environment file with a reason:

```yaml
acknowledge:
  - rule: FSX012
    at: storage.lustre        # optional: only findings at or below this path
    reason: The data set is copied from S3 before each run.
```

Errors cannot be accepted, but for those that are errors until acknowledged: what they report AWS would take,
and only you know whether it is meant. An acknowledgement that no longer covers anything is reported
(`ACK002`); one of an unknown rule or of an error is refused (`ACK001`).

Each rule shows bad lines, set in an environment of this repository, and good lines that fix them; tests run
both. Quoted is what `ultracluster validate` says of the bad ones: what is wrong, and why it matters.
`ultracluster rules FSX002` prints one rule, `ultracluster rules FSX` all of a subject.

"""


def rules_page() -> str:
    """The page as Markdown, ending in a newline."""
    parts = [HEAD, "| subject | rules |\n|---|---|\n"]
    for rule_set in RULE_SETS:
        first, last = min(rule.id for rule in rule_set.rules), max(rule.id for rule in rule_set.rules)
        anchor = re.sub(r"[^\w -]", "", rule_set.subject.lower()).replace(" ", "-")
        parts.append(f"| [{rule_set.subject}](#{anchor}) | {len(rule_set.rules)}, {first} to {last} |\n")
    parts.append("| [The shape of the file](#the-shape-of-the-file) | CFG, ACK |\n")
    parts.append("| [Pairs of features](#pairs-of-features) | several |\n")
    for rule_set in RULE_SETS:
        parts.append(f"\n## {rule_set.subject}\n")
        for rule in sorted(rule_set.rules, key=lambda rule: rule.id):
            parts.append(f"\n### {rule.id}: {rule.title}\n\n{as_markdown(rule)}\n")
    parts.append("\n## The shape of the file\n\n| id | what is wrong |\n|---|---|\n")
    parts += [f"| {code} | {what} |\n" for code, what in SHAPE.items()]
    return "".join((*parts, *_pairs()))


def _pairs() -> Iterator[str]:
    """The pairs of features of which a page speaks, and how many pairs are left."""
    yield "\n## Pairs of features\n\n"
    left = ", ".join(f"{few} of {every} on {kind}" for kind, (few, every) in unknown_pairs().items())
    yield f"What AWS's pages say of two features together. No page speaks of the other pairs ({left}): they "
    yield "are allowed.\n\n| features | orchestrator | verdict | source |\n|---|---|---|---|\n"
    for pair in pairs():
        verdict = f"{pair.verdict} ({pair.rule})" if pair.rule else pair.verdict
        both = f"{pair.at.title} with {pair.other.title}"
        yield f"| {both} | {', '.join(pair.on)} | {verdict} | {pair.source} ({pair.date}) |\n"
