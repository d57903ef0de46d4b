"""`ultracluster cost`: what an environment costs, with the age of every price."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.cost_document import as_document
from ultracluster.cli.cost_text import as_markdown, as_text
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    refuse,
)
from ultracluster.operations.billed import billed
from ultracluster.operations.cost import estimate

if TYPE_CHECKING:
    from ultracluster.config import Environment
    from ultracluster.operations.live_prices import LivePrices

PIPED = 100
"""Columns where there is no terminal to ask."""


def cost(
    environment: EnvironmentArgument,
    as_json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Ask AWS for prices; they win over ours.")] = False,
    days: Annotated[
        int | None,
        typer.Option(
            min=1, max=1096, help="Length of Capacity Blocks and training plans, in days.", show_default=False
        ),
    ] = None,
    accept_expired: Annotated[
        bool, typer.Option("--accept-expired", help="Sum prices past their date, too.")
    ] = False,
    profile: ProfileOption = None,
    today: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Estimate what an environment costs per hour, day and month: list prices, USD, without tax.

    A price is taken to hold for 90 days from its date; later it is shown, not summed. What has no known price
    is named. --live needs `pricing:GetProducts` and `ec2:DescribeSpotPriceHistory`. Exit code 2: bad input.
    """
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    try:
        on = dt.date.fromisoformat(today) if today else dt.date.today()
    except ValueError:
        refuse(f"--today {today}: write a day as 2026-11-21")
    config = load_environment(environment)
    asked = _ask(config, profile, on) if live else None
    found = estimate(
        config,
        today=on,
        days=days,
        accept_expired=accept_expired,
        live=asked.figures if asked else None,
        faults=asked.faults if asked else (),
    )
    if as_json:
        sys.stdout.write(json.dumps(as_document(found), indent=2) + "\n")
    elif markdown:
        sys.stdout.write(as_markdown(found))
    else:
        terminal = sys.stdout.isatty()
        sys.stdout.write(as_text(found, _width(terminal), colour=terminal))


def _ask(config: Environment, profile: str | None, today: dt.date) -> LivePrices:
    from rich.console import Console
    from rich.status import Status

    from ultracluster.operations.aws import Account, AccountError
    from ultracluster.operations.live_prices import live_prices

    try:
        account = Account(region=config.region, profile=profile)
    except AccountError as error:
        refuse(str(error))
    keys = [item.key for item in billed(config) if item.key]
    with Status("asking AWS for prices", console=Console(stderr=True)) as status:
        return live_prices(
            account,
            keys,
            zone_id=config.network.zone_id,
            today=today,
            asking=lambda key: status.update(f"asking AWS for the price of {key}"),
        )


def _width(terminal: bool) -> int:
    if terminal:
        from rich.console import Console

        return Console().width
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) else PIPED
