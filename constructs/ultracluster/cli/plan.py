"""`ultracluster plan`: what an environment is made of, as text, Markdown, JSON, a picture or a page."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    load_file,
    refuse,
    refuse_file,
)
from ultracluster.cli.file_output import check_html, write_html
from ultracluster.cli.json_output import write_json
from ultracluster.cli.plan_markdown import as_markdown
from ultracluster.cli.plan_text import as_text, merged_facts
from ultracluster.cli.progress import working
from ultracluster.cli.terminal import coloured, remark
from ultracluster.config import InvalidEnvironmentError
from ultracluster.model import resolve
from ultracluster.plan.communication import Step, read_layout
from ultracluster.plan.environment_plan import plan as plan_of
from ultracluster.plan.price_file import prices_of, read_prices
from ultracluster.plan.training_model import parameters, size_text
from ultracluster.rules import enforce

if TYPE_CHECKING:
    from ultracluster.plan.environment_plan import Plan


def plan(
    environment: EnvironmentArgument,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="SIZE",
            help="Time a checkpoint of a model of this size: 8B, 70B, 1.8T.",
            show_default=False,
        ),
    ] = None,
    parallel: Annotated[
        str | None,
        typer.Option(
            "--parallel",
            metavar="LAYOUT",
            help="Estimate the communication of a step: dp=64,tp=8 (also fsdp, pp, ep, cp). Needs --model.",
            show_default=False,
        ),
    ] = None,
    tokens: Annotated[
        str, typer.Option("--tokens", metavar="SIZE", help="Tokens of a step, for --parallel.")
    ] = "4M",
    mfu: Annotated[
        float, typer.Option("--mfu", min=1, max=100, metavar="PERCENT", help="MFU, for --parallel.")
    ] = 40,
    precision: Annotated[
        str, typer.Option("--precision", metavar="bf16|fp8|fp4", help="Of matrix products, for --parallel.")
    ] = "bf16",
    active: Annotated[
        str | None,
        typer.Option(
            "--active",
            metavar="SIZE",
            help="Parameters that one token meets in a mixture of experts, for --parallel: 37B.",
            show_default=False,
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    as_json: JsonOption = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            help="Draw the cluster into this .svg or .png file, which is replaced.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page that a browser opens into this file, which is replaced.",
            show_default=False,
        ),
    ] = None,
    today: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Show what an environment is made of: nodes, fabric, storage, addresses, quotas, stacks, cost.

    Nothing is asked of AWS. Exit code 2: the environment breaks a rule, or an option cannot be used.
    """
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    try:
        size = None if model is None else parameters(model)
    except ValueError as error:
        refuse(f"--model: {error}")
    step = _step(parallel, size, tokens, mfu, precision, active)
    day = _day(today)
    if picture is not None and picture.suffix.lower() not in (".svg", ".png"):
        refuse(f"--picture {picture}: write a file that ends in .svg or .png")
    if html is not None:
        check_html(html)
    try:
        loaded = load_file(environment)
        warnings = enforce(loaded)
    except InvalidEnvironmentError as error:
        refuse_file(error.findings)
    prices = read_prices(prices_of(loaded.environment), today=day)
    try:
        found = plan_of(resolve(loaded.environment), size, day, warnings=warnings, prices=prices, step=step)
    except ValueError as error:
        refuse(f"--parallel {parallel}: {error}")
    if picture is not None:
        _draw(found, picture)
    if html is not None:
        _write_page(found, html, _on(day))
    if as_json:
        write_json("plan", found.document())
    elif markdown:
        sys.stdout.write(as_markdown(found))
    else:
        sys.stdout.write(as_text(found, terminal=sys.stdout.isatty(), colour=coloured()))


def _draw(plan: Plan, file: Path) -> None:
    from ultracluster.plan.picture import PictureError, save_picture  # 15 ms, for few plans

    try:
        with working("drawing"):
            save_picture(plan, file)
    except PictureError as error:
        refuse(f"--picture {file}: {error}")
    remark(f"drawn into {file}")


def _write_page(plan: Plan, file: Path, day: dt.date) -> None:
    from ultracluster.plan.page.plan_page import plan_page  # 20 ms, for few plans

    write_html(
        file, plan_page(plan, merged_facts(plan, rest_at="ultracluster plan --markdown names them"), day)
    )


def _step(
    parallel: str | None, size: float | None, tokens: str, mfu: float, precision: str, active: str | None
) -> Step | None:
    """The step of training that the options describe; None without a layout."""
    if parallel is None:
        return None
    if size is None:
        refuse(f"--parallel {parallel}: say how large the model is: --model 70B")
    option = "--parallel"
    try:
        layout = read_layout(parallel)
        option = "--tokens"
        number = parameters(tokens, "a number of tokens")
        option = "--active"
        met = size if active is None else parameters(active)
    except ValueError as error:
        refuse(f"{option}: {error}")
    if met > size:
        refuse(f"--active {active}: more than the model has; take {size_text(size)} or less")
    return Step(
        layout=layout, parameters=size, active=met, tokens=number, mfu=mfu / 100, precision=precision.lower()
    )


def _day(text: str | None) -> dt.date | None:
    try:
        return None if text is None else dt.date.fromisoformat(text)
    except ValueError:
        refuse(f"--today {text}: write a day as YYYY-MM-DD")


def _on(day: dt.date | None) -> dt.date:
    return day or dt.date.today()
