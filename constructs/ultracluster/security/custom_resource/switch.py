"""Switches deletion protection of an EKS cluster on or off, and waits until EKS has done it.

EKS takes one update of a cluster at a time: while a version, an endpoint or a log setting changes it answers
`ResourceInUseException`, also where `DescribeCluster` says ACTIVE (aws-controllers-k8s/community#1192,
aws/aws-cdk#33452). The call itself is an update, too, that `DescribeUpdate` follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import boto3  # pyright: ignore[reportMissingTypeStubs]
from answer import answer  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

PAUSE_S = 15
RESERVE_S = 60
"""Facts of Lambda's time that is kept for the answer to CloudFormation."""
BUSY = "ResourceInUseException"
GONE = "ResourceNotFoundException"


class NotSwitchedError(Exception):
    """The protection is not as it should be; the message says why, and what to do."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Switch it on when the resource is created or changed, off when it is deleted; answer CloudFormation."""
    named = event["ResourceProperties"]
    protected = event["RequestType"] != "Delete"
    end = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - RESERVE_S
    try:
        outcome = switch(_client("eks"), named["ClusterName"], protected=protected, end=end)
    except Exception as error:
        print(f"failed: {error}")  # noqa: T201 (the function's log)
        status, why = "FAILED", f"{error}"
    else:
        print(f"done: {outcome}")  # noqa: T201
        status, why = "SUCCESS", outcome
    answer(event, status, why, physical_id=f"deletion-protection-{named['ClusterName']}")


def switch(
    eks: Any,
    name: str,
    *,
    protected: bool,
    end: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Switch the protection of a cluster, and wait for it.

    Args:
        eks: a client of EKS.
        name: of the cluster.
        protected: what it should be.
        end: when to give up, by `clock`.
        clock: seconds.
        sleep: waits for seconds.

    Returns:
        What was done.

    Raises:
        NotSwitchedError: EKS was busy until the end, or the update failed.
    """

    def pause(why: str) -> None:
        if clock() + PAUSE_S >= end:
            raise NotSwitchedError(f"{why}; deploy again when it has ended (aws eks list-updates)")
        sleep(PAUSE_S)

    while True:
        try:
            # EKS refuses an update that changes nothing
            if eks.describe_cluster(name=name)["cluster"].get("deletionProtection", False) is protected:
                return "it was so already"
            update = eks.update_cluster_config(name=name, deletionProtection=protected)["update"]
        except Exception as error:
            code = _code(error)
            if code == GONE and not protected:
                return "the cluster is deleted"
            if code != BUSY:
                raise
            pause(f"EKS is busy with another change of {name}: {error}")
            continue
        return _finished(eks, name, update, pause)


def _finished(eks: Any, name: str, update: Mapping[str, Any], pause: Callable[[str], None]) -> str:
    """Wait for an update.

    Raises:
        NotSwitchedError: it failed, or took too long.
    """
    while update["status"] == "InProgress":
        pause(f"update {update['id']} of {name} is still in progress")
        update = eks.describe_update(name=name, updateId=update["id"])["update"]
    if update["status"] != "Successful":
        errors = (f"{one.get('errorCode')}: {one.get('errorMessage')}" for one in update.get("errors", []))
        why = "; ".join(errors) or "EKS gives no reason"
        raise NotSwitchedError(f"update {update['id']} of {name} is {update['status']}: {why}")
    return "switched"


def _code(error: Exception) -> str:
    """The code of an error of AWS's; empty for any other."""
    response = cast("Mapping[str, Any]", getattr(error, "response", {}))
    return str(response.get("Error", {}).get("Code", ""))


def _client(service: str) -> Any:
    return cast("Any", boto3).client(service)
