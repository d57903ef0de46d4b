"""Managed policies of AWS that our roles write out: what of them is new, removed or changed.

AWS adds actions to its policies without a word to those who copied them. `managed_policies.json` has the
statements that were compared last; moto has a copy of IAM's own answers, which each of its releases renews.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("managed_policies.json")
Policies = Mapping[str, Mapping[str, Any]]
Statements = list[Mapping[str, Any]]


def recorded() -> Policies:
    """The policies that were compared, by name."""
    return json.loads(FILE.read_text(encoding="utf-8"))["policies"]


def newest() -> Policies:
    """All managed policies that moto knows, by name: version and statements."""
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    return {
        name: {"version": one["DefaultVersionId"], "statements": _many(one["Document"]["Statement"])}
        for name, one in json.loads(aws_managed_policies_data).items()
    }


def differences(before: Policies, after: Policies) -> Iterator[tuple[str, str]]:
    """Return what is to be done: `new`, `gone` or `changed`, and what, in words.

    Args:
        before: those that were compared.
        after: the newest ones.
    """
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield "gone", f"{name}: moto has no such policy"
            continue
        was, now = actions(old["statements"]), actions(new["statements"])
        for action in sorted(now - was):
            yield "new", f"{name} {new['version']}: allows {action}; write it out, or say why not in left_out"
        for action in sorted(was - now):
            yield "gone", f"{name} {new['version']}: no longer allows {action}"
        if was == now and old["statements"] != new["statements"]:
            yield "changed", f"{name} {new['version']}: resources or conditions differ from {old['version']}"


def actions(statements: Statements) -> set[str]:
    """All that statements allow."""
    allowed = (one for one in statements if one["Effect"] == "Allow")
    return {action for one in allowed for action in _many(one["Action"])}


def lacking(policy: Mapping[str, Any], ours: set[str]) -> set[str]:
    """Actions of a policy that our role lacks, and that are not left out for a reason.

    Args:
        policy: a row of `recorded`.
        ours: actions of the role; they may have `*`.
    """
    known = [one.lower() for one in (*ours, *policy["left_out"])]
    found = actions(policy["statements"])
    return {one for one in found if not any(fnmatchcase(one.lower(), pattern) for pattern in known)}


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
