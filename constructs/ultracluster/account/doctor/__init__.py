"""What is wrong with a deployed environment: every source asked, every answer matched with known failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from ultracluster.account.aws import AWS_ERRORS, Account, message
from ultracluster.account.doctor.examination import BUDGET, STACK, Examination, Fact, Inquiry, Source, said
from ultracluster.account.doctor.hyperpod import examine_hyperpod
from ultracluster.account.doctor.instances import examine_instances
from ultracluster.account.doctor.kubernetes import examine_kubernetes
from ultracluster.account.doctor.metrics import examine_metrics
from ultracluster.catalog.node_faults import generations_of
from ultracluster.model import Cluster

__all__ = ["Examination", "Fact", "Source", "collected", "examine", "put_questions", "stacks_of"]

_SUCCESS = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE")


def examine(
    account: Account,
    cluster: Cluster,
    *,
    hours: int = 72,
    nodes: Mapping[str, str] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Callable[[str], None] = lambda step: None,
    budget: float = BUDGET,
    also: Callable[[Inquiry, datetime], object] = lambda inquiry, since: None,
) -> Examination:
    """Ask every source of a deployed environment, side by side.

    Args:
        hours: how far back events and logs are read.
        nodes: instances whose logs are read whatever their state, also when they are gone: group by id.
        progress: called with the name of each source that is waited for.
        budget: seconds for all of them; one that has not answered by then is a row that says so.
        also: asks further sources, of the same time.
    """
    inquiry = Inquiry(progress, budget)
    since = now() - timedelta(hours=hours)
    put_questions(account, cluster, inquiry, since, nodes or {})
    also(inquiry, since)
    return collected(inquiry, cluster)


def put_questions(
    account: Account, cluster: Cluster, inquiry: Inquiry, since: datetime, nodes: Mapping[str, str]
) -> None:
    """Put every question of `examine`; others may be put beside them."""
    for stack in stacks_of(cluster):
        inquiry.ask(f"{STACK}{stack}", lambda name=stack: _stack(account, name, since))
    if cluster.traits.hyperpod:
        examine_hyperpod(account, cluster, inquiry, since, nodes)
    else:
        examine_instances(account, cluster, inquiry, since)
    if cluster.traits.kubernetes:
        examine_kubernetes(account, cluster, inquiry, since)
    examine_metrics(account, cluster, inquiry)


def collected(inquiry: Inquiry, cluster: Cluster) -> Examination:
    """Return the answers that came in time, with what their matches depend on."""
    found = inquiry.collect()
    found.generations = generations_of(
        group.type.accelerator.name
        for group in cluster.in_service.values()
        if group.type and group.type.accelerator
    )
    return found


def stacks_of(cluster: Cluster) -> list[str]:
    """Every stack of an environment, with the one that its service makes by itself."""
    own = [cluster.cluster_name] if cluster.traits.own_stack else []
    return [*cluster.environment.stack_names, *own]


def _stack(account: Account, name: str, since: datetime) -> list[Fact] | None:
    """Failed events of the last operation; what a later success has fixed is past."""
    cloudformation = account.client("cloudformation")
    facts: list[Fact] = []
    try:
        for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=name):
            for event in page["StackEvents"]:
                status = event.get("ResourceStatus", "")
                itself = event.get("PhysicalResourceId") == event["StackId"]
                if (itself and status in _SUCCESS) or event["Timestamp"] < since:
                    return facts
                reason = event.get("ResourceStatusReason", "")
                rolled_back = itself and status.endswith("ROLLBACK_COMPLETE")
                if not (rolled_back or status.endswith("_FAILED")) or "cancelled" in reason.lower():
                    continue  # what was cancelled only follows from another failure
                where = f"{event.get('LogicalResourceId', '')} ({event.get('ResourceType', '')})"
                facts.append(Fact(f"stack {name}", where, said(status, reason), "error", event["Timestamp"]))
    except AWS_ERRORS as error:
        if "does not exist" in message(error):
            return None
        raise
    return facts
