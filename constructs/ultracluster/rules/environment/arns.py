"""Rules on: the ARNs of a file, wherever they stand."""

from __future__ import annotations

from ultracluster.catalog import Region
from ultracluster.config import Environment
from ultracluster.config.base import is_token
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import anywhere, ask
from ultracluster.rules.arn_values import arns
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV

MAY_BE_ELSEWHERE: frozenset[YamlPath] = frozenset(
    {("observability", "workspace", "arn"), ("observability", "workspace", "role_arn")}
)
"""What is reached over the network, in any Region and account: rules OBS002 and OBS003 speak of it."""
_NOBODY = "111122223333"
"""The account of AWS's documentation: what `init` writes for an ARN that nobody has yet names it."""
_ARNS = "IAM User Guide: Amazon Resource Names (ARNs)"


@ENV.error(12, _ARNS)
def arn_region(environment: Environment, home: Region) -> Breaches:
    """Each ARN belongs to the environment's Region."""
    for path, arn in arns(environment):
        _, partition, service, where, *_ = arn.split(":")
        if partition != home.partition:
            yield at(*path).breach(
                f"the ARN is of the partition `{partition}`, and {home.name} belongs to "
                f"`{home.partition}`. Partitions share neither accounts nor resources.",
                ask("fact", f"an ARN that begins with arn:{home.partition}:{service}:{home.name}:"),
            )
        elif where and where != home.name and path not in MAY_BE_ELSEWHERE:
            yield at(*path).breach(
                f"the ARN is of {where}, and the environment is in {home.name}. What is deployed "
                f"in one Region cannot use what {service} has in another.",
                ask("fact", f"an ARN that begins with arn:{partition}:{service}:{home.name}:"),
            )


@ENV.error(13, f"{_ARNS}; EKS API reference, CreateAccessEntry", "2026-11-27", until_acknowledged=True)
def arn_account(environment: Environment) -> Breaches:
    """Each ARN belongs to the environment's account."""
    if not environment.account:
        return
    for path, arn in arns(environment):
        owner = arn.split(":")[4]
        if owner not in ("", "aws", environment.account) and path not in MAY_BE_ELSEWHERE:
            yield at(*path).breach(
                f"the ARN is of account {owner}, and the environment is deployed to "
                f"{environment.account}. AWS denies the use unless {owner} shares the resource: by "
                "the policy of the key or secret, or by AWS Resource Access Manager.",
                ask("fact", f"an ARN of {environment.account}, or acknowledge with where it is shared"),
            )


@ENV.warning(34, f"{_ARNS}; EKS API reference, CreateAccessEntry", "2026-11-27")
def account_named_with_arns(environment: Environment) -> Breaches:
    """A file with ARNs of an account should name that account."""
    vpc = environment.network.vpc
    if environment.account or (vpc and is_token(vpc.id)):  # an app has its account elsewhere
        return
    owners = {
        arn.split(":")[4]: path
        for path, arn in reversed(list(arns(environment)))
        if path not in MAY_BE_ELSEWHERE
    }
    for owner in ("", "aws", _NOBODY):
        owners.pop(owner, None)
    if not owners:
        return
    names, (first, *_) = ", ".join(sorted(owners)), owners.values()
    yield at(*first).breach(
        f"the file has ARNs of account {names} and no `account`: with credentials of another account AWS "
        "refuses what the ARN names, in the middle of the deploy.",
        anywhere({("account",): next(iter(owners))}) if len(owners) == 1 else ask("decision", "`account`"),
    )
