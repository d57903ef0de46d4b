"""A running cluster, asked of its account, for `ultracluster import --cluster`."""

from __future__ import annotations

from typing import Any

from ultracluster.account import aws
from ultracluster.cli.report import refuse
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.running.imported import imported
from ultracluster.imports.surroundings import Asked


def running_cluster(
    cluster: str, asked: Asked, kind: str | None, region: str | None, profile: str | None, parameters: Any
) -> Drafted:
    """The cluster as a draft; exit code 2 where it cannot be asked.

    Args:
        parameters: content of its provisioning_parameters.json, if there is one.
    """
    try:
        return imported(aws.Account(region=region, profile=profile), cluster, asked, kind, parameters)
    except aws.AccountError as error:
        refuse(str(error))
