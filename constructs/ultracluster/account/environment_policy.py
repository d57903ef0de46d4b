"""The policy that lets someone work with one environment: `permissions.json`, limited to what is its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ultracluster.account.retained_logs import control_plane_group
from ultracluster.catalog import regions
from ultracluster.config.base import is_token, s3_place
from ultracluster.config.environment import ENVIRONMENT_TAG, Environment
from ultracluster.config.storage import ExistingDatabase
from ultracluster.model import Cluster
from ultracluster.model.job_access import workdir_place
from ultracluster.model.login import SSH_DOCUMENT, user_document
from ultracluster.model.observability import assumed_role, collects, observability_of
from ultracluster.model.perimeter import named_buckets

PEOPLE = "people"
"""The group of those who only use a cluster; there is none of them without an environment."""
_WORD = re.compile(r"\{(\w+)\}")
Statement = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What only the account knows of an environment; empty before it is deployed."""

    account: str = ""
    cluster_arn: str = ""
    """Of a HyperPod cluster."""


def environment_policy(
    cluster: Cluster,
    actions: Mapping[str, Sequence[str]],
    deployed: Deployed | None = None,
    *,
    user: str = "",
    ssh: bool = False,
) -> list[Statement]:
    """Statements that allow actions on what is the environment's own.

    Args:
        cluster: what the environment comes to.
        actions: IAM actions by group of `permissions.json`, and `people`, whose actions are in the table.
        deployed: what is known of the account.
        user: of `people`, the one as whom sessions are; else they are as the sessions' own user.
        ssh: of `people`, whether sessions may carry SSH, of which no log has the content.
    """
    words = _words(cluster, deployed or Deployed())
    if ssh:  # as AWS's guide has it: no account can make a document of a name that begins with AWS-
        words["ssh_document"] = [
            f"arn:{words['partition'][0]}:ssm:{cluster.region}:*:document/{SSH_DOCUMENT}"
        ]
    if user:
        words["session_documents"] = [_document_of(cluster, user, words)]
    tags = {"instances": instance_tags(cluster), "cluster": ((ENVIRONMENT_TAG, cluster.name),)}
    table = _table()
    rows: list[dict[str, Any]] = []
    everywhere: set[str] = set()
    for group, wanted in actions.items():
        if group == PEOPLE:
            rows += [_as_user(row, cluster, user) if user else row for row in table[PEOPLE]["statements"]]
            continue
        own = [row for row in table["rows"] if group in row.get("groups", (group,))]
        rows += [row | {"actions": [action for action in row["actions"] if action in wanted]} for row in own]
        everywhere |= set(wanted) - {action for row in own for action in row["actions"]}
    world = _world()
    rows += [
        {"actions": sorted(everywhere & world), "resources": ["*"]},
        {"actions": sorted(everywhere - world), "resources": ["*"]},
    ]
    statements = [
        statement
        for row in rows
        if row["actions"]
        for statement in _statements(row, words, tags, cluster.region)
    ]
    return [{"Sid": f"Ultracluster{number}", **one} for number, one in enumerate(_distinct(statements), 1)]


def _document_of(cluster: Cluster, user: str, words: Mapping[str, Sequence[str]]) -> str:
    """ARN of a user's own session document: whole, because names of users begin alike."""
    (partition,), (region,), (account,) = (words[one] for one in ("partition", "region", "account"))
    return f"arn:{partition}:ssm:{region}:{account}:document/{user_document(cluster.environment, user)}"


def _as_user(row: Mapping[str, Any], cluster: Cluster, user: str) -> dict[str, Any]:
    """The same for this user's principals only.

    A tag SSMSessionRunAs comes before what a document says (Systems Manager User Guide, "Turn on Run As
    support"; whether of custom documents, too, is not said): one that names somebody else opens nothing.
    """
    if "ssm:StartSession" not in row["actions"]:
        return dict(row)
    conditions = row.get("conditions", {}) | {
        "ArnLike": {"aws:PrincipalArn": list(cluster.environment.users[user].principals)},
        "StringEqualsIfExists": {"aws:PrincipalTag/SSMSessionRunAs": user},
    }
    return {**row, "conditions": conditions}


def instance_tags(cluster: Cluster) -> tuple[tuple[str, str], ...]:
    """Tags of the instances of an environment, each enough on its own; none where AWS runs all nodes."""
    return tuple(
        (key, value.format(cluster=cluster.cluster_name, name=cluster.name))
        for key, value in cluster.traits.instance_tags
    )


