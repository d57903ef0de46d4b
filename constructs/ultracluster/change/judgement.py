"""The verdict on the change of one property, in the light of both tables and of what the resource holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ultracluster.change import create_only
from ultracluster.change.change_facts import (
    fact_about,
    has_snapshots,
    held_data,
    name_property,
)
from ultracluster.change.changes import TAGS, Pair, Ruling, Verdict
from ultracluster.change.template import as_mapping, as_text
from ultracluster.change.walk import Steps

RETAINING: Final = frozenset({"Retain", "RetainExceptOnCreate"})
"""Policies that leave the resource where it is."""


def judged(pair: Pair, steps: Steps, before: Any, after: Any) -> Ruling:
    """What the change of one property does."""
    ruling = _ruling(pair, steps, before, after)
    return _with_name(pair, with_data(pair, ruling)) if ruling.replaces else ruling


def _ruling(pair: Pair, steps: Steps, before: Any, after: Any) -> Ruling:
    kind = pair.type
    fact = fact_about(kind, steps, before, after, as_mapping(pair.after.get("Properties")))
    row, source = create_only.row_of(kind), create_only.source()
    if fact and fact.overrides:
        return fact
    if row is None:
        text = "not in the table of create-only properties: treated as replaced"
        return fact or Ruling(Verdict.REPLACED, text, source)
    if create_only.hits(row.get("always", ()), steps):
        text = "set at creation only: a new one is made, this one is deleted"
        made = Ruling(Verdict.REPLACED, text, source)
        return fact if fact and fact.verdict.rank >= made.verdict.rank else made
    if fact:
        return fact
    if create_only.hits(row.get("sometimes", ()), steps):
        text = "CloudFormation replaces it in some cases: count on a new one"
        return Ruling(Verdict.REPLACED, text, source)
    if steps[:1] == ("Tags",):
        return Ruling(Verdict.IN_PLACE, TAGS, source)
    if create_only.is_custom(kind):
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
