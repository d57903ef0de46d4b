"""`ultracluster cost`: what an environment costs, with the age of every price."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.cost_text import as_markdown, as_text
from ultracluster.cli.environments import (
    JsonOption,
    ProfileOption,
    complete_environment,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.terminal import coloured, width
from ultracluster.model import resolve
from ultracluster.plan.cost import estimate
from ultracluster.plan.cost_summary import document
from ultracluster.plan.price_file import prices_of, read_prices


def cost(
    environments: Annotated[
        list[Path],
        typer.Argument(
            help="An environment file, or the name of one in environments/; several with --refresh.",
            show_default=False,
            autocompletion=complete_environment,
        ),
    ],
    as_json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Ask AWS for prices; they override all others.")
    ] = False,
    refresh: Annotated[
        bool,
        typer.Option(
            "--refresh",
            help="Save AWS's current prices to prices.csv, and nothing else. Commit that file: it overrides "
            "the shipped prices.",
        ),
    ] = False,
    days: Annotated[
        int | None,
        typer.Option(
            min=1, max=1096, help="Length of Capacity Blocks and training plans, in days.", show_default=False
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 1 unless everything has its own price of the last 90 days."),
    ] = False,
    spent: Annotated[
        bool,
        typer.Option("--spent", help="Ask Cost Explorer what was spent; AWS bills 0.01 USD."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            "--from",
            help="First day of --spent, or begin of --by; 30 days ago by default.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="user|team|job",
            help="Ask the scheduler what jobs held, and print node-hours and money by this.",
            autocompletion=lambda: ["user", "team", "job"],
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="End of --by; now by default.", show_default=False)
    ] = None,
    user: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="USER",
            help="With --by on Slurm: as this user of the environment.",
            show_default=False,
        ),
    ] = "",
    profile: ProfileOption = None,
    today: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Estimate what an environment costs per hour, day and month: list prices, USD, without tax.

    Everything that has a price is in the estimate, marked where it is old, undated, derived or of another
    Region; what has none is named. The strict sum has the unmarked ones only. Prices in prices.csv next to
    the environment file (--refresh) override the shipped ones. --live and --refresh need
    `pricing:GetProducts`, `ec2:DescribeSpotPriceHistory` and
    `savingsplans:DescribeSavingsPlansOfferingRates`, --spent `ce:GetCostAndUsage`, which shows the
    cost of the whole account. --by reads Slurm's accounting in your session, or pods of Kubernetes; its
    rows add up to what all nodes cost in the time, with the row `idle` for what no job held. Exit code 1:
    --strict, and a price is marked, missing or cannot be used; --refresh, and AWS answered nothing; 2: bad
    input, a damaged prices.csv, or Cost Explorer or the scheduler cannot be asked.
    """
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    on = day(today)
    if refresh:
        if live or strict or spent or since or days or markdown or by:
            refuse("--refresh writes prices.csv and prints no estimate: leave the options of one out")
        from ultracluster.cli.cost_refresh import refresh_prices  # 0.3 s: the SDK

        refresh_prices(environments, profile, on, as_json=as_json)
        return
    environment, *others = environments
    if others:
        refuse(f"too many arguments: {' '.join(map(str, others))}; several environments go with --refresh")
    use = None
    if by or until or user:
        from ultracluster.cli.cost_usage import use_of  # 0.3 s: the SDK

        if spent or strict:
            refuse("--by is what jobs held at list prices: leave --spent and --strict out")
        use = use_of(by, since, until, user, on if today else None)
    elif since is not None and not spent:
        refuse("--since goes with --spent, or with --by")
    first = _first_day(None if use else since, on)
    config = load_environment(environment)
    given = read_prices(prices_of(config), today=on)
    own, faults = dict(given.figures), list(given.faults)
    if live:
        from ultracluster.cli.cost_refresh import ask  # 0.3 s: the SDK

        asked = ask(config, profile, on)
        own |= asked.table
        faults += asked.faults
    cluster = resolve(config)
    found = estimate(cluster, today=on, days=days, own=own, faults=faults)
    if use:
        use.print(cluster, found, profile, as_json=as_json, markdown=markdown)
    elif spent:
        from ultracluster.cli.cost_account import print_spent  # 0.3 s: the SDK

        print_spent(config, found, first, profile, as_json, markdown)
    elif as_json:
        write_json("cost", document(found))
    elif markdown:
        sys.stdout.write(as_markdown(found))
    else:
        sys.stdout.write(as_text(found, width(), colour=coloured()))
    if strict and not found.complete:
        marked = [line.item.what for line in found.standing if line.mark]
        why = f"{len(marked)} of {len(found.standing)} lack one: {'; '.join(marked)}" if marked else faults[0]
        typer.echo(f"--strict: not everything has its own price of the last 90 days; {why}", err=True)
        raise typer.Exit(1)


def _first_day(since: str | None, today: dt.date) -> dt.date:
    """The first day of --spent, which Cost Explorer has to know."""
    if since is None:
        return today - dt.timedelta(days=30)
    from ultracluster.account.spending import OLDEST  # 0.1 s: the SDK

    try:
        first = dt.date.fromisoformat(since)
    except ValueError:
        refuse(f"--since {since}: write a day as {today - dt.timedelta(days=30)}")
    if first >= today:
        refuse(f"--since {since}: whole days before {today} are asked; the last is {today - dt.timedelta(1)}")
    if first < today - OLDEST:
        refuse(f"--since {since}: Cost Explorer goes back 13 months; the first day is {today - OLDEST}")
    return first


def day(text: str | None) -> dt.date:
    """The day of --today, else the current one."""
    try:
        return dt.date.fromisoformat(text) if text else dt.date.today()
    except ValueError:
        refuse(f"--today {text}: write a day as 2026-11-21")
