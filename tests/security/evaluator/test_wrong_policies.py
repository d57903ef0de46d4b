"""Policies as they could have been written wrongly: the tables find each of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from iam_proof.environments import rows_for
from iam_proof.evaluator import Evaluator
from iam_proof.people import nodes, people
from iam_proof.verdicts import verdicts
from iam_proof.world import FULL_ACCESS, OPEN_TO_ALL, STRANGER, World

Worlds = Callable[[str], tuple[World, World]]
Statement = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """One policy, changed, and the row that must find it."""

    name: str
    policy: Callable[[World], str]
    change: Callable[[list[Statement]], list[Statement]]
    row: str


def of_node(role: str) -> Callable[[World], str]:
    return lambda world: nodes(world)[role][0].identity[-1]


def of_trust(role: str) -> Callable[[World], str]:
    return lambda world: world.by_resource[str(nodes(world)[role][0].role)]


def of_caller(word: str) -> Callable[[World], str]:
    return lambda world: people(word, world)[0].identity[-1]


def of_resource(part: str) -> Callable[[World], str]:
    return lambda world: next(name for arn, name in world.by_resource.items() if part in name)


def of_endpoint(service: str) -> Callable[[World], str]:
    return lambda world: world.endpoints[service][2]


def with_more(*actions: str, resource: str = "*") -> Callable[[list[Statement]], list[Statement]]:
    return lambda all_: [*all_, {"Effect": "Allow", "Action": list(actions), "Resource": resource}]


def without(text: str) -> Callable[[list[Statement]], list[Statement]]:
    return lambda all_: [one for one in all_ if text not in str(one)]


def without_conditions(all_: list[Statement]) -> list[Statement]:
    return [{key: value for key, value in one.items() if key != "Condition"} for one in all_]


def everything(_: list[Statement]) -> list[Statement]:
    return list(OPEN_TO_ALL["Statement"])


def only_through(endpoint: str) -> Callable[[list[Statement]], list[Statement]]:
    refused = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": "*",
        "Condition": {"StringNotEquals": {"aws:SourceVpce": endpoint}},
    }
    return lambda all_: [*all_, refused]


WRONG = {
    "nodes do not decrypt": Wrong(
        name="prod",
        policy=of_node("compute"),
        change=without("kms:Decrypt"),
        row="nodes fetch the scripts that their template names",
    ),
    "nodes make interfaces anywhere": Wrong(
        name="prod",
        policy=of_node("compute"),
        change=with_more("ec2:CreateNetworkInterface", "ec2:CreateNetworkInterfacePermission"),
        row="HyperPod's nodes make no interfaces elsewhere",
    ),
    "nodes put any metric": Wrong(
        name="dev",
        policy=of_node("compute"),
        change=without_conditions,
        row="no node puts metrics into namespaces of others",
    ),
    "people start every document of AWS": Wrong(
        name="prod",
        policy=of_caller("people"),
        change=with_more("ssm:StartSession", resource="arn:aws:ssm:*:*:document/AWS-*"),
        row="nobody who uses a cluster carries SSH without the right to it",
    ),
    "SSH for whoever has the policy": Wrong(
        name="prod",
        policy=of_caller("ssh:alice"),
        change=without_conditions,
        row="another role with the policy of a user carries no SSH",
    ),
    "a role for whoever asks SageMaker": Wrong(
        name="prod",
        policy=of_trust("compute"),
        change=without_conditions,
        row="services that work for other accounts assume no roles",
    ),
    "a role for everybody": Wrong(
        name="prod",
        policy=of_trust("compute"),
        change=lambda all_: [{**one, "Principal": {"AWS": "*"}} for one in all_],
        row="other accounts assume none of our roles",
    ),
    "a bucket without TLS": Wrong(
        name="prod",
        policy=of_resource("ScriptsPolicy"),
        change=without("aws:SecureTransport"),
        row="nobody reaches buckets without TLS, not even whoever administers the account",
    ),
    "a bucket that only the VPC reaches": Wrong(
        name="prod",
        policy=of_resource("DataPolicy"),
        change=only_through("vpce-0123456789abcdef0"),
        row="data repositories read and write the bucket that was made for them",
    ),
    "a bucket for another account": Wrong(
        name="dev",
        policy=of_resource("ScriptsPolicy"),
        change=lambda _: [
            {"Effect": "Allow", "Principal": {"AWS": STRANGER}, "Action": "s3:Get*", "Resource": "*"}
        ],
        row="other accounts reach none of our buckets",
    ),
    "a key that logs cannot use": Wrong(
        name="prod",
        policy=of_resource("Key"),
        change=without("CloudWatchLogs"),
        row="CloudWatch Logs encrypts log groups",
    ),
    "a key for everybody": Wrong(
        name="prod",
        policy=of_resource("Key"),
        change=without_conditions,
        row="other accounts use none of our keys",
    ),
    "an endpoint for S3 with AWS's default": Wrong(
        name="prod",
        policy=of_endpoint("s3"),
        change=everything,
        row="closed. a stranger's credentials reach no bucket of theirs",
    ),
    "an endpoint for S3 that forgets ECR": Wrong(
        name="prod",
        policy=of_endpoint("s3"),
        change=without("starport"),
        row="layers of images come from ECR's bucket",
    ),
    "an endpoint for S3 that looks at callers only": Wrong(
        name="prod",
        policy=of_endpoint("s3"),
        change=lambda all_: [
            *all_,
            {
                "Effect": "Allow",
                "Principal": "*",
                "Action": "*",
                "Resource": "*",
                "Condition": {"StringEquals": {"aws:PrincipalAccount": "111122223333"}},
            },
        ],
        row="closed. our credentials reach no bucket of a stranger",
    ),
    "an endpoint for logs with AWS's default": Wrong(
        name="prod",
        policy=of_endpoint("logs"),
        change=everything,
        row="closed. a stranger's credentials write no logs",
    ),
    "an endpoint for sessions that refuses all": Wrong(
        name="prod",
        policy=of_endpoint("ssmmessages"),
        change=lambda all_: [{**one, "Effect": "Deny"} for one in all_],
        row="SSM Agent opens the channels of sessions",
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_policy_is_found(wrong: Wrong, evaluator: Evaluator, worlds: Worlds) -> None:
    world, neighbour = worlds(wrong.name)
    (row,) = (one for one in rows_for(wrong.name) if one.row == wrong.row)
    policy = wrong.policy(world)
    document = copy.deepcopy(dict(world.policies[policy]))
    changed = {**document, "Statement": wrong.change(document["Statement"])}
    assert changed != document and policy != FULL_ACCESS

    right = verdicts(world, evaluator, [row], others=[neighbour])[row.row]
    found = verdicts(world, evaluator, [row], others=[neighbour], instead={policy: changed})[row.row]

    assert not right.surprises
    assert found.surprises and not any(one.wrong for one in found.outcomes)
