"""Policies of VPC endpoints as plain statements (AWS PrivateLink Guide, "Control access to VPC endpoints").

They confine, and grant nothing: a request needs its role's permission as well. After aws-samples,
data-perimeter-policy-examples, with accounts where no organization is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ultracluster.catalog.aws_owned_resources import Registry, aws_owned_resources, registry_account
from ultracluster.model.endpoints import policy_kind
from ultracluster.model.perimeter import Perimeter

LONGEST_POLICY = 20_480
"""Characters of an endpoint's policy, white space included (AWS PrivateLink Guide)."""
GATEWAYS = ("s3", "dynamodb")
"""Services that always say whose resource is asked for."""
READ = ("s3:Get*", "s3:List*")
_REGISTRY = re.compile(r"\{registry:([a-z-]+)\}")

Statement = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an endpoint is; in an app these may be tokens of the CDK."""

    account: str
    region: str
    partition: str = "aws"
    flat_region: str | None = None
    """The Region's name without dashes; by default made of `region`, which is then no token."""
    known_region: str | None = None
    """The Region's name, where it is known before deploy."""


def endpoint_policy(service: str, perimeter: Perimeter, place: Place) -> Mapping[str, Any] | None:
    """The policy of the endpoint of one service.

    Args:
        service: as in `com.amazonaws.<region>.<service>`.
        perimeter: whose principals and resources pass.
        place: of the endpoint.

    Returns:
        None where AWS takes no policy for the service, or it is not known that it does.
    """
    kind = policy_kind(service)
    if kind is None:
        return None
    statements = list(_own(service, perimeter, place, resources=kind == "full"))
    if service == "s3":
        statements += _buckets(perimeter, place)
    statements += _of_aws(service, perimeter, place)
    return {"Version": "2012-10-17", "Statement": statements}


def length(policy: Mapping[str, Any]) -> int:
    """Characters of a policy, as CloudFormation sends it."""
    return len(json.dumps(policy, separators=(",", ":")))


def _own(service: str, perimeter: Perimeter, place: Place, *, resources: bool) -> Iterator[Statement]:
    """The perimeter's principals, and AWS's services on its behalf, to the perimeter's resources."""
    # a few actions of other services say of no account that the resource is its own
    equals = "StringEquals" if service in GATEWAYS else "StringEqualsIfExists"
    trusted: dict[str, tuple[str, str, Sequence[str]]] = {
        "Account": ("aws:PrincipalAccount", "aws:ResourceAccount", [place.account, *perimeter.accounts])
    }
    if perimeter.organization:
        trusted["Organization"] = ("aws:PrincipalOrgID", "aws:ResourceOrgID", [perimeter.organization])
    for name, (principal, resource, values) in trusted.items():
        condition: dict[str, Any] = {"StringEquals": {principal: list(values)}}
        if resources:
            _add(condition, equals, resource, values)
        yield _allow(f"Own{name}", ["*"], ["*"], condition)
    for name, (_, resource, values) in trusted.items():
        condition = {"Bool": {"aws:PrincipalIsAWSService": "true"}}
        if resources:
            _add(condition, equals, resource, values)
        yield _allow(f"AwsServicesFor{name}", ["*"], ["*"], condition)


def _buckets(perimeter: Perimeter, place: Place) -> Iterator[Statement]:
    for condition, name in _ours(perimeter, place):
        if perimeter.buckets:
            yield _allow(f"NamedBuckets{name}", ["s3:*"], _arns(perimeter.buckets, place), condition)
        if perimeter.read_buckets:
            yield _allow(f"ReadBuckets{name}", READ, _arns(perimeter.read_buckets, place), condition)
    if perimeter.readable_buckets:
        yield _allow("ReadableBuckets", READ, _arns(perimeter.readable_buckets, place))
    if perimeter.reads_anywhere:
        yield _allow("ReadAnyBucket", READ, ["*"])


def _of_aws(service: str, perimeter: Perimeter, place: Place) -> Iterator[Statement]:
    """Resources of AWS's own, those with the same actions and principals together."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in aws_owned_resources():
        if service in row.services and (perimeter.words is None or row.when in perimeter.words):
            arns = [_filled(resource, place) for resource in row.resources]
            found.setdefault((row.who, row.actions), []).extend(arns)
    for number, ((who, actions), arns) in enumerate(found.items(), start=1):
        resources = ["*"] if "*" in arns else list(dict.fromkeys(arns))
        if who == "anyone":
            yield _allow(f"OfAws{number}", actions, resources)
            continue
        for condition, name in _ours(perimeter, place):
            yield _allow(f"OfAws{number}{name}", actions, resources, condition)


def _ours(perimeter: Perimeter, place: Place) -> Iterator[tuple[dict[str, Any], str]]:
    """Conditions that each say "a principal of ours", with the end of the statement's name."""
    yield {"StringEquals": {"aws:PrincipalAccount": [place.account, *perimeter.accounts]}}, "Account"
    if perimeter.organization:
        yield {"StringEquals": {"aws:PrincipalOrgID": [perimeter.organization]}}, "Organization"


def _filled(resource: str, place: Place) -> str:
    resource = _REGISTRY.sub(lambda found: _registry(found[1], place), resource)
    return resource.format(
        partition=place.partition,
        region=place.region,
        account=place.account,
        flatregion=place.flat_region or place.region.replace("-", ""),
    )


def _registry(name: str, place: Place) -> str:
    """AWS's account; every account where the Region is not known: images are pulled, never pushed there."""
    return registry_account(cast("Registry", name), place.known_region) if place.known_region else "*"


def _arns(buckets: Sequence[str], place: Place) -> list[str]:
    return [f"arn:{place.partition}:s3:::{name}{end}" for name in buckets for end in ("", "/*")]


def _add(condition: dict[str, Any], operator: str, key: str, values: Sequence[str]) -> None:
    condition[operator] = {**condition.get(operator, {}), key: list(values)}


def _allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], condition: dict[str, Any] | None = None
) -> Statement:
    statement: Statement = {
        "Sid": sid,
        "Effect": "Allow",
        # gateway endpoints take no other principal: who it is, conditions say
        "Principal": "*",
        "Action": list(actions),
        "Resource": list(resources),
    }
    return {**statement, "Condition": condition} if condition else statement


__all__ = ["LONGEST_POLICY", "Place", "endpoint_policy", "length"]
