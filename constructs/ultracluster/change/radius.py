"""Two sets of templates in, a list of changes out."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.change.cascade import cascade
from ultracluster.change.change_facts import held_data
from ultracluster.change.changes import Change, Pair, Verdict
from ultracluster.change.exports_in_use import exports_in_use
from ultracluster.change.resource_changes import direct_changes
from ultracluster.change.template import Template, as_text, resources_of


def blast_radius(before: Mapping[str, Template], after: Mapping[str, Template]) -> list[Change]:
    """Every change between two sets of templates (by stack name), worst first.

    A stack that is only in `after` is new; one that is only in `before` stays as it is, because a deploy
    deletes no stack. Never raises, whatever the templates hold.
    """
    changes: list[Change] = []
    pairs: list[Pair] = []
    for stack in sorted(before.keys() | after.keys()):
        if stack not in after:
            changes.append(_left_behind(stack, before[stack]))
            continue
        old, new = resources_of(before.get(stack, {})), resources_of(after[stack])
        for logical_id in sorted(old.keys() | new.keys()):
            pair = Pair(stack, logical_id, old.get(logical_id, {}), new.get(logical_id, {}))
            if pair.before and pair.after:
                pairs.append(pair)
            changes += direct_changes(pair)
    changes += cascade(pairs, changes, before, after)
    changes += exports_in_use(before, after)
    return sorted(changes, key=lambda c: (-c.verdict.rank, c.stack, c.logical_id, c.path))


def worst(changes: list[Change]) -> Verdict:
    """The worst verdict; no-op if nothing changes."""
    return max((change.verdict for change in changes), key=lambda v: v.rank, default=Verdict.NO_OP)


def _left_behind(stack: str, template: Template) -> Change:
    resources = resources_of(template)
    data = [name for name, one in resources.items() if held_data(as_text(one.get("Type")))]
    holding = f", of which {len(data)} hold data" if data else ""
    return Change(
        stack=stack,
        logical_id="",
        resource_type="AWS::CloudFormation::Stack",
        path="",
        verdict=Verdict.IN_PLACE,
        reason=f"the stack is no longer part of the environment: a deploy leaves it as it is, with its "
        f"{len(resources)} resources{holding}; delete it by hand when nothing needs it",
        source="CDK CLI reference: cdk deploy",
    )
