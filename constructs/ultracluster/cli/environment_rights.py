"""`ultracluster permissions ENVIRONMENT`: rights on the resources of one environment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ultracluster.account.environment_policy import Deployed, environment_policy
from ultracluster.cli.accounts import open_outputs
from ultracluster.config import Environment
from ultracluster.model import resolve

if TYPE_CHECKING:
    from ultracluster.cli.documents.software import Policy

LONGEST = 6144
"""Characters of a managed policy, blanks not counted (IAM User Guide, "IAM and AWS STS quotas")."""


def actions_of(document: dict[str, Any], group: str) -> list[str]:
    """The IAM actions of a group, also those that only an environment can limit; none of `people`,
    whose statements the table of environments has."""
    statements = document["policies"].get(group, {"Statement": []})["Statement"]
    allowed = {action for statement in statements for action in statement["Action"]}
    return sorted(allowed | set(document["named"].get(group, [])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights on one environment."""

    environment: str
    policy: Policy
    notes: tuple[str, ...]


def limited_rights(
    document: dict[str, Any],
    groups: list[str],
    environment: Environment,
    ask: bool,
    profile: str | None,
    user: str,
    ssh: bool,
) -> Rights:
    cluster = resolve(environment)
    known = _deployed(environment, profile) if ask else Deployed()
    actions = {name: actions_of(document, name) for name in groups}
    statements = environment_policy(cluster, actions, known, user=user, ssh=ssh)
    made: Policy = {"Version": "2012-10-17", "Statement": statements}
    notes: list[str] = []
    if not (environment.account or known.account):
        notes.append(
            "the file names no account, so every account passes: write `account:`, or use --deployed"
        )
    if cluster.traits.hyperpod and not known.cluster_arn:
        notes.append(
            "the id of a HyperPod cluster is known once it is there: until you use --deployed, sessions may "
            "be opened on the nodes of every HyperPod cluster of the Region"
        )
    if not made["Statement"]:
        notes.append(f"nothing of {', '.join(groups)} concerns this environment: IAM takes no empty policy")
    size = len("".join(json.dumps(made, separators=(",", ":")).split()))
    if size > LONGEST:
        notes.append(
            f"{size} characters: a managed policy takes {LONGEST}. Print one per group, e.g. `permissions "
            f"{environment.name} read --policy`"
        )
    return Rights(environment=environment.name, policy=made, notes=tuple(notes))


def _deployed(environment: Environment, profile: str | None) -> Deployed:
    account, outputs = open_outputs(environment, profile, [environment.stack_name("cluster")])
    arn = next((one["ClusterArn"] for one in outputs.values() if "ClusterArn" in one), "")
    return Deployed(account=account.identity().account, cluster_arn=arn)
