"""HyperPod's own collection on Slurm, the cluster extension `sagemaker-observability`: not in CloudFormation.

What an extension accepts is published nowhere, so its configuration is passed on as the file has it, and AWS
judges it. DescribeClusterExtension fills in the defaults, so a setting that the file does not name is not
compared (botocore 1.44.5, SageMaker: operations on cluster extensions).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from ultracluster.account.aws import Account, AccountError, existing, plain_errors
from ultracluster.account.nodes.hyperpod import LiveCluster, read_cluster
from ultracluster.config import Environment
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.plain_text import visible

NAME: Final = "sagemaker-observability"
EVERY: Final = 15.0
"""Seconds between two looks."""
BUSY: Final = frozenset({"Creating", "Updating", "Deleting"})
BROKEN: Final = frozenset({"Degraded", "CreateFailed", "UpdateFailed"})

Action = Literal["none", "create", "update", "retry", "delete", "wait", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the file asks for."""

    version: str | None = None
    """None: the newest when it is made, and whatever it has from then on."""
    configuration: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """What is wrong on some nodes."""

    code: str
    message: str
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The extension of a cluster, as AWS describes it."""

    arn: str
    version: str
    status: str
    configuration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    nodes: int = 0
    active: int = 0
    """Of them, with this version and configuration."""
    issues: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is to be done, and why."""

    action: Action
    why: str
    patch: Mapping[str, Any] | None = None
    """Settings that are sent; None: none are."""
    version: str | None = None
    """That is sent."""
    arn: str = ""
    """Of the extension; empty where there is none yet."""
    issues: tuple[Issue, ...] = ()


def wanted(environment: Environment) -> Wanted | None:
    """Return what an environment asks for; None where the extension has no business on its cluster."""
    observability = environment.observability
    if not isinstance(environment.orchestrator, HyperPodSlurm) or observability is None:
        return None
    if observability.kind != "hyperpod":
        return None
    asked = observability.extension
    if asked is None:
        return Wanted()
    return Wanted(version=asked.version, configuration=asked.configuration)


def examine(account: Account, environment: Environment) -> tuple[LiveCluster, Step]:
    """The cluster, and what its extension needs.

    Raises:
        AccountError: the cluster or its extension cannot be read, or the cluster cannot have one.
    """
    cluster = read_cluster(account, environment.cluster_name)
    asked = wanted(environment)
    if asked and (cluster.eks or not cluster.continuous):
        raise AccountError(
            f"cluster {cluster.name} cannot have the extension {NAME}: it is only for Slurm with continuous "
            "provisioning (orchestrator.provisioning: continuous), which a cluster has from its creation"
        )
    found = None if cluster.eks or not cluster.continuous else find(account, cluster.arn)
    step = compare(asked, found)
    if step.action not in ("none", "wait") and cluster.status not in ("InService", "Updating"):
        raise AccountError(
            f"cluster {cluster.name} is {cluster.status}: wait until it is InService (ultracluster wait "
            f"{environment.name}), then apply again"
        )
    return cluster, step


def find(account: Account, cluster_arn: str) -> Found | None:
    """The extension of a cluster; None where there is none.

    Raises:
        AccountError: it cannot be read.
    """
    client = account.client("sagemaker")
    with plain_errors():
        pages = client.get_paginator("list_cluster_extensions").paginate(ClusterArn=cluster_arn)
        arns = [
            str(extension["ExtensionArn"])
            for page in pages
            for extension in page.get("Extensions", [])
            if extension["ExtensionName"] == NAME
        ]
        return _described(account, cluster_arn, arns[0]) if arns else None


def _described(account: Account, cluster_arn: str, arn: str) -> Found | None:
    sagemaker, absent = account.client("sagemaker"), ("ResourceNotFound", "ResourceNotFoundException")
    answer = existing(
        lambda: sagemaker.describe_cluster_extension(ClusterArn=cluster_arn, ExtensionArn=arn), *absent
    )
    if answer is None:
        return None  # it has gone since
    details, summary = answer["ExtensionDetails"], answer.get("NodeSummary", {})
    return Found(
        arn=arn,
        version=details["ExtensionVersion"],
        status=details["Status"],
        configuration=_settings(details.get("ConfigurationValues", "")),
        nodes=summary.get("TotalCount", 0),
        active=summary.get("ActiveCount", 0),
        issues=tuple(
            Issue(code=issue["Code"], message=visible(issue["Message"]), nodes=issue["NodeCount"])
            for issue in answer.get("Health", {}).get("Issues", [])
        ),
    )


