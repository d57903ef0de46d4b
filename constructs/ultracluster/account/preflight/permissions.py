"""Whether who deploys may do what the stacks need, by IAM's own simulator.

`cdk deploy` assumes roles of the bootstrap stack: the deployer needs `sts:AssumeRole` on them, and the
role that CloudFormation uses needs the rest (CDK Guide, "Bootstrapping").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.config.capacity import CapacityBlock
from ultracluster.config.governance import CDK_QUALIFIER
from ultracluster.config.storage import RdsMySql
from ultracluster.model import TRAITS, Cluster
from ultracluster.model.addresses import secondary_blocks
from ultracluster.model.inference import inference_of
from ultracluster.model.observability import collects
from ultracluster.model.team_shares import scheduler_of

_ROLES = ("deploy-role", "file-publishing-role", "cfn-exec-role")
_ASSUMED = _ROLES[:2]
CHUNK = 50
"""Actions of one simulation."""


def questions(situation: Situation) -> Iterator[Question]:
    yield Question("permissions", "deployer", lambda: _deployer(situation))
    yield Question("permissions", "CloudFormation's role", lambda: _executor(situation))


def principal(arn: str) -> str:
    """The ARN that IAM can simulate: of an assumed role the role itself.

    The role's path is not in the session's ARN: `role_arn` asks IAM for it.
    """
    prefix, _, resource = arn.rpartition(":")
    if not resource.startswith("assumed-role/"):
        return arn
    return f"{prefix.replace(':sts:', ':iam:')}:role/{resource.split('/')[1]}"


def role_arn(situation: Situation, arn: str) -> str:
    """As `principal`, with the role's path; roles of IAM Identity Center have one."""
    role = principal(arn)
    if role == arn:
        return arn
    name = role.rpartition("/")[2]
    return str(situation.client("iam").get_role(RoleName=name)["Role"]["Arn"])


def deploy_actions(cluster: Cluster) -> list[str]:
    """Actions that CloudFormation's role needs to make the stacks: `catalog/deploy_actions.json`."""
    environment, traits = cluster.environment, cluster.traits
    storage, network, watching = environment.storage, environment.network, environment.observability
    serving = inference_of(cluster)
    blocks = [
        group.capacity for group in cluster.groups.values() if isinstance(group.capacity, CapacityBlock)
    ]
    true = {
        **{kind: kind == traits.kind for kind in TRAITS},
        "always": True,
        "network": environment.makes_network,
        "vpc": network.vpc is None,
        "nat": network.vpc is None and network.egress == "nat",
        "blocks": bool(secondary_blocks(network)),
        "ipv6": network.vpc is None and environment.dual_stack,
        "key": storage.key is None,
        "buckets": environment.makes_buckets,
        "storage": environment.makes_storage,
        "lustre": any(lustre.new for lustre in environment.lustres.values()),
        "openzfs": storage.openzfs is not None and storage.openzfs.deployment != "existing",
        "repositories": bool(environment.all_data_repositories),
        "database": isinstance(storage.accounting_database, RdsMySql),
        "hyperpod": traits.hyperpod,
        "kubernetes": traits.kubernetes,
        "task-governance": bool(environment.teams) and scheduler_of(cluster) == "task-governance",
        "instances": traits.has_instances,
        "observability": watching is not None,
        "budget": watching is not None and watching.monthly_budget_usd is not None,
        "counted-logs": watching is not None and (traits.hyperpod or bool(traits.delivered_logs)),
        "delivered-logs": bool(traits.delivered_logs),
        "workspace": watching is not None and watching.makes_workspace,
        "grafana": watching is not None and watching.makes_grafana,
        "scraper": watching is not None and collects(cluster) and watching.collector == "managed",
        # whoever has made the operator's role has made the provider that it names
        "web-identity": serving is not None and not serving.execution_role_arn,
        "certificates": serving is not None and serving.certificate_bucket is None,
        "block-start": traits.until_block == "fills-later" and any(block.starts for block in blocks),
    }
    rows: list[dict[str, Any]] = _actions()
    actions = [row["action"] for row in rows if any(true[when] for when in row["when"])]
    return sorted(set(actions))


@cache
def _actions() -> list[dict[str, Any]]:
    file = Path(__file__).parents[2] / "catalog" / "deploy_actions.json"
    return json.loads(file.read_text(encoding="utf-8"))["actions"]


def _deployer(situation: Situation) -> Iterator[Row]:
    identity = situation.account.identity()
    if identity.arn.endswith(":root"):
        yield Row(
            "deployer", "yellow", "is the account's root user, who may do everything", "use a role instead"
        )
        return
    arn = role_arn(situation, identity.arn)
    roles = [_bootstrap_role(situation, name) for name in _ASSUMED]
    denied = _simulated(situation, arn, ["sts:AssumeRole"], roles)
    for role in roles:
        what = f"sts:AssumeRole {role.rpartition('/')[2]}"
        if why := denied.get(("sts:AssumeRole", role)):
            yield Row(
                what, "red", f"{arn}: {why}", "let the deployer assume the roles of the bootstrap stack"
            )
        else:
            yield Row(what, "green", f"{arn} is allowed")


def _executor(situation: Situation) -> Iterator[Row]:
    arn = _bootstrap_role(situation, "cfn-exec-role")
    actions = deploy_actions(situation.cluster)
    denied = _simulated(situation, arn, actions, [])
    for (action, _), why in sorted(denied.items()):
        yield Row(
            action, "red", f"CloudFormation's role: {why}",
            "bootstrap with a policy that allows it (`cdk bootstrap --cloudformation-execution-policies`)",
        )  # fmt: skip
    if not denied:
        yield Row(
            "CloudFormation's role", "green", f"is allowed all {len(actions)} actions that the stacks need"
        )


def _bootstrap_role(situation: Situation, name: str) -> str:
    identity = situation.account.identity()
    partition = identity.arn.split(":")[1]
    qualifier = situation.environment.governance.bootstrap_qualifier or CDK_QUALIFIER
    where = f"{identity.account}-{situation.account.region}"
    return f"arn:{partition}:iam::{identity.account}:role/cdk-{qualifier}-{name}-{where}"


def _simulated(
    situation: Situation, arn: str, actions: Sequence[str], resources: Sequence[str]
) -> Mapping[tuple[str, str], str]:
    """Return what is not allowed, and why: (action, resource) to a few words."""
    iam = situation.client("iam")
    denied: dict[tuple[str, str], str] = {}
    more: dict[str, Any] = {"ResourceArns": list(resources)} if resources else {}
    for start in range(0, len(actions), CHUNK):
        pages = iam.get_paginator("simulate_principal_policy").paginate(
            PolicySourceArn=arn, ActionNames=list(actions[start : start + CHUNK]), **more
        )
        for page in pages:
            for result in page["EvaluationResults"]:
                for action, resource, decision in _decisions(result):
                    if decision != "allowed":
                        denied[action, resource] = _why(decision, result)
    return denied


def _decisions(result: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    action = result["EvalActionName"]
    specific: list[dict[str, Any]] = result.get("ResourceSpecificResults") or []
    for row in specific:
        yield action, row["EvalResourceName"], row["EvalResourceDecision"]
    if not specific:
        yield action, result.get("EvalResourceName", "*"), result["EvalDecision"]


def _why(decision: str, result: Mapping[str, Any]) -> str:
    if not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
        return "forbidden by a service control policy of the organization"
    if not result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True):
        return "forbidden by its permissions boundary"
    return "explicitly denied by a policy" if decision == "explicitDeny" else "no policy allows it"
