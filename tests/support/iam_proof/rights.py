"""What each role may do in the templates of an environment, in names that all environments share.

A resource's physical name is its stack and its logical id without the digest: the bucket of scripts is
`{buckets.Scripts}` everywhere. Names that templates write out stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from iam_proof.people import PARALLELCLUSTER, nodes
from iam_proof.resolved import ACCOUNT, Resolved
from iam_proof.world import POLICIES, World
from ultracluster.config import Environment

DIGEST = re.compile(r"(?<=\w)[0-9A-F]{8}$")
INVENTED = re.compile(r"\{(hex|HEX|id|uuid)\}")
Conditions = Mapping[str, Mapping[str, frozenset[str]]]
"""Values by key, by operator."""


@dataclass(frozen=True)
class InWords(Resolved):
    """Templates in which whatever CloudFormation names is called `{stack.LogicalId}`.

    Attributes:
        environment: the environment's name, which the names of its stacks begin with.
    """

    environment: str = ""

    def _written(self, stack: str, logical: str, form: str) -> str:
        made = super()._written(stack, logical, INVENTED.sub("<id>", form))
        return made.replace("<id>", self._name(stack, logical))

    def _name(self, stack: str, logical: str) -> str:
        return f"{{{self.short(stack)}.{DIGEST.sub('', logical)}}}"

    def short(self, stack: str) -> str:
        """The stack's name without the environment's."""
        return stack.removeprefix(f"{self.environment}-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """An Allow statement of one role."""

    role: str
    """`<orchestrator>/<role of node>`, or stack and logical id of the IAM role."""
    itself: str
    """Name of the IAM role, as resources may name it."""
    sid: str
    actions: frozenset[str]
    resources: frozenset[str]
    conditions: Conditions
    unusual: str = ""
    """What makes the statement one that no row can cover."""


def in_words(config: Environment, templates: Mapping[str, Any]) -> World:
    """An environment whose resources have shared names."""
    account = config.account or ACCOUNT
    resolved = InWords(templates, config.region, account, environment=config.name)
    return World(config.name, config, resolved)


def rights_of(world: World) -> list[Right]:
    """All that roles of the templates may do: by identity policies, and by policies of resources that name
    them."""
    kinds: dict[str, set[str]] = {}
    for role, principals in nodes(world).items():
        for one in principals:
            kinds.setdefault(str(one.role), set()).add(f"{world.config.orchestrator.kind}/{role}")
    resolved = world.resolved
    assert isinstance(resolved, InWords)
    by_name: dict[str, tuple[str, ...]] = {}
    for stack, logical, _ in resolved.resources("AWS::IAM::Role"):
        arn = resolved.attribute(stack, logical, "Arn")
        own = f"{resolved.short(stack)}/{DIGEST.sub('', logical)}"
        by_name[arn.rpartition("/")[2]] = tuple(sorted(kinds.get(arn, {own})))
    found = [
        one
        for stack, logical, _ in resolved.resources(*POLICIES)
        for one in _own(resolved, stack, logical, by_name, world)
    ]
    return found + list(_given(world, by_name))


def _own(
    resolved: InWords, stack: str, logical: str, by_name: Mapping[str, tuple[str, ...]], world: World
) -> Iterator[Right]:
    """Rights by the policy or the inline policies of a resource."""
    mine = resolved.properties(stack, logical)
    kind = resolved.templates[stack]["Resources"][logical]["Type"]
    if kind == "AWS::IAM::Role":
        documents, holders = (
            [one["PolicyDocument"] for one in mine.get("Policies", [])],
            [resolved.ref(stack, logical)],
        )
    else:
        documents, holders = [mine["PolicyDocument"]], mine.get("Roles", [])
    roles = [
        (role, str(name)) for name in holders for role in by_name.get(name, (f"a role of others: {name}",))
    ]
    if not roles:
        # ParallelCluster attaches these to roles that it makes
        parts = [role for role, part in PARALLELCLUSTER.items() if part in logical]
        own = f"{resolved.short(stack)}/{DIGEST.sub('', logical)}"
        roles = [(f"parallelcluster/{role}", "") for role in parts] or [(own, "")]
    for document in documents:
        for statement in many(document["Statement"]):
            if statement["Effect"] == "Allow":
                right = right_of(statement)
                for role, name in roles:
                    yield replace(right, role=role, itself=name)


def right_of(statement: Mapping[str, Any], resource: str = "") -> Right:
    """A statement; of a resource's policy with the resource."""
    unusual = sorted({"NotAction", "NotResource", "NotPrincipal"} & statement.keys())
    conditions = {
        operator: {key: frozenset(str(one) for one in many(values)) for key, values in about.items()}
        for operator, about in statement.get("Condition", {}).items()
    }
    return Right(
        role="",
        itself="",
        sid=statement.get("Sid", "-"),
        actions=frozenset(many(statement.get("Action", []))),
        resources=frozenset([resource] if resource else map(str, many(statement.get("Resource", [])))),
        conditions=conditions,
        unusual=", ".join(unusual),
    )


def _given(world: World, by_name: Mapping[str, tuple[str, ...]]) -> Iterator[Right]:
    """Rights that the policy of a bucket, key, secret, topic or queue gives to roles by name."""
    for arn, name in world.by_resource.items():
        if arn.startswith("arn:aws:iam:"):
            continue  # who may take a role: test_tables.py
        for statement in many(world.policies[name]["Statement"]):
            principals = statement.get("Principal", {})
            named = many(principals.get("AWS", [])) if isinstance(principals, dict) else many(principals)
            for principal in map(str, named):
                # what a policy leaves to the account, an identity policy has to allow
                if statement["Effect"] != "Allow" or principal.endswith(":root"):
                    continue
                short = principal.rpartition("/")[2]
                others = "anybody" if principal == "*" else f"a principal of others: {principal}"
                for role in by_name.get(short, (others,)):
                    yield replace(right_of(statement, arn), role=role, itself=short)


def many(value: Any) -> list[Any]:
    """IAM's one-or-many as a list."""
    return value if isinstance(value, list) else [value]
