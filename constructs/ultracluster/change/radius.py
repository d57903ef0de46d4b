"""Two sets of templates in, a list of changes out: those of each resource, then of what refers to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ultracluster.catalog.data_kinds import held_data
from ultracluster.change.changes import Change, Pair, Verdict, dotted, walk
from ultracluster.change.deletion_protection import with_deletion_protection
from ultracluster.change.exports_in_use import exports_in_use
from ultracluster.change.judgement import direct_changes, judged
from ultracluster.change.surroundings import Surroundings, Target
from ultracluster.change.tables import moving_attributes
from ultracluster.change.template import (
    IMPORT,
    PROTECTED,
    Template,
    as_mapping,
    as_text,
    references,
    resources_of,
)

_DEPLOY: Final = "CDK CLI reference: cdk deploy"


def blast_radius(
    before: Mapping[str, Template], after: Mapping[str, Template], *, renamed_to: str = ""
) -> list[Change]:
    """Every change between two sets of templates (by stack name), worst first.

    A stack that is only in `after` is new; one that is only in `before` stays as it is, because a deploy
    deletes no stack. Never raises, whatever the templates hold.

    Args:
        renamed_to: what the environment is called now, where stacks are left behind because of that.
    """
    changes: list[Change] = []
    pairs: list[Pair] = []
    around = Surroundings(before, after)
    for stack in sorted(before.keys() | after.keys()):
        if stack not in after:
            changes.append(_left_behind(stack, before[stack], renamed_to))
            continue
        if as_mapping(before.get(stack)).get(PROTECTED) and as_mapping(after[stack]).get(PROTECTED) is False:
            changes.append(_unprotected(stack))
        old, new = resources_of(before.get(stack, {})), resources_of(after[stack])
        for logical_id in sorted(old.keys() | new.keys()):
            sides = old.get(logical_id, {}), new.get(logical_id, {})
            pair = Pair(stack, logical_id, *sides, old, new, around)
            if pair.before and pair.after:
                pairs.append(pair)
            changes += direct_changes(pair)
    changes += _cascade(pairs, changes, around, before, after)
    changes = with_deletion_protection(changes, before)
    changes += exports_in_use(before, after)
    return sorted(changes, key=lambda c: (-c.verdict.rank, c.stack, c.logical_id, c.path))


def worst(changes: list[Change]) -> Verdict:
    """The worst verdict; no-op if nothing changes."""
    return max((change.verdict for change in changes), key=lambda v: v.rank, default=Verdict.NO_OP)


def _unprotected(stack: str) -> Change:
    reason = (
        "termination protection goes: from now on one command deletes the stack, with what it does not retain"
    )
    source = "CloudFormation User Guide: Protect CloudFormation stacks from being deleted"
    return Change.of_stack(stack, reason, source, path=PROTECTED, verdict=Verdict.DATA_AT_RISK)


def _left_behind(stack: str, template: Template, renamed_to: str) -> Change:
    resources = resources_of(template)
    data = [name for name, resource in resources.items() if held_data(as_text(resource.get("Type")))]
    holding = f", of which {len(data)} hold data" if data else ""
    reason = (
        "the stack is no longer part of the environment: a deploy leaves it as it is, with its "
        f"{len(resources)} resources{holding}; delete it by hand when nothing needs it"
    )
    if renamed_to and data:
        reason = (
            f"the environment is called {renamed_to} now, which is a second set of stacks: this one stays "
            f"with its {len(resources)} resources{holding}, is paid, and nothing manages it. What is made in "
            f"its place for {renamed_to} is new and empty. Its old name goes on with what is there"
        )
        return Change.of_stack(stack, reason, _DEPLOY, path="data", verdict=Verdict.DATA_AT_RISK)
    return Change.of_stack(stack, reason, _DEPLOY)


def _cascade(
    pairs: list[Pair],
    direct: list[Change],
    around: Surroundings,
    before: Mapping[str, Template],
    after: Mapping[str, Template],
) -> list[Change]:
    """What refers to something that is replaced changes, too, and so on until nothing new comes."""
    exports = around.exports
    seen = {(change.stack, change.logical_id, change.path) for change in direct}
    moved = _moved(direct) | _moved_values(before, after)
    found: list[Change] = []
    while moved:
        fresh: list[Change] = []
        for pair in pairs:
            properties = as_mapping(pair.after.get("Properties"))
            if _cause(properties, pair.stack, moved, exports) is None:
                continue
            for steps, value, _ in walk(properties, properties):
                place = (pair.stack, pair.logical_id, dotted(steps))
                if place in seen:
                    continue
                cause = _cause(value, pair.stack, moved, exports)
                if cause is None or cause[:2] == pair.key:
                    continue
                seen.add(place)
                ruling = judged(pair, steps, value, value)
                text = f"refers to {_named(cause, pair.stack)}, which changes: {ruling.reason}"
                if cause[0] != pair.stack:
                    text += f". It is an export of {cause[0]}: CloudFormation refuses to change one in use"
                fresh.append(pair.change(replace(ruling, reason=text), steps, value, value))
        if not fresh:
            return found
        found += fresh
        moved |= _moved(fresh)
    return found


def _moved(changes: list[Change]) -> set[Target]:
    """References whose value is another one afterwards; None stands for every attribute."""
    moved: set[Target] = set()
    for change in changes:
        if change.replaces:
            moved.add((change.stack, change.logical_id, None))
        elif change.verdict is not Verdict.NO_OP and change.path:
            for attribute in moving_attributes(change.resource_type):
                moved.add((change.stack, change.logical_id, attribute))
    return moved


def _moved_values(before: Mapping[str, Template], after: Mapping[str, Template]) -> set[Target]:
    """Parameters and mappings with another value."""
    return {
        (stack, name, None)
        for stack in before.keys() & after.keys()
        for section in ("Parameters", "Mappings")
        for name, value in as_mapping(as_mapping(after[stack]).get(section)).items()
        if as_mapping(as_mapping(before[stack]).get(section)).get(name, value) != value
    }


def _cause(value: Any, stack: str, moved: set[Target], exports: Mapping[str, set[Target]]) -> Target | None:
    """The first reference in a value that has another value afterwards."""
    found: set[Target] = set()
    for name, attribute in references(value):
        if name.startswith(IMPORT):
            found |= exports.get(name.removeprefix(IMPORT), set())
        else:
            found.add((stack, name, attribute))
    hit = [one for one in found if one in moved or (one[0], one[1], None) in moved]
    return min(hit, key=lambda one: (one[0], one[1], one[2] or "")) if hit else None


def _named(cause: Target, stack: str) -> str:
    return f"`{cause[1]}`" if cause[0] == stack else f"`{cause[0]}/{cause[1]}`"
