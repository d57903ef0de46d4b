"""What becomes of one resource that comes, goes or changes, whatever happens to the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ultracluster.change.change_facts import (
    fact_about,
    has_snapshots,
    held_data,
    held_data_source,
)
from ultracluster.change.changes import NEW, Change, Pair, Ruling, Verdict
from ultracluster.change.judgement import RETAINING, judged, with_data
from ultracluster.change.template import as_mapping, as_text
from ultracluster.change.walk import MISSING, Steps, walk

_KEEPING: Final = RETAINING | {"Snapshot"}
_GUIDE: Final = "CloudFormation User Guide: attribute "
_NEW: Final = Ruling(Verdict.IN_PLACE, NEW, "")


def direct_changes(pair: Pair) -> list[Change]:
    """Changes of the resource itself."""
    kind = pair.type or as_text(pair.before.get("Type"))
    if kind == "AWS::CDK::Metadata":  # written by the CDK's command alone
        return []
    if not pair.before:
        return [pair.change(fact_about(kind, (), MISSING, pair.after, {}) or _NEW, after=pair.after)]
    if not pair.after:
        gone = replace(pair, after={"Type": kind})
        return [gone.change(_removal(gone), before=pair.before)]
    if as_text(pair.before.get("Type")) != pair.type:
        other = f"was {as_text(pair.before.get('Type'))}: that is deleted, and a {pair.type} is made"
        return [pair.change(with_data(pair, Ruling(Verdict.REPLACED, other, "")))]
    changes = [pair.change(ruling, steps, b, a) for steps, b, a, ruling in _attributes(pair)]
    old, new = as_mapping(pair.before.get("Properties")), as_mapping(pair.after.get("Properties"))
    for steps, b, a in walk(old, new):
        if b != a:
            changes.append(pair.change(judged(pair, steps, b, a), steps, b, a))
    return changes


def _attributes(pair: Pair) -> Iterator[tuple[Steps, Any, Any, Ruling]]:
    """What changed beside the properties."""
    for name in sorted((pair.before.keys() | pair.after.keys()) - {"Type", "Properties"}):
        b, a = pair.before.get(name, MISSING), pair.after.get(name, MISSING)
        if b == a:
            continue
        if name in ("Metadata", "DependsOn"):
            yield (name,), b, a, Ruling(Verdict.NO_OP, "nothing that exists changes", _GUIDE + name)
        elif name == "Condition":
            text = "whether it exists depends on another condition, which cannot be told here"
            yield (name,), b, a, with_data(pair, Ruling(Verdict.REPLACED, text, _GUIDE + name))
        elif held_data(pair.type) and as_text(b) in _KEEPING and as_text(a) not in _KEEPING:
            text = "the guard is taken away: from now on its deletion takes the data along"
            yield (name,), b, a, Ruling(Verdict.IN_PLACE, text, _GUIDE + name)
        else:
            text = "concerns later changes of the stack"
            yield (name,), b, a, Ruling(Verdict.IN_PLACE, text, _GUIDE + name)


def _removal(pair: Pair) -> Ruling:
    """What a resource suffers that is no longer in its template."""
    policy, source = as_text(pair.before.get("DeletionPolicy")), _GUIDE + "DeletionPolicy"
    if policy in RETAINING:
        text = f"retained, no longer managed (DeletionPolicy: {policy}): it stays, and so do its costs"
        return Ruling(Verdict.IN_PLACE, text, source)
    if policy == "Snapshot" and has_snapshots(pair.type):
        text = "deleted; a last snapshot is kept (DeletionPolicy: Snapshot)"
        return Ruling(Verdict.REPLACED, text, source)
    if data := held_data(pair.type):
        return Ruling(Verdict.DATA_LOSS, f"deleted, and with it {data}", held_data_source())
    fact = fact_about(pair.type, (), pair.before, MISSING, {})
    return fact or Ruling(Verdict.REPLACED, "deleted: it is no longer in the template", source)
