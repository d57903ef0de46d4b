"""Which services say for whose account they assume a role (IAM User Guide, "The confused deputy problem")."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal


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
    file = Path(__file__).parent / "service_trusts.json"
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["services"]
    return MappingProxyType({row["service"]: ServiceTrust(**row) for row in rows})
