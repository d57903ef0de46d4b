"""The verdict on one resource that comes, goes or changes, whatever happens to the others.

It follows from the two tables, and from what the resource holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ultracluster.change.changes import MISSING, NEW, TAGS, Change, Pair, Ruling, Steps, Verdict, walk
from ultracluster.change.tables import (
    create_only,
    create_only_source,
    fact_about,
    has_snapshots,
    held_data,
    held_data_source,
    is_among,
    is_custom,
    name_property,
)
from ultracluster.change.template import as_mapping, as_text

RETAINING: Final = frozenset({"Retain", "RetainExceptOnCreate"})
"""Policies that leave the resource where it is."""
_KEEPING: Final = RETAINING | {"Snapshot"}
_GUIDE: Final = "CloudFormation User Guide: attribute "
_NEW: Final = Ruling(Verdict.IN_PLACE, NEW, "")


def direct_changes(pair: Pair) -> list[Change]:
    """Changes of the resource itself."""
    kind = pair.type or as_text(pair.before.get("Type"))
    if kind == "AWS::CDK::Metadata":  # only the CDK's command writes it
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
    """What changed besides the properties."""
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
            text = "the guard is taken away: from now on its deletion deletes the data, too"
            yield (name,), b, a, Ruling(Verdict.IN_PLACE, text, _GUIDE + name)
        else:
            text = "concerns later changes of the stack"
            yield (name,), b, a, Ruling(Verdict.IN_PLACE, text, _GUIDE + name)


def _removal(pair: Pair) -> Ruling:
    """What happens to a resource that is no longer in its template."""
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


def judged(pair: Pair, steps: Steps, before: Any, after: Any) -> Ruling:
    """What the change of one property does."""
    ruling = _ruling(pair, steps, before, after)
    return _with_name(pair, with_data(pair, ruling)) if ruling.replaces else ruling


def _ruling(pair: Pair, steps: Steps, before: Any, after: Any) -> Ruling:
    kind = pair.type
    fact = fact_about(kind, steps, before, after, as_mapping(pair.after.get("Properties")))
    row, source = create_only(kind), create_only_source()
    if fact and fact.overrides:
        return fact
    if row is None:
        text = "not in the table of create-only properties: treated as replaced"
        return fact or Ruling(Verdict.REPLACED, text, source)
    if is_among(row.get("always", ()), steps):
        text = "set at creation only: a new one is made, this one is deleted"
        replaced = Ruling(Verdict.REPLACED, text, source)
        return fact if fact and fact.verdict.rank >= replaced.verdict.rank else replaced
    if fact:
        return fact
    if is_among(row.get("sometimes", ()), steps):
        text = "CloudFormation replaces it in some cases: count on a new one"
        return Ruling(Verdict.REPLACED, text, source)
    if steps[:1] == ("Tags",):
        return Ruling(Verdict.IN_PLACE, TAGS, source)
    if is_custom(kind):
        return Ruling(Verdict.IN_PLACE, "what happens is up to the function behind it", source)
    return Ruling(Verdict.IN_PLACE, "CloudFormation updates it where it is", source)


def with_data(pair: Pair, ruling: Ruling) -> Ruling:
    """A replacement, in the light of what the resource holds."""
    kind = as_text(pair.before.get("Type"))
    data = held_data(kind)
    if data is None:
        return ruling
    # CloudFormation does not say whose policy counts when it changes, too: both must keep the data
    policies = {as_text(one.get("UpdateReplacePolicy")) for one in (pair.before, pair.after)}
    if policies <= RETAINING | ({"Snapshot"} if has_snapshots(kind) else set()):
        kept = (
            "only a last snapshot of the old one is kept"
            if "Snapshot" in policies
            else "the old one is retained"
        )
        text = f"{ruling.reason}; {kept} (UpdateReplacePolicy), no longer managed, and the new one is empty"
        return replace(ruling, reason=text)
    return replace(ruling, verdict=Verdict.DATA_LOSS, reason=f"{ruling.reason}. Lost: {data}")


def _with_name(pair: Pair, ruling: Ruling) -> Ruling:
    """CloudFormation makes the new one first, which fails while the old one has the name."""
    name = name_property(pair.type)
    if name is None:
        return ruling
    old, new = (as_mapping(one.get("Properties")).get(name) for one in (pair.before, pair.after))
    if isinstance(old, str) and old == new:
        hint = f". While its {name} stays `{old}`, CloudFormation refuses: give it another name"
        return replace(ruling, reason=ruling.reason + hint)
    return ruling
