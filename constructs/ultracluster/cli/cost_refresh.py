"""`ultracluster cost --live` and `--refresh`: prices that AWS is asked for."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultracluster.account import aws
from ultracluster.account.live_prices import live_prices
from ultracluster.cli.environments import load_environment, refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.plan.billed import billed
from ultracluster.plan.price_file import prices_of, read_prices, write_prices

if TYPE_CHECKING:
    from ultracluster.account.live_prices import LivePrices
    from ultracluster.catalog.prices import Figure
    from ultracluster.cli.documents.figures import PriceChange, PriceUpdate


def ask(config: Environment, profile: str | None, today: dt.date) -> LivePrices:
    """The prices of everything that an environment is billed for, asked of AWS."""
    try:
        account = aws.Account(region=config.region, profile=profile)
    except aws.AccountError as error:
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


def refresh_prices(environments: list[Path], profile: str | None, on: dt.date, *, as_json: bool) -> None:
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
