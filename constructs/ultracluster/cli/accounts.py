"""The account that an environment lives in. The SDK of AWS is slow to import: only what asks AWS does it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import typer

from ultracluster.account import aws
from ultracluster.account.stack_outputs import stack_outputs
from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import Wishes, hand_over, is_terminal
from ultracluster.config import Environment
from ultracluster.config.plain_text import one_line


def open_account(environment: Environment, profile: str | None) -> aws.Account:
    """The environment's account in its Region; otherwise one line on standard error, and exit code 2.

    Where the file names no account, a command that changes something asks which one is meant.
    """
    try:
        account = aws.Account(region=environment.region, profile=profile)
        identity = aws.check_account(account, environment)
    except aws.AccountError as error:
        refuse(str(error))
    if Wishes.changes:
        _check_meant(environment, account, identity)
    return account


def _check_meant(environment: Environment, account: aws.Account, identity: aws.Identity) -> None:
    """Refuse credentials of an account that neither the file nor a person names."""
    if Wishes.account not in ("", identity.account):
        refuse(
            f"Nothing changed: --account is {Wishes.account}, and these credentials "
            f"({one_line(identity.arn)}) belong to {identity.account}. Choose a profile with "
            "--profile or AWS_PROFILE"
        )
    if environment.account or Wishes.account:
        return
    name = aws.alias(account)
    named = identity.account + (f" ({one_line(name)})" if name else "")
    said = f"{environment.file or environment.name} names no account. These credentials belong to {named}"
    if not is_terminal(sys.stdin):
        refuse(
            f'Nothing changed: {said}. Write `account: "{identity.account}"` into the file, or pass '
            f"--account {identity.account}"
        )
    typer.echo(f"{said}, Region {account.region}, as {one_line(identity.arn)}.", err=True)
    hand_over()
    try:
        agreed = typer.confirm(f"Run `{Wishes.changes}` in account {identity.account}?", err=True)
    except typer.Abort:
        agreed = False
        typer.echo("", err=True)
    if not agreed:
        refuse("Not confirmed: nothing changed.")
    Wishes.account = identity.account


def open_outputs(
    environment: Environment, profile: str | None, stacks: Sequence[str]
) -> tuple[aws.Account, Mapping[str, Mapping[str, str]]]:
    """The environment's account, and the outputs of those stacks that are deployed, by stack."""
    account = open_account(environment, profile)
    try:
        return account, stack_outputs(account, stacks)
    except aws.AccountError as error:
        refuse(str(error))
