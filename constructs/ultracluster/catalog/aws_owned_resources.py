"""What belongs to AWS and must pass the VPC endpoints: rows of `endpoints.json`, with reason and source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from ultracluster.catalog.files import catalog_file, table
from ultracluster.catalog.hyperpod_eks import health_agent_account

Registry = Literal["eks-addons", "deep-learning-containers", "hyperpod"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsOwned:
    """What one statement of an endpoint's policy lets through."""

    services: tuple[str, ...]
    """Endpoints whose policies have it."""
    when: str
    """The word that must hold of a cluster, as in `endpoints.json`."""
    who: Literal["anyone", "ours"]
    """`anyone`: requests carry no principal of the account; `ours`: principals of the perimeter."""
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    """ARNs with `{partition}`, `{region}`, `{flatregion}`, `{account}` and `{registry:<name>}`."""
    why: str
    source: str
    unverified: bool = False
    """AWS does not say so in public."""


@cache
def aws_owned_resources() -> tuple[AwsOwned, ...]:
    """All rows, in the order of the file."""
    return table(AwsOwned, catalog_file("endpoints")["aws_owned"])


def registry_account(registry: Registry, region: str) -> str:
    """AWS's account that holds container images for a Region; that of most Regions for one not listed."""
    if registry == "hyperpod":
        return health_agent_account(region)
    row = catalog_file("endpoints")["registries"][registry]
    return row["accounts"].get(region, row["elsewhere"])
