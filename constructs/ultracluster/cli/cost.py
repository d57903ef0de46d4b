"""`ultracluster cost`: what an environment costs, with the age of every price."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from ultracluster.cli.progress import working
from ultracluster.cli.terminal import coloured, width
from ultracluster.model import resolve
from ultracluster.plan.cost import estimate
from ultracluster.plan.cost_summary import document
from ultracluster.plan.price_file import prices_of, read_prices, write_prices

if TYPE_CHECKING:
    from ultracluster.account.live_prices import LivePrices
    from ultracluster.catalog.prices import Figure
    from ultracluster.cli.documents.figures import PriceChange, PriceUpdate
    from ultracluster.config import Environment
    from ultracluster.plan.cost import Estimate


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
        typer.Option("--since", help="First day of --spent; 30 days ago by default.", show_default=False),
    ] = None,
    profile: ProfileOption = None,
    today: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Estimate what an environment costs per hour, day and month: list prices, USD, without tax.

    Everything that has a price is in the estimate, marked where it is old, undated, derived or of another
    Region; what has none is named. The strict sum has the unmarked ones only. Prices in prices.csv next to
    the environment file (--refresh) override the shipped ones. --live and --refresh need
    `pricing:GetProducts`, `ec2:DescribeSpotPriceHistory` and
    `savingsplans:DescribeSavingsPlansOfferingRates`, --spent `ce:GetCostAndUsage`, which shows the
    cost of the whole account. Exit code 1: --strict, and a price is marked, missing or cannot be used;
    --refresh, and AWS answered nothing; 2: bad input, a damaged prices.csv, or Cost Explorer cannot be asked.
    """
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    on = day(today)
    if refresh:
        if live or strict or spent or since or days or markdown:
            refuse("--refresh writes prices.csv and prints no estimate: leave the options of one out")
        _refresh(environments, profile, on, as_json=as_json)
        return
    environment, *others = environments
    if others:
        refuse(f"too many arguments: {' '.join(map(str, others))}; several environments go with --refresh")
    first = _first_day(since, spent, on)
    config = load_environment(environment)
    given = read_prices(prices_of(config), today=on)
    own, faults = dict(given.figures), list(given.faults)
    if live:
        asked = ask(config, profile, on)
        own |= asked.table
        faults += asked.faults
    cluster = resolve(config)
    found = estimate(cluster, today=on, days=days, own=own, faults=faults)
    if spent:
        _spent(config, found, first, profile, as_json, markdown)
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


def _first_day(since: str | None, spent: bool, today: dt.date) -> dt.date:
    """The first day of --spent, which Cost Explorer has to know."""
    if since is None:
        return today - dt.timedelta(days=30)
    if not spent:
        refuse("--since goes with --spent")
    from ultracluster.account.spending import OLDEST  # with the SDK, which an estimate does without

    try:
        first = dt.date.fromisoformat(since)
    except ValueError:
        refuse(f"--since {since}: write a day as {today - dt.timedelta(days=30)}")
    if first >= today:
        refuse(f"--since {since}: whole days before {today} are asked; the last is {today - dt.timedelta(1)}")
    if first < today - OLDEST:
        refuse(f"--since {since}: Cost Explorer goes back 13 months; the first day is {today - OLDEST}")
    return first


def _spent(
    config: Environment, found: Estimate, first: dt.date, profile: str | None, as_json: bool, markdown: bool
) -> None:
    """Print what was spent beside the estimate."""
    from ultracluster.account.aws import AccountError
    from ultracluster.account.spending import spending
    from ultracluster.cli import cost_spent as printed
    from ultracluster.cli import environments

    account = environments.open_account(config, profile)
    try:
        with working("asking Cost Explorer"):
            spent = spending(account, config.name, first, found.today)
    except AccountError as error:
        refuse(str(error))
    if as_json:
        write_json("cost", {**document(found), "spent": printed.as_document(found, spent)})
    elif markdown:
        sys.stdout.write(printed.as_markdown(found, spent))
    else:
        sys.stdout.write(printed.as_text(found, spent, width(), colour=coloured()))


