"""`ultracluster prices`: the prices that a team asks AWS for and commits next to its environments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.cost import ask, day
from ultracluster.cli.environments import (
    JsonOption,
    ProfileOption,
    complete_environment,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.plan.price_file import prices_of, read_prices, write_prices

if TYPE_CHECKING:
    from ultracluster.catalog.prices import Figure
    from ultracluster.cli.documents.figures import PriceChange, PriceUpdate

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Prices of a team's own.")


@app.callback()
def _prices() -> None:  # pyright: ignore[reportUnusedFunction]  # keeps `update` a command of its own
    pass


@app.command()
def update(
    environments: Annotated[
        list[Path],
        typer.Argument(
            help="Environment files, or names of some in environments/.",
            show_default=False,
            autocompletion=complete_environment,
        ),
    ],
    profile: ProfileOption = None,
    as_json: JsonOption = False,
    today: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Ask AWS what the environments are billed for, and write their prices.csv. Commit it: it wins.

    Lines that AWS does not answer stay as they are, those written by hand among them. Needs
    `pricing:GetProducts` and `ec2:DescribeSpotPriceHistory`. Exit code 1: AWS answered nothing, as
    without credentials, and the file is untouched; 2: bad input, or a prices.csv that is damaged.
    """
    on = day(today)
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
            _write(path, [*(files[path].figures | new).values()])
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
            _tell(path, new, files[path].figures)
        for fault in open_questions:
            typer.echo(fault, err=True)
    if not any(answers.values()):
        typer.echo("AWS answered nothing: no file is changed", err=True)
        raise typer.Exit(1)


def _write(path: Path, figures: list[Figure]) -> None:
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


def _tell(path: Path, new: dict[tuple[str, str], Figure], known: dict[tuple[str, str], Figure]) -> None:
    for place, one in sorted(new.items()):
        before = known.get(place)
        same = before is not None and before.usd == one.usd
        was = "as before" if same else f"was {before.usd:g}" if before else "new"
        typer.echo(f"{one.key} in {one.region}: {one.usd:g} USD per {one.unit}, {was}")
    if new:
        kept = len(known.keys() - new.keys())
        rest = f", {kept} lines kept" if kept else ""
        typer.echo(f"{path}: {len(new)} prices asked{rest}; commit it next to the environments")