def rows_for(action: str) -> list[dict[str, Any]]:
    """The rows of the table that an action has."""
    return [row for row in _table()["rows"] if action in row["actions"]]


def _statements(
    row: Mapping[str, Any],
    words: Mapping[str, Sequence[str]],
    tags: Mapping[str, Iterable[tuple[str, str]]],
    region: str,
) -> Iterator[Statement]:
    resources = [one for pattern in row["resources"] for one in _filled(pattern, words)]
    if not resources:
        return  # the environment has none of them
    conditions: dict[str, Any] = {
        key: {name: _filled(one, words)[0] if isinstance(one, str) else one for name, one in value.items()}
        for key, value in row.get("conditions", {}).items()
    }
    if resources == ["*"] and not set(row["actions"]) <= _world():
        conditions["StringEquals"] = {"aws:RequestedRegion": region}
    variants = [conditions]
    if asked := row.get("tags"):
        variants = [
            conditions
            | {"StringEquals": conditions.get("StringEquals", {}) | {f"aws:ResourceTag/{key}": value}}
            for key, value in tags[asked]
        ]
    for variant in variants:
        statement: Statement = {"Effect": "Allow", "Action": list(row["actions"]), "Resource": resources}
        yield statement | ({"Condition": variant} if variant else {})


def _filled(pattern: str, words: Mapping[str, Sequence[str]]) -> list[str]:
    names = [name for name in _WORD.findall(pattern) if name in words]
    found = [pattern]
    for name in names:
        found = [text.replace(f"{{{name}}}", value) for text in found for value in words[name]]
    return found


def _distinct(statements: Iterable[Statement]) -> list[Statement]:
    """Statements of several groups that allow the same are one; those that differ in actions only, too."""
    merged: dict[str, Statement] = {}
    for statement in statements:
        key = json.dumps(
            {name: value for name, value in statement.items() if name != "Action"}, sort_keys=True
        )
        if key in merged:
            merged[key]["Action"] = sorted({*merged[key]["Action"], *statement["Action"]})
        else:
            merged[key] = statement
    return list(merged.values())


def _words(cluster: Cluster, deployed: Deployed) -> dict[str, list[str]]:
    environment, region = cluster.environment, cluster.region
    known = regions().get(region)
    partition = known.partition if known else "aws"
    account = deployed.account or environment.account or "*"
    own = environment.stack_name("cluster")
    governance = environment.governance
    prefix = governance.role_prefix or ""
    buckets = [*named_buckets(environment), f"{environment.stack_name('buckets')}-*"]
    mirror = environment.software.mirror
    mirrored = s3_place(mirror)[0] if mirror and not is_token(mirror) else None
    database = environment.storage.accounting_database
    secrets = f"arn:{partition}:secretsmanager:{region}:{account}:secret"
    role = f"{governance.role_path or '/'}{prefix}{own.removeprefix(prefix)}"
    arns = f"arn:{partition}:s3:::"
    stacks = [*environment.stack_names, *([cluster.cluster_name] if cluster.traits.own_stack else [])]
    hyperpod = deployed.cluster_arn or f"arn:{partition}:sagemaker:{region}:{account}:cluster/*"
    grafana = environment.observability.grafana if environment.observability else None
    workspaces = f"arn:{partition}:grafana:{region}:{account}:/workspaces"
    return {
        "region": [region], "account": [account], "partition": [partition],
        "name": [cluster.name], "cluster": [cluster.cluster_name],
        "stacks": [f"arn:{partition}:cloudformation:{region}:{account}:stack/{stack}/*" for stack in stacks],
        "session_documents": [f"arn:{partition}:ssm:{region}:{account}:document/{own}-Session*"],
        "admin_documents": [f"arn:{partition}:ssm:{region}:{account}:document/{own}-AdminSession*"],
        "user_documents": [f"arn:{partition}:ssm:{region}:{account}:document/{own}-as-*"]
        if any(user.principals for user in environment.users.values()) else [],
        "ssh_document": [],
        "state_files": [f"{arns}{_scripts_bucket(environment)}/{cluster.cluster_name}/state/*"]
        if cluster.traits.slurm else [],
        "keys": [f"arn:{partition}:kms:{region}:{account}:key/*"] if cluster.traits.slurm else [],
        "buckets": [f"{arns}{name}" for name in dict.fromkeys(buckets)],
        "mirror_buckets": [f"{arns}{mirrored}"] if mirrored else [],
        "mirror_files": [f"{arns}{mirrored}/*"] if mirrored else [],
        "rest_key": [],
        "node_roles": [f"arn:{partition}:iam::{account}:role{role}-*"] if cluster.traits.hyperpod else [],
        "hyperpod": [hyperpod] if cluster.traits.hyperpod else [],
        "kubernetes": [f"arn:{partition}:eks:{region}:{account}:cluster/{cluster.cluster_name}"]
        if cluster.traits.kubernetes else [],
        "extensions": [f"arn:{partition}:sagemaker:{region}:{account}:extension/*"]
        if cluster.traits.hyperpod and cluster.traits.slurm else [],
        **_workdirs(cluster, arns),
        **_metrics(cluster, partition, account),
        **_capacity(cluster, partition, account),
        "named_grafana": [f"{workspaces}/{grafana.workspace_id}"] if grafana and grafana.workspace_id else [],
        "made_grafana": [f"{workspaces}/*"] if grafana and not grafana.workspace_id else [],
        "logs": [
            f"arn:{partition}:logs:{region}:{account}:log-group:{name}"
            for name in _log_groups(cluster.log_group)
        ],
        "control_plane_logs": [
            f"arn:{partition}:logs:{region}:{account}:log-group:{control_plane_group(cluster.cluster_name)}{end}"
            for end in ("", ":*")
        ] if cluster.traits.kubernetes else [],
        "secrets": [
            database.secret_arn if isinstance(database, ExistingDatabase)
            else f"{secrets}:{environment.stack_name('storage')}-*"
        ] if database else [],
    }  # fmt: skip