def _settings(text: str) -> dict[str, Any]:
    try:
        read: object = json.loads(text or "{}")
    except ValueError:  # opaque to us: what cannot be read differs from what is wanted, and is sent again
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def compare(asked: Wanted | None, found: Found | None) -> Step:
    """Return what leads from what is there to what the file asks for."""
    if found is None:
        if asked is None:
            return Step(action="none", why=f"no extension {NAME}, and none is asked for")
        return Step(
            action="create",
            why=f"the cluster has no extension {NAME}",
            patch=asked.configuration or None,
            version=asked.version,
        )
    if found.status in BUSY and (asked or found.status == "Deleting"):
        return Step(
            action="wait",
            why=f"it is {found.status} ({found.active} of {found.nodes} nodes)",
            arn=found.arn,
            issues=found.issues,
        )
    if asked is None:
        return Step(
            action="delete", why="the file does not ask for it: nodes would collect twice", arn=found.arn
        )
    if found.status == "DeleteFailed":
        return Step(
            action="refuse",
            why="its deletion has failed; run aws sagemaker delete-cluster-extension, then apply again",
            arn=found.arn,
            issues=found.issues,
        )
    if asked.version and _number(asked.version) < _number(found.version):
        return Step(
            action="refuse",
            why=f"version {found.version} is there, and a version only goes upwards: write {found.version}, "
            "or delete the extension first, which gives it a new ARN",
            arn=found.arn,
        )
    patch = difference(asked.configuration, found.configuration)
    version = asked.version if asked.version and _number(asked.version) > _number(found.version) else None
    if patch or version:
        changes = [f"version {found.version} to {version}"] if version else []
        changes += [f"configuration: {', '.join(sorted(patch))}"] if patch else []
        return Step(
            action="update",
            why="; ".join(changes),
            patch=patch or None,
            version=version,
            arn=found.arn,
            issues=found.issues,
        )
    if found.status in BROKEN:
        return Step(
            action="retry",
            why=f"it is {found.status}: {found.active} of {found.nodes} nodes have it as the file asks; the "
            "others are tried again",
            arn=found.arn,
            issues=found.issues,
        )
    return Step(action="none", why=f"version {found.version} runs on {found.active} of {found.nodes} nodes")


def difference(asked: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7396) that makes every setting that is asked for so; others stay as they are.

    A `null` in the file resets a setting to its default. Whether it is there already cannot be seen, because
    defaults are filled in, so it is sent each time.
    """
    patch: dict[str, Any] = {}
    for name, value in asked.items():
        there = found.get(name)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            below = difference(cast("Mapping[str, Any]", value), cast("Mapping[str, Any]", there))
            if below:
                patch[name] = below
        elif value is None or value != there:
            patch[name] = value
    return patch


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def carry_out(
    account: Account, cluster_arn: str, step: Step, *, tags: Mapping[str, str] | None = None
) -> str:
    """Ask AWS for one step; gives the extension's ARN. A step that asks for nothing asks for nothing.

    Args:
        tags: of an extension that is made; adding them needs sagemaker:AddTags.

    Raises:
        AccountError: AWS refuses it.
    """
    client, request = account.client("sagemaker"), _request(cluster_arn, step)
    with plain_errors():
        match step.action:
            case "create":
                if tags:
                    request["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
                answer = client.create_cluster_extension(ExtensionName=NAME, **request)
            case "update" | "retry":
                answer = client.update_cluster_extension(ExtensionArn=step.arn, **request)
            case "delete":
                answer = client.delete_cluster_extension(ClusterArn=cluster_arn, ExtensionArn=step.arn)
            case "none" | "wait" | "refuse":
                return step.arn
    return str(answer["ExtensionArn"])


def _request(cluster_arn: str, step: Step) -> dict[str, Any]:
    request: dict[str, Any] = {"ClusterArn": cluster_arn}
    if step.patch is not None:
        request["ConfigurationValues"] = configuration_text(step.patch)
    if step.version:
        request["ExtensionVersion"] = step.version
    return request


def configuration_text(configuration: Mapping[str, Any]) -> str:
    """As the API takes it: 1 to 10,240 characters of JSON."""
    return json.dumps(configuration, separators=(",", ":"), ensure_ascii=False)


def follow(
    account: Account,
    cluster_arn: str,
    *,
    timeout: float = 3600.0,
    report: Callable[[Found], None] = lambda found: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Found | None:
    """Look until the extension is not busy any more, or `timeout` seconds have passed; None: it is gone.

    Args:
        report: called with each look.
        sleep: takes seconds; exchanged in tests.
        clock: seconds of a clock that never goes back.

    Raises:
        AccountError: it cannot be read any more; what was asked goes on all the same.
    """
    start = clock()
    while (found := find(account, cluster_arn)) is not None:
        report(found)
        if found.status not in BUSY or clock() - start >= timeout:
            break
        sleep(EVERY)
    return found
