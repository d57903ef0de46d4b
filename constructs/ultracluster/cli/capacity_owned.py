"""Capacity that the account holds, for `ultracluster move --to`."""

from __future__ import annotations

from ultracluster.account import aws
from ultracluster.capacity.owned import owned
from ultracluster.cli.report import refuse
from ultracluster.config import Environment
from ultracluster.moving import Bought


def owned_capacity(
    environment: Environment, capacity: str, region: str | None, profile: str | None
) -> Bought:
    """The reservation, block or plan of this id; exit code 2 where the account has none."""
    try:
        account = aws.Account(region=region or environment.region, profile=profile)
        aws.check_account(account, environment, elsewhere=True)
        return owned(account, capacity)
    except aws.AccountError as error:
        refuse(str(error))
