"""Who rows speak of: nodes, pods, functions, services, administrators, strangers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

from iam_proof.world import OF_AWS, STRANGER, Principal, World, session_of
from ultracluster.account.environment_policy import Deployed, environment_policy
from ultracluster.cli.environment_rights import actions_of
from ultracluster.config.users import User
from ultracluster.model import resolve

ALICE = "alice"
PARALLELCLUSTER = {"controller": "HeadPolicy", "login": "LoginPolicy", "compute": "NodePolicy"}
"""Part of the logical id of the policy that ParallelCluster attaches to the roles of these nodes."""


def people(words: str, world: World, at: str | None = None) -> list[Principal]:
    """Callers by the words of a row; each role once, whoever shares it.

    Args:
        words: one or more, with spaces between them; with `?` those that there may be.

            - `nodes`, or a role of theirs: `controller`, `login`, `compute`, `system`
            - `pods`, or `pod:<service account>`; `functions`, or `function:<part of stack/logical id>`
            - `web:<service account>`: one that takes its role with a token of the cluster, whose
              `identity-provider` vouches for it
            - `flow-logs`, `control-plane`, `grafana`, `jobs`: roles of these names
            - `service:<name>`: a service that calls for itself, for this account
            - `linked:<path>`: a service-linked role of which nothing is known; `serving:<path>`: one whose
              own policy allows everything
            - `people`, `operators`, `buyers`: with the policy of `ultracluster permissions ENV people`, `read
              act`, or `read buy`
            - `user:<role>`: a role of this name with the policy of `people --user alice`, whose only
              principal is the role `alice`; `ssh:<role>`: the same with `--ssh`
            - `administrator`, `stranger`: may do everything by their own policies, here or in another account
            - `anybody`: unsigned; `of-aws`: signed by an account of AWS's own
        at: where they call from, if not where they usually do.

    Raises:
        LookupError: nobody in the environment is called that.
    """
    found: dict[str, Principal] = {}
    for word in words.split():
        some = list(_one(word.removesuffix("?"), world))
        if not some and not word.endswith("?"):
            raise LookupError(f"{world.name} has no {word}")
        for one in some:
            found.setdefault(f"{one.arn} {one.own}", replace(one, at=at or one.at))
    return list(found.values())


def nodes(world: World) -> dict[str, list[Principal]]:
    """By the role of their group: controller, login, compute, system."""
    found: dict[str, list[Principal]] = {}
    for group, principal in _groups(world):
        if group in world.config.node_groups:
            many = found.setdefault(world.config.node_groups[group].role, [])
            many += [] if principal.arn in [one.arn for one in many] else [principal]
    return found


def pods(world: World) -> dict[str, Principal]:
    """By service account."""
    found: dict[str, Principal] = {}
    for _, mine in world.each("AWS::EKS::Addon", "AWS::EKS::PodIdentityAssociation"):
        for one in [mine] if "ServiceAccount" in mine else mine.get("PodIdentityAssociations", []):
            found[one["ServiceAccount"]] = world.of_role(one["RoleArn"], f"pods of {one['ServiceAccount']}")
    return found


def web_pods(world: World) -> dict[str, tuple[Principal, str]]:
    """By service account those that take a role with a token of the cluster, and the name of the account in
    full."""
    found: dict[str, tuple[Principal, str]] = {}
    for stack, logical, _ in world.resolved.resources("AWS::IAM::Role"):
        document = world.resolved.properties(stack, logical)["AssumeRolePolicyDocument"]
        if isinstance(document, str):
            (subject,) = re.findall(r"system:serviceaccount:[\w-]+:[\w-]+", document)
            account = subject.rpartition(":")[2]
            arn = world.resolved.attribute(stack, logical, "Arn")
            found[account] = (world.of_role(arn, f"pods of {account}"), subject)
    return found


def functions(world: World) -> dict[str, Principal]:
    """By `stack/logical id`; those in the VPC call through its endpoints."""
    found: dict[str, Principal] = {}
    for stack, logical, _ in world.resolved.resources("AWS::Lambda::Function"):
        mine = world.resolved.properties(stack, logical)
        at = "vpc" if mine.get("VpcConfig") else "aws"
        group = mine.get("LoggingConfig", {}).get("LogGroup")
        group = group or f"/aws/lambda/{world.resolved.ref(stack, logical)}"
        arn = f"arn:aws:logs:{world.region}:{world.account}:log-group:{group}"
        one = world.of_role(mine["Role"], f"function {logical}", at)
        found[f"{stack}/{logical}"] = replace(one, own={"own_log_group": [arn]})
    return found


def _one(word: str, world: World) -> Iterator[Principal]:
    kind, _, name = word.partition(":")
    match kind:
        case "nodes":
            yield from (one for many in nodes(world).values() for one in many)
        case "controller" | "login" | "compute" | "system":
            yield from nodes(world).get(kind, [])
        case "pods" | "pod":
            yield from (one for account, one in pods(world).items() if name in ("", account))
        case "web":
            yield web_pods(world)[name][0]
        case "functions" | "function":
            yield from (one for path, one in functions(world).items() if name in path)
        case "identity-provider":
            for stack, logical, _ in world.resolved.resources("AWS::IAM::OIDCProvider"):
                arn = world.resolved.attribute(stack, logical, "Arn")
                yield Principal(label="tokens of the cluster", arn=arn, account=world.account, at="aws")
        case "flow-logs":
            for _, mine in world.each("AWS::EC2::FlowLog"):
                yield world.of_role(mine["DeliverLogsPermissionArn"], "flow logs", "aws")
        case "jobs":
            for one in world.roles.values():
                if "JobRole" in one.label:
                    yield replace(one, label="users' jobs")
        case "people" | "operators" | "buyers":
            arn = f"arn:aws:iam::{world.account}:role/{kind}"
            yield session_of(arn, kind, identity=(_policy(world, kind),), at="internet")
        case "user" | "ssh":
            arn = f"arn:aws:iam::{world.account}:role/{name}"
            yield session_of(arn, f"the user {name}", identity=(_policy(world, kind),), at="internet")
        case "grafana":
            for _, mine in world.each("AWS::Grafana::Workspace"):
                yield world.of_role(mine["RoleArn"], "Grafana", "aws")
        case "control-plane":
            for _, mine in world.each("AWS::EKS::Cluster"):
                yield world.of_role(mine["RoleArn"], "control plane", "aws")
        case _:
            yield _of_no_template(kind, name, world)


def _of_no_template(kind: str, name: str, world: World) -> Principal:
    ours, full = f"arn:aws:iam::{world.account}:role", ("everything",)
    match kind:
        case "service":
            return Principal(label=name, arn=name, at="aws")
        case "linked" | "serving":
            own = full if kind == "serving" else ()
            return session_of(f"{ours}/aws-service-role/{name}", f"the role {name}", identity=own, at="aws")
        case "administrator":
            return session_of(f"{ours}/administrator", "an administrator", identity=full, at="internet")
        case "stranger":
            return session_of(
                f"arn:aws:iam::{STRANGER}:role/stranger", "a stranger", identity=full, at="internet"
            )
        case "of-aws":
            return session_of(f"arn:aws:iam::{OF_AWS}:role/service", "AWS itself", identity=full, at="vpc")
        case "anybody":
            return Principal(label="anybody, unsigned", arn=None, at="internet")
        case _:
            raise LookupError(f"nobody is called {kind}")


def _policy(world: World, kind: str) -> str:
    """Name of the policy that the command prints for those who use an environment, or operate it."""
    name = f"{world.name}: permissions for {kind}"
    if name not in world.policies:
        account = json.loads(files("ultracluster.account").joinpath("permissions.json").read_text())
        groups = {"operators": ("read", "act"), "buyers": ("read", "buy")}.get(kind, ("people",))
        actions = {group: actions_of(account, group) for group in groups}
        clusters = world.resolved.resources("AWS::SageMaker::Cluster")
        arns = [world.resolved.attribute(stack, logical, "ClusterArn") for stack, logical, _ in clusters]
        known = Deployed(account=world.account, cluster_arn=next(iter(arns), ""))
        user = {"user": ALICE} if kind in ("user", "ssh") else {}
        alice = User(uid=2001, principals=(f"arn:aws:iam::{world.account}:role/{ALICE}",))
        config = world.config.model_copy(update={"users": {ALICE: alice} if user else {}})
        statements = environment_policy(resolve(config), actions, known, **user, ssh=kind == "ssh")
        world.policies[name] = {"Version": "2012-10-17", "Statement": statements}
    return name


def _groups(world: World) -> Iterator[tuple[str, Principal]]:
    """(name of the group, who its nodes are)."""
    if world.config.orchestrator.kind == "parallelcluster":
        yield from _parallelcluster(world)
    for _, mine in world.each("AWS::SageMaker::Cluster"):
        for group in [*mine.get("InstanceGroups", []), *mine.get("RestrictedInstanceGroups", [])]:
            yield group["InstanceGroupName"], world.of_role(group["ExecutionRole"], "nodes")
    profiles = _profiles(world)
    for _, mine in world.each("AWS::PCS::ComputeNodeGroup"):
        yield mine["Name"], world.of_role(profiles[mine["IamInstanceProfileArn"]], "nodes")
    for _, mine in world.each("AWS::EKS::Nodegroup"):
        yield mine["Labels"]["ultracluster/node-group"], world.of_role(mine["NodeRole"], "nodes")


def _parallelcluster(world: World) -> Iterator[tuple[str, Principal]]:
    """ParallelCluster makes the roles; the policies that we attach are all that the templates tell."""
    ours = {
        logical: world.resolved.ref(stack, logical)
        for stack, logical, _ in world.resolved.resources("AWS::IAM::ManagedPolicy")
        if world.resolved.properties(stack, logical).get("Path") == "/parallelcluster/"
    }
    for group, one in world.config.node_groups.items():
        mine = [arn for logical, arn in ours.items() if PARALLELCLUSTER[one.role] in logical]
        path = f"parallelcluster/{world.config.name}/{world.config.name}-{one.role}-0123456789AB"
        yield (
            group,
            session_of(f"arn:aws:iam::{world.account}:role/{path}", "nodes", identity=tuple(mine), at="vpc"),
        )


def _profiles(world: World) -> dict[str, str]:
    """ARN of the role by that of its instance profile."""
    by_name = {arn.rpartition("/")[2]: arn for arn in world.roles}
    return {
        world.resolved.attribute(stack, logical, "Arn"): by_name[
            world.resolved.properties(stack, logical)["Roles"][0]
        ]
        for stack, logical, _ in world.resolved.resources("AWS::IAM::InstanceProfile")
    }
