"""Policies of stacks that hold data: CloudFormation refuses what would replace or delete such a resource.

They hold for everyone who updates a stack, a plain `cdk deploy` among them. A policy cannot be given in a
template, nor for one update by change set, which is how the CDK deploys (CloudFormation User Guide, "Prevent
updates to stack resources"; "Execute a change set"): the stack `<environment>-protection` sets it, and
`ultracluster deploy` opens it for what was accepted and closes it again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from ultracluster.change.changes import Change
from ultracluster.change.tables import kinds_with_data
from ultracluster.change.template import Template, as_mapping, as_text, resources_of
from ultracluster.config.file_text import json_of

GUARDED_PARTS: Final = ("foundation", "observability", "buckets", "storage")
"""Parts of an environment whose stacks have such a policy."""
_LOSING: Final = ["Update:Replace", "Update:Delete"]
_ALLOW: Final = {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}
OPEN: Final = json.dumps({"Statement": [_ALLOW]})
"""Allows everything: a policy can be replaced, not removed."""


def closed() -> str:
    """Refuses to replace or delete what holds data; everything else goes on."""
    types = {"StringEquals": {"ResourceType": kinds_with_data()}}
    deny = {"Effect": "Deny", "Action": _LOSING, "Principal": "*", "Resource": "*", "Condition": types}
    return json.dumps({"Statement": [_ALLOW, deny]})


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
    deny = {"Effect": "Deny", "Action": _LOSING, "Principal": "*", "Resource": kept}
    return json.dumps({"Statement": [_ALLOW, deny]})


def is_ours(policy: str) -> bool:
    """Whether a policy is one of those above, of this version or of another; nobody else's is touched."""
    try:
        statements = as_mapping(json_of(policy)).get("Statement")
    except ValueError:
        return False
    if not isinstance(statements, list) or not statements:
        return False
    first, *rest = statements  # pyright: ignore[reportUnknownVariableType]
    return first == _ALLOW and len(rest) <= 1 and all(_is_our_refusal(one) for one in rest)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _is_our_refusal(statement: Any) -> bool:
    one = as_mapping(statement)
    fits = one.get("Effect") == "Deny" and one.get("Action") == _LOSING
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
