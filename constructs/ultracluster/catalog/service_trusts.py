"""Which services say for whose account they assume a role (IAM User Guide, "The confused deputy problem")."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

from ultracluster.catalog.files import catalog_file, table


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTrust:
    """One service that assumes roles of ours."""

    service: str
    """As in trust policies: `eks.amazonaws.com`."""
    says: Literal["always", "unknown", "never"]
    """Whether it sends `aws:SourceAccount`. Unknown is not never."""
    arn: str | None
    """What `aws:SourceArn` is like, with `{partition}`, `{region}` and `{account}`; None: unknown before."""
    why: str
    """Of the two above."""
    source: str
    """What AWS has published of it."""


@cache
def service_trusts() -> Mapping[str, ServiceTrust]:
    """All services that roles of ours trust, by name; read-only."""
    rows = table(ServiceTrust, catalog_file("service_trusts")["services"])
    return MappingProxyType({row.service: row for row in rows})
