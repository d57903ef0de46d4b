"""The verdict on one resource that comes, goes or changes, whatever happens to the others.

It follows from the two tables, and from what the resource holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ultracluster.catalog.data_kinds import held_data, held_data_source
from ultracluster.change.capacity_in_use import taken_over
from ultracluster.change.changes import MISSING, NEW, TAGS, Change, Pair, Ruling, Steps, Verdict, walk
from ultracluster.change.deletion_protection import guards_data
from ultracluster.change.kubernetes_objects import MANIFEST, judge_manifest
from ultracluster.change.parallelcluster_updates import judge_configuration
from ultracluster.change.tables import (
    create_only,
    create_only_source,
    fact_about,
    has_snapshots,
    is_among,
    is_custom,
    name_property,
    name_scope,
    update_requires,
    used_by_jobs,
)
from ultracluster.change.template import as_mapping, as_text
from ultracluster.change.ways_and_rights import RULES, judge, judge_new, judge_removal, rule_words
from ultracluster.model.stack_guards import EKS_SWITCH

RETAINING: Final = frozenset({"Retain", "RetainExceptOnCreate"})
"""Policies that leave the resource where it is."""
_UNGUARDED: Final = (
    "from now on its deletion deletes the data, too",
    "from now on its deletion leaves a last snapshot only",
)
_GUARD_ENDS: Final = (
    "a guard is switched off: deletion protection, or a stack policy that refuses what loses data"
)
GUARDS: Final = {
    "DeletionProtection": "RDS User Guide: Deleting a DB instance; EKS User Guide: Protect EKS clusters from "
    "accidental deletion",
    "DeletionProtectionEnabled": "CloudFormation Template Reference: DeletionProtectionEnabled",
    "TerminationProtection": "CloudFormation User Guide: Protect stacks from being deleted",
    "EnableTerminationProtection": "CloudFormation User Guide: Protect stacks from being deleted",
}
"""Properties that keep AWS from deleting what they are of."""
GUARDED: Final = (True, "true", "True")
_GUIDE: Final = "CloudFormation User Guide: attribute "
_NEW: Final = Ruling(Verdict.IN_PLACE, NEW, "")


def direct_changes(pair: Pair) -> list[Change]:
    """Changes of the resource itself."""
    kind = pair.type or as_text(pair.before.get("Type"))
    if kind == "AWS::CDK::Metadata":  # only the CDK's command writes it
        return []
    if not pair.before:
        return [pair.change(_addition(pair), after=pair.after)]
    if not pair.after:
        gone = replace(pair, after={"Type": kind})
        return [gone.change(_removal(gone), before=pair.before)]
    if as_text(pair.before.get("Type")) != pair.type:
        other = f"was {as_text(pair.before.get('Type'))}: that is deleted, and a {pair.type} is made"
        return [pair.change(with_data(pair, Ruling(Verdict.REPLACED, other, "")))]
    changes = [pair.change(ruling, steps, b, a) for steps, b, a, ruling in _attributes(pair)]
    old, new = as_mapping(pair.before.get("Properties")), as_mapping(pair.after.get("Properties"))
    for steps, b, a in walk(old, new) if old != new else ():
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
        elif held_data(pair.type) and _kept(pair.type, a) < _kept(pair.type, b):
            text = f"the guard is taken away: {_UNGUARDED[_kept(pair.type, a)]}"
            yield (name,), b, a, Ruling(Verdict.DATA_AT_RISK, text, _GUIDE + name)
        else:
            text = "concerns later changes of the stack"
            yield (name,), b, a, Ruling(Verdict.IN_PLACE, text, _GUIDE + name)


def _kept(kind: str, policy: Any) -> int:
    """How much of the data a policy keeps: all, a last snapshot, nothing."""
    if as_text(policy) in RETAINING:
        return 2
    return int(as_text(policy) == "Snapshot" and has_snapshots(kind))


def _addition(pair: Pair) -> Ruling:
    """What a resource does that was not there."""
    fact = fact_about(pair.type, (), MISSING, pair.after, {}, None, pair)
    return fact or judge_new(pair) or taken_over(pair, pair.after) or _NEW


def _removal(pair: Pair) -> Ruling:
    """What happens to a resource that is no longer in its template."""
    policy, source = as_text(pair.before.get("DeletionPolicy")), _GUIDE + "DeletionPolicy"
    if policy in RETAINING:
        text = f"retained, no longer managed (DeletionPolicy: {policy}): it stays, and so do its costs"
        if used := used_by_jobs(pair.type):
            return Ruling(Verdict.AT_RISK, f"{text}. {used}", source)
        return Ruling(Verdict.IN_PLACE, text, source)
    if policy == "Snapshot" and has_snapshots(pair.type):
        text = "deleted; a last snapshot is kept (DeletionPolicy: Snapshot)"
        return Ruling(Verdict.REPLACED, text, source)
    if data := held_data(pair.type):
        return Ruling(Verdict.DATA_LOSS, f"deleted, and with it {data}", held_data_source())
    if rights := judge_removal(pair):
        return rights
    properties = as_mapping(pair.before.get("Properties"))
    if pair.type == MANIFEST and (objects := judge_manifest(properties.get("Manifest"), MISSING)):
        return objects
    if pair.type == EKS_SWITCH or (pair.type == "Custom::AWS" and guards_data(pair.before.get("Properties"))):
        return Ruling(Verdict.DATA_AT_RISK, _GUARD_ENDS, source)
    fact = fact_about(pair.type, (), pair.before, MISSING, properties, None, pair)
    if fact and pair.type in RULES and (words := rule_words(pair.before.get("Properties"))):
        return replace(fact, reason=f"{fact.reason}; {words}")
    return fact or Ruling(Verdict.REPLACED, "deleted: it is no longer in the template", source)


def judged(pair: Pair, steps: Steps, before: Any, after: Any) -> Ruling:
    """What the change of one property does."""
    ruling = _ruling(pair, steps, before, after)
    return _with_name(pair, steps, with_data(pair, ruling)) if ruling.replaces else ruling


def _ruling(pair: Pair, steps: Steps, before: Any, after: Any) -> Ruling:
    kind = pair.type
    if steps and before is not after and (by_meaning := judge(pair, steps, before, after)):
        return by_meaning
    if kind == MANIFEST and steps == ("Manifest",):
        prunes = "PruneLabel" in as_mapping(pair.after.get("Properties"))
        if objects := judge_manifest(before, after, prunes=prunes):
            return objects
    if steps[-1:] and steps[-1] in GUARDS and before in GUARDED and after not in GUARDED:
        return Ruling(
            Verdict.DATA_AT_RISK, f"{steps[-1]} is switched off: {_UNGUARDED[0]}", GUARDS[steps[-1]]
        )
    if (
        kind == "Custom::AWS"
        and steps == ("Create",)
        and guards_data({"Create": before})
        and not guards_data({"Create": after})
    ):
        return Ruling(Verdict.DATA_AT_RISK, _GUARD_ENDS, create_only_source())
    is_new_element = before is MISSING and bool(steps) and steps[-1].startswith("[")
    if is_new_element and (taken := taken_over(pair, after)):
        return taken
    if asked := judge_configuration(pair, steps):
        return asked
    old, new = (as_mapping(one.get("Properties")) for one in (pair.before, pair.after))
    fact = fact_about(kind, steps, before, after, new, old, pair)
    row, source = create_only(kind), create_only_source()
    if fact and fact.overrides:
        return fact
    if row is None:
        text = "not in the table of create-only properties: treated as replaced"
        return fact or Ruling(Verdict.REPLACED, text, source)
    if is_among(row.get("always", ()), steps):
        text = "set at creation only: a new one is made, this one is deleted"
        said = fact and fact.verdict in (Verdict.REPLACED, Verdict.REFUSED, Verdict.DATA_LOSS)
        return fact if fact and said else Ruling(Verdict.REPLACED, text, source)
    if fact:
        return fact
    if is_among(row.get("sometimes", ()), steps):
        text = "CloudFormation replaces it in some cases: count on a new one"
        return Ruling(Verdict.REPLACED, text, source)
    if steps[:1] == ("Tags",):
        return Ruling(Verdict.IN_PLACE, TAGS, source)
    return _by_page(kind, steps)


def _by_page(kind: str, steps: Steps) -> Ruling:
    """The ruling of the type's page; "in place" is never a guess."""
    word, source = update_requires(kind, steps) or ("", "")
    match word:
        case "none":
            return Ruling(Verdict.IN_PLACE, "CloudFormation updates it where it is", source)
        case "some":
            text = "CloudFormation updates it where it is, with some interruptions"
            return Ruling(Verdict.ROLLING, text, source)
        case "replacement":
            return Ruling(Verdict.REPLACED, "a new one is made, this one is deleted", source)
        case "unsupported":
            return Ruling(Verdict.REFUSED, "CloudFormation cannot update it", source)
        case _:
            what = "the function behind it" if is_custom(kind) else "CloudFormation"
            text = f"no source says what {what} does with a change of it: try it in another environment first"
            return Ruling(Verdict.NOT_KNOWN, text, "update_requires.json and change_facts.json have no row")


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


def _with_name(pair: Pair, steps: Steps, ruling: Ruling) -> Ruling:
    """CloudFormation makes the new one first, which fails while the old one has the name.

    A name within a parent is free where the parent is another one.
    """
    name = name_property(pair.type)
    if name is None or steps[:1] == (name_scope(pair.type),):
        return ruling
    old, new = (as_mapping(one.get("Properties")).get(name) for one in (pair.before, pair.after))
    if isinstance(old, str) and old == new:
        reason = f"{ruling.reason}. CloudFormation makes the new one first, while its {name} `{old}` is taken"
        if ruling.verdict is Verdict.DATA_LOSS:
            return replace(ruling, reason=f"{reason}, and refuses: give it another name")
        order = (f"another {name}: the new one is made, then this one is deleted",)
        return replace(ruling, verdict=Verdict.REFUSED, reason=reason, order=order)
    return ruling
