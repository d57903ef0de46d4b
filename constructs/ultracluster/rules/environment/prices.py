"""Rules on: the prices of a team's own."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.config.remedy import drop
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV


@ENV.warning(
    19, "this package: docs/cost.md", "2026-11-22", by_hand="ultracluster cost <environment> --refresh"
)
def price_file_exists(environment: Environment) -> Breaches:
    """The file of prices that is named exists."""
    if environment.prices and not (environment.file.parent / environment.prices).is_file():
        yield at("prices").breach(
            f"{environment.prices} does not exist: costs are estimated with the shipped prices.",
            drop().noting(f"or write it: ultracluster cost {environment.asked_as} --refresh"),
        )
