"""docs/rules.md, written from the rules themselves."""

from __future__ import annotations

from ultracluster.rules import RULE_SETS

HEAD = """\
<!-- Written by `make generate` from the rules; edit those instead. -->
# Rules

What AWS would refuse, or silently get wrong, is found before anything is deployed. An **error** stops the
synth. A **warning** is printed, and can be accepted in the environment file with a reason:

```yaml
acknowledge:
  - rule: FSX012
    at: storage.lustre        # optional: only findings at or below this path
    reason: The data set is copied from S3 before each run.
```

Errors cannot be accepted. An acknowledgement that no longer covers anything is reported (`ACK002`); one of an
unknown rule or of an error is refused (`ACK001`).

## The shape of the file

| id | what is wrong |
|---|---|
| CFG001 | the file does not exist or cannot be read |
| CFG002 | the file is not YAML: a tab, an open bracket, a type that is not used here |
| CFG003 | a key stands twice |
| CFG004 | a key that does not exist here |
| CFG005 | a value of the wrong type, form, unit or range |
| CFG006 | a key is missing, or has no value |
| CFG007 | the file is empty |
| CFG008 | `extends:` or `software.release` names no file, or the files extend each other |
| CFG009 | `${...}`, which is not expanded |
"""


def rules_page() -> str:
    """The page as Markdown, ending in a newline."""
    parts = [HEAD]
    for rule_set in RULE_SETS:
        if not rule_set.rules:
            continue
        parts.append(f"\n## {rule_set.subject}\n")
        for rule in sorted(rule_set.rules, key=lambda rule: rule.id):
            parts.append(f"\n### {rule.id}: {rule.title}\n\n{rule.severity} · {rule.source} ({rule.date})\n")
            if rule.by_hand:
                parts.append(f"\nBy hand: `{rule.by_hand}`\n")
    return "".join(parts)
