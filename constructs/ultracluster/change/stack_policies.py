"""Policies of deployed stacks: which are ours, and how one is opened for what was accepted.

What a closed policy says stands in `model/stack_guards.py`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ultracluster.catalog.data_kinds import kinds_with_data
from ultracluster.change.changes import Change
from ultracluster.change.template import Template, as_mapping, as_text, resources_of
from ultracluster.config.file_text import json_of
from ultracluster.model.stack_guards import ALLOW, LOSING, OPEN


def opened_for(going: Collection[str], deployed: Template) -> str:
    """Lets some resources go, and refuses it of all others of a deployed stack that hold data.

    Args:
        going: logical ids.
    """
    held = [
        name for name, one in resources_of(deployed).items() if as_text(one.get("Type")) in kinds_with_data()
    ]
    kept = [f"LogicalResourceId/{name}" for name in sorted(held) if name not in going]
    if not kept:
        return OPEN
    deny = {"Effect": "Deny", "Action": LOSING, "Principal": "*", "Resource": kept}
    return json.dumps({"Statement": [ALLOW, deny]})


def is_ours(policy: str) -> bool:
    """Whether a policy is one of those above, of this version or of another; nobody else's is touched."""
    try:
        statements = as_mapping(json_of(policy)).get("Statement")
    except ValueError:
        return False
    if not isinstance(statements, list) or not statements:
        return False
    first, *rest = statements  # pyright: ignore[reportUnknownVariableType]
    return first == ALLOW and len(rest) <= 1 and all(_is_our_refusal(one) for one in rest)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _is_our_refusal(statement: Any) -> bool:
    one = as_mapping(statement)
    fits = one.get("Effect") == "Deny" and one.get("Action") == list(LOSING)
    by_type = one.get("Resource") == "*" and list(as_mapping(one.get("Condition"))) == ["StringEquals"]
    by_name = isinstance(one.get("Resource"), list) and "Condition" not in one
    return fits and (by_type or by_name)


def going(changes: Iterable[Change], before: Mapping[str, Template]) -> dict[str, set[str]]:
    """By stack: logical ids of resources that hold data and that an update would replace or take out of the
    template, also where a policy of theirs retains them."""
    found: dict[str, set[str]] = {}
    for change in changes:
        resource = resources_of(before.get(change.stack, {})).get(change.logical_id, {})
        leaves = change.replaces or (not change.path and change.before is not None and change.after is None)
        if leaves and as_text(resource.get("Type")) in kinds_with_data():
            found.setdefault(change.stack, set()).add(change.logical_id)
    return found
