"""`ultracluster cost --spent`: what Cost Explorer has beside the estimate."""

from __future__ import annotations

import datetime as dt
import sys

from ultracluster.account.aws import AccountError
from ultracluster.account.spending import spending
from ultracluster.cli import accounts
from ultracluster.cli import cost_spent as printed
from ultracluster.cli.environments import refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.cli.terminal import coloured, width
from ultracluster.config import Environment
from ultracluster.plan.cost import Estimate
from ultracluster.plan.cost_summary import document


def print_spent(
    config: Environment, found: Estimate, first: dt.date, profile: str | None, as_json: bool, markdown: bool
) -> None:
    """Print what was spent beside the estimate."""
    account = accounts.open_account(config, profile)
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
