"""Rules on: what a company's rules for its accounts ask for, whatever the orchestrator."""

from __future__ import annotations

from ultracluster.catalog import Region
from ultracluster.config import Environment
from ultracluster.config.governance import Governance
from ultracluster.config.remedy import ask
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GOV


@GOV.error(
    1, "IAM User Guide: Permissions boundaries for IAM entities; Amazon Resource Names (ARNs)", "2026-11-22"
)
def permissions_boundary(governance: Governance, home: Region, environment: Environment) -> Breaches:
    """The permissions boundary is a policy of the environment's partition and account, or one of AWS's."""
    if not governance.permissions_boundary:
        return
    _, partition, _, _, owner, _ = governance.permissions_boundary.split(":", 5)
    wanted = f"an ARN that begins with arn:{home.partition}:iam::{environment.account or '<account>'}:policy/"
    if partition != home.partition:
        yield at("permissions_boundary").breach(
            f"the policy is of the partition `{partition}`, and {home.name} belongs to `{home.partition}`: "
            "IAM would refuse every role.",
            ask("fact", wanted),
        )
    elif environment.account and owner not in (environment.account, "aws"):
        yield at("permissions_boundary").breach(
            f"the policy is of account {owner}, and the roles are made in {environment.account}: IAM takes a "
            "boundary of the role's own account only.",
            ask("fact", wanted),
        )