def _workdirs(cluster: Cluster, arns: str) -> dict[str, list[str]]:
    """Archives of submitted folders, and the key of their bucket."""
    place = workdir_place(cluster)
    key = place.bucket.key if place else None
    return {
        "workdirs": [f"{arns}{place.bucket.bucket}/{place.folder}/*.tar"] if place else [],
        "workdir_keys": [key.arn] if key else [],
    }


def _metrics(cluster: Cluster, partition: str, account: str) -> dict[str, list[str]]:
    """The Prometheus workspace that `doctor` asks, and the role for one of another account."""
    wanted, role = observability_of(cluster), assumed_role(cluster)
    existing = wanted.workspace.arn if wanted and wanted.workspace else ""
    own = existing or f"arn:{partition}:aps:{cluster.region}:{account}:workspace/*"
    return {"metrics": [own] if collects(cluster) else [], "metrics_role": [role] if role else []}


def _scripts_bucket(environment: Environment) -> str:
    given = environment.storage.scripts_bucket
    return given.name if given else f"{environment.stack_name('buckets')}-*"


def _log_groups(prefix: str) -> list[str]:
    """Groups that begin so and are not another cluster's: `prod-` is also how those of `prod-eu` begin.

    ParallelCluster ends the name with a time of twelve digits (aws-parallelcluster 3.16, cluster_stack.py).
    """
    if not prefix.endswith("-"):
        return [f"{prefix}*"] if prefix else []
    return [f"{prefix}{'?' * 12}{end}" for end in ("", ":*")]


def _capacity(cluster: Cluster, partition: str, account: str) -> dict[str, list[str]]:
    """What `capacity buy` makes for it: a block has no name of ours, a plan begins with the environment's."""
    sagemaker = f"arn:{partition}:sagemaker:{cluster.region}:{account}"
    if cluster.traits.hyperpod:
        return {
            "blocks": [],
            "plans": [f"{sagemaker}:reserved-capacity/*", f"{sagemaker}:training-plan/{cluster.name}-*"],
        }
    return {"blocks": [f"arn:{partition}:ec2:{cluster.region}:{account}:capacity-reservation/*"], "plans": []}


def _world() -> set[str]:
    """Actions that are not limited to the environment's Region."""
    return {*_table()["global"]["actions"], *_table()["every_region"]["actions"]}


@cache
def _table() -> dict[str, Any]:
    file = Path(__file__).with_name("environment_rights.json")
    return json.loads(file.read_text(encoding="utf-8"))
