"""The account that `ultracluster software lock --for` asks for the images which nodes boot."""

from __future__ import annotations

import typer

from ultracluster.account import aws
from ultracluster.cli.accounts import open_account
from ultracluster.config import Environment
from ultracluster.supply.boot_images import asks


def asked_account(config: Environment, profile: str | None) -> aws.Account | None:
    """Who resolves images; None where nothing has to be resolved, or AWS cannot be asked."""
    if not asks(config):
        return None
    if profile:
        return open_account(config, profile)
    try:
        account = aws.Account(region=config.region)
        aws.check_account(account, config)
    except aws.AccountError as error:
        typer.echo(f"skipped    images: not asked ({error})", err=True)
        return None
    return account
