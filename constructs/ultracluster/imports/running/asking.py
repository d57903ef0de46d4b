"""Which clusters of a name there are: each service is asked, and what could not be asked is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ultracluster.account.aws import (
    AWS_ERRORS,
    Account,
    AccountError,
    code,
    existing,
    explain,
    is_credentials,
    message,
)
from ultracluster.catalog import region
from ultracluster.config.kubernetes import Eks
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.plain_text import one_line

HYPERPOD = "hyperpod"
PARALLELCLUSTER, PCS, EKS = ParallelCluster().kind, Pcs().kind, Eks().kind
_TITLES = {
    HYPERPOD: "SageMaker HyperPod",
    PARALLELCLUSTER: "AWS ParallelCluster",
    PCS: "AWS PCS",
    EKS: "Amazon EKS",
}
KINDS = tuple(_TITLES)
"""Services that are asked, in this order."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_NONE = {"ResourceNotFound", "ResourceNotFoundException"}
PCLUSTER_VERSION, PCLUSTER_NAME = "parallelcluster:version", "parallelcluster:cluster-name"
"""Tags of the stack of a cluster of ParallelCluster 3 (pcluster/constants.py)."""


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster of one service."""

    kind: str
    answer: dict[str, Any]
    """What the service says of it: the cluster, or the stack of ParallelCluster."""


def find(account: Account, name: str, kind: str | None = None) -> Found:
    """The one cluster of this name.

    Args:
        kind: ask only this service.

    Raises:
        AccountError: there is none, there are several, or it cannot be told.
    """
    if not _NAME.fullmatch(name):
        raise AccountError(
            f"{one_line(name)!r} is no name of a cluster: letters, digits, - and _, as AWS lists them"
        )
    if kind and kind not in KINDS:
        raise AccountError(f"--kind {one_line(kind)} is none of {', '.join(KINDS)}")
    found: list[Found] = []
    refused: list[str] = []
    for one in (kind,) if kind else KINDS:
        try:
            answer = _ASK[one](account, name) if _is_offered(account, one) else None
        except AWS_ERRORS as error:
            if is_credentials(error):
                raise AccountError(explain(error)) from None
            refused.append(f"{_TITLES[one]} could not be asked: {explain(error)}")
            continue
        if answer is not None:
            found.append(Found(one, answer))
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(_TITLES[one.kind] for one in found)
        choices = " or ".join(f"--kind {one.kind}" for one in found)
        raise AccountError(f"{name} is a cluster of {names} in {account.region}: pass {choices}")
    where = _TITLES[kind] if kind else "HyperPod, ParallelCluster, PCS and EKS"
    lines = [f"there is no cluster {name} of {where} in {account.region}", *refused]
    raise AccountError("; ".join(lines) + "; another Region is --region, another account --profile")


def _is_offered(account: Account, kind: str) -> bool:
    """False where the service is known not to be in the Region: it would not even have an address."""
    home = region(account.region)
    if home is None:
        return True
    return {HYPERPOD: home.hyperpod, PCS: home.pcs}.get(kind) is not False


def _hyperpod(account: Account, name: str) -> dict[str, Any] | None:
    sagemaker = account.client("sagemaker")
    return _answered(lambda: sagemaker.describe_cluster(ClusterName=name))


def _eks(account: Account, name: str) -> dict[str, Any] | None:
    eks = account.client("eks")
    return _answered(lambda: eks.describe_cluster(name=name)["cluster"])


def _pcs(account: Account, name: str) -> dict[str, Any] | None:
    pcs = account.client("pcs")
    return _answered(lambda: pcs.get_cluster(clusterIdentifier=name)["cluster"])


def _stack(account: Account, name: str) -> dict[str, Any] | None:
    """The stack of a cluster of ParallelCluster 3, which has the cluster's name."""
    cloudformation = account.client("cloudformation")
    answer = _answered(lambda: cloudformation.describe_stacks(StackName=name)) or {}
    for stack in answer.get("Stacks", []):
        if any(tag.get("Key") == PCLUSTER_VERSION for tag in stack.get("Tags", [])):
            return dict(stack)
    return None


def _answered(call: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Return an answer, or None where the service says that there is no such cluster."""
    try:
        return existing(call, *_NONE)
    except AWS_ERRORS as error:
        if "not found" in message(error) and code(error) == "ValidationException":
            return None
        raise


_ASK: dict[str, Callable[[Account, str], dict[str, Any] | None]] = {
    HYPERPOD: _hyperpod,
    PARALLELCLUSTER: _stack,
    PCS: _pcs,
    EKS: _eks,
}
