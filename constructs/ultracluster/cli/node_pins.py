"""`ultracluster nodes list --pins`: which release of HyperPod's image each group runs."""

from __future__ import annotations

from pathlib import Path

import typer

from ultracluster.account import software_pins
from ultracluster.account.aws import AccountError
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import load_environment, refuse
from ultracluster.cli.json_output import write_json
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve


def print_pins(environment: Path, groups: list[str], profile: str | None, *, as_json: bool) -> None:
    """Print the releases as lines of the file; exit code 1 where one is not known."""
    config = load_environment(environment)
    cluster = resolve(config)
    if not cluster.traits.hyperpod:
        refuse(
            "only HyperPod's image has releases of this form: elsewhere the file or its lock names an image"
        )
    account = open_account(config, profile)
    try:
        live = hyperpod_nodes.read_cluster(account, config.cluster_name)
    except AccountError as error:
        refuse(str(error))
    found = software_pins.pins(live, cluster.in_service, groups)
    if as_json:
        write_json("outcomes", {"outcomes": found})
    else:
        for one in found:
            if one.result != "would":
                typer.echo(one_line(f"{one.group}: {one.why}"), err=True)
        for line in software_pins.lines(found):
            typer.echo(line)
    raise typer.Exit(1 if any(one.bad for one in found) else 0)