def day(text: str | None) -> dt.date:
    """The day of --today, else the current one."""
    try:
        return dt.date.fromisoformat(text) if text else dt.date.today()
    except ValueError:
        refuse(f"--today {text}: write a day as 2026-11-21")


def ask(config: Environment, profile: str | None, today: dt.date) -> LivePrices:
    """The prices of everything that an environment is billed for, asked of AWS."""
    from ultracluster.account.aws import Account, AccountError
    from ultracluster.account.live_prices import live_prices
    from ultracluster.plan.billed import billed

    try:
        account = Account(region=config.region, profile=profile)
    except AccountError as error:
        refuse(str(error))
    items = [item for item in billed(resolve(config), today) if item.key]
    keys = [item.key for item in items]
    for item in items:
        kind, _, name = item.key.partition(".")
        if kind == "ec2" and item.group and item.purchase == "on-demand":
            keys.append(f"savings-1y.{name}")
    with working("asking AWS for prices") as say:
        return live_prices(
            account,
            keys,
            zone_id=config.network.zone_id,
            today=today,
            asking=lambda key: say(f"asking AWS for the price of {key}"),
        )


def _refresh(environments: list[Path], profile: str | None, on: dt.date, *, as_json: bool) -> None:
    """Ask AWS what the environments are billed for, and write their prices.csv.

    Lines that AWS does not answer stay as they are, those written by hand among them.
    """
    configs = [load_environment(path) for path in environments]
    files = {path: read_prices(path, today=on) for path in map(prices_of, configs)}
    if faults := [fault for one in files.values() for fault in one.faults]:
        refuse("\n".join([*faults, "nothing written: correct these lines, or delete the file"]))
    answers: dict[Path, dict[tuple[str, str], Figure]] = {path: {} for path in files}
    open_questions: dict[str, None] = {}
    for config in configs:
        asked = ask(config, profile, on)
        answers[prices_of(config)] |= asked.table
        open_questions |= dict.fromkeys(asked.faults)
    for path, new in answers.items():
        if new:
            _write_prices(path, [*(files[path].figures | new).values()])
    if as_json:
        document: PriceUpdate = {
            "files": {
                str(path): [_change(one, files[path].figures) for _, one in sorted(new.items())]
                for path, new in answers.items()
            },
            "faults": list(open_questions),
        }
        write_json("prices", document)
    else:
        for path, new in answers.items():
            _tell_prices(path, new, files[path].figures)
        for fault in open_questions:
            typer.echo(fault, err=True)
    if not any(answers.values()):
        typer.echo("AWS answered nothing: no file is changed", err=True)
        raise typer.Exit(1)


def _write_prices(path: Path, figures: list[Figure]) -> None:
    try:
        write_prices(path, figures)
    except OSError as error:
        refuse(f"{path} cannot be written: {error.strerror}")


def _change(one: Figure, known: dict[tuple[str, str], Figure]) -> PriceChange:
    before = known.get((one.key, one.region))
    return {
        "key": one.key,
        "region": one.region,
        "per": one.unit,
        "before": before.usd if before else None,
        "usd": one.usd,
    }


def _tell_prices(
    path: Path, new: dict[tuple[str, str], Figure], known: dict[tuple[str, str], Figure]
) -> None:
    for place, one in sorted(new.items()):
        before = known.get(place)
        same = before is not None and before.usd == one.usd
        was = "as before" if same else f"was {before.usd:g}" if before else "new"
        typer.echo(f"{one.key} in {one.region}: {one.usd:g} USD per {one.unit}, {was}")
    if new:
        kept = len(known.keys() - new.keys())
        rest = f", {kept} lines kept" if kept else ""
        typer.echo(f"{path}: {len(new)} prices asked{rest}; commit it next to the environments")
