"""The environments of a folder beside the stacks that the account has."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from ultracluster.account.aws import AWS_ERRORS, Account, check_account, is_denied
from ultracluster.account.doctor import Fact, stacks_of
from ultracluster.account.doctor.examination import Inquiry
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.status.drift import stack_state, state_of
from ultracluster.account.status.rows import StackState
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.model import Cluster

BUDGET = 10.0
"""Seconds for all sources."""
STACKS = "CloudFormation DescribeStacks"
_BAD = ("FAILED", "ROLLBACK_COMPLETE")
_WELL = "UPDATE_ROLLBACK_COMPLETE"

State = Literal["deployed", "in part", "at work", "failed", "not deployed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One environment: of the folder, of the account, or of both."""

    name: str
    file: str | None
    """Null: the account has stacks with its tag, and no file of the folder has its name."""
    orchestrator: str | None = None
    region: str | None = None
    account: str | None = None
    """Account that was asked; else the one that the file names."""
    state: State = "unknown"
    """`in part`: some of its stacks are there; `unknown`: it could not be asked."""
    stacks: int | None = None
    """Stacks that are there."""
    stacks_wanted: int | None = None
    changed: datetime | None = None
    """Last change of a stack."""
    running: int | None = None
    """Nodes that run."""
    nodes_wanted: int | None = None
    """The sum of `count` in the file."""
    why: str = ""
    """Reason for a state, or for what could not be asked."""
    sources: tuple[str, ...] = ()
    """Calls behind the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """An environment file of the folder."""

    name: str
    file: str
    cluster: Cluster | None
    why: str = ""
    """Why it is no environment."""


def overview(
    files: Sequence[Filed],
    open_account: Callable[[str], Account],
    *,
    clock: Callable[[], float] = time.monotonic,
    budget: float = BUDGET,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Listed]:
    """Ask each Region of the files for stacks, and each environment that has some for its nodes.

    Args:
        open_account: the account of these credentials in a Region.
        clock: seconds of a clock that never goes back.
        budget: seconds for all sources.
        progress: called with the name of each source that is waited for.
    """
    clusters = [one.cluster for one in files if one.cluster]
    accounts: dict[str, Account] = {}
    stacks: dict[str, dict[str, list[StackState]]] = {}
    running: dict[str, int] = {}
    inquiry = Inquiry(progress, budget, clock)

    def region_stacks(region: str) -> list[Fact]:
        account = open_account(region)
        account.identity()
        own = [one for one in clusters if one.environment.region == region]
        stacks[region] = _by_environment(account, own)
        accounts[region] = account
        return []

    def nodes(cluster: Cluster) -> list[Fact]:
        account = accounts[cluster.environment.region]
        check_account(account, cluster.environment)
        fleet = Fleet(account, cluster)
        running[cluster.name] = sum(node.status.lower() == "running" for node in fleet.nodes)
        return []

    for region in dict.fromkeys(one.environment.region for one in clusters):
        listed = inquiry.ask(region, lambda region=region: region_stacks(region))
        for cluster in (one for one in clusters if one.environment.region == region):
            inquiry.ask(
                f"nodes of {cluster.name}",
                lambda cluster=cluster: nodes(cluster),
                needs=[listed],
                when=lambda cluster=cluster: bool(_own(stacks, cluster)) and _fits(accounts, cluster),
            )
    found = {source.name: source for source in inquiry.collect().sources}
    silent = {name: source.why for name, source in found.items() if source.state != "read"}
    rows = [_row(one, silent, stacks, accounts, running) for one in files]
    return [*rows, *_strays(files, silent, stacks, accounts)]


def _by_environment(account: Account, clusters: Iterable[Cluster]) -> dict[str, list[StackState]]:
    """Stacks by the environment in their tag; those without one by the name that a file gives them."""
    named = {stack: one.name for one in clusters for stack in stacks_of(one)}
    found: dict[str, list[StackState]] = defaultdict(list)
    try:
        for page in account.client("cloudformation").get_paginator("describe_stacks").paginate():
            for stack in page["Stacks"]:
                tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}
                name = tags.get(ENVIRONMENT_TAG) or named.get(stack["StackName"])
                if name and "ParentId" not in stack:
                    found[name].append(state_of(stack))
    except AWS_ERRORS as error:
        if not is_denied(error):
            raise
        return _by_name(account, named)  # a policy of `permissions ENVIRONMENT` allows its own stacks only
    return found


def _by_name(account: Account, named: Mapping[str, str]) -> dict[str, list[StackState]]:
    """Stacks that have the name of one of a file."""
    found: dict[str, list[StackState]] = defaultdict(list)
    for stack, name in named.items():
        if state := stack_state(account, stack):
            found[name].append(state)
    return found


def _own(stacks: Mapping[str, Mapping[str, list[StackState]]], cluster: Cluster) -> list[StackState]:
    return stacks.get(cluster.environment.region, {}).get(cluster.name, [])


def _fits(accounts: Mapping[str, Account], cluster: Cluster) -> bool:
    account = accounts.get(cluster.environment.region)
    return account is not None and cluster.environment.account in (None, account.identity().account)


def _row(
    one: Filed,
    silent: Mapping[str, str],
    stacks: Mapping[str, Mapping[str, list[StackState]]],
    accounts: Mapping[str, Account],
    running: Mapping[str, int],
) -> Listed:
    cluster = one.cluster
    if cluster is None:
        return Listed(name=one.name, file=one.file, why=one.why)
    environment = cluster.environment
    row = Listed(
        name=cluster.name,
        file=one.file,
        orchestrator=cluster.settings.kind,
        region=environment.region,
        account=environment.account,
        stacks_wanted=len(stacks_of(cluster)),
        nodes_wanted=sum(group.settings.count for group in cluster.groups.values()),
    )
    if environment.region in silent:
        return replace(row, why=silent[environment.region])
    asked = accounts[environment.region].identity().account
    if not _fits(accounts, cluster):
        return replace(
            row, why=f"the credentials belong to {asked}: choose a profile of {environment.account}"
        )
    own = _own(stacks, cluster)
    source = f"nodes of {cluster.name}"
    asked_nodes = source in silent or cluster.name in running
    return replace(
        row,
        account=asked,
        state=_state(own, stacks_of(cluster)),
        stacks=len(own),
        changed=max((stack.since for stack in own if stack.since), default=None),
        running=None if source in silent else running.get(cluster.name),
        why=f"nodes: {silent[source]}" if source in silent else "",
        sources=(STACKS, "nodes of its service") if asked_nodes else (STACKS,),
    )


def _state(stacks: Sequence[StackState], wanted: Sequence[str]) -> State:
    states = [stack.status for stack in stacks]
    if not states:
        return "not deployed"
    if any(one.endswith(_BAD) and one != _WELL for one in states):
        return "failed"
    if any(one.endswith("_IN_PROGRESS") and not one.startswith("REVIEW") for one in states):
        return "at work"
    there = {stack.name for stack in stacks}
    return "deployed" if there >= set(wanted) else "in part"


def _strays(
    files: Sequence[Filed],
    silent: Mapping[str, str],
    stacks: Mapping[str, Mapping[str, list[StackState]]],
    accounts: Mapping[str, Account],
) -> list[Listed]:
    """Environments of the account, in these Regions, that have no file."""
    known = {(one.cluster.environment.region, one.cluster.name) for one in files if one.cluster}
    return [
        Listed(
            name=name,
            file=None,
            region=region,
            account=accounts[region].identity().account,
            state=_state(own, []),
            stacks=len(own),
            changed=max((stack.since for stack in own if stack.since), default=None),
            why="no file of this folder has its name",
            sources=(STACKS,),
        )
        for region, by_name in stacks.items()
        if region not in silent
        for name, own in sorted(by_name.items())
        if (region, name) not in known
    ]
