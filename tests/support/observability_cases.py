"""Settings of observability that break no rule, to be changed."""

from __future__ import annotations

from typing import Any

WORKSPACE = "arn:aws:aps:{}:{}:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
ADMIN = "12345678-90ab-cdef-1234-567890abcdef"
SAML = {"authentication": "SAML", "admins": ["platform"], "saml_metadata_url": "https://id.example.com/m"}


def asks(**changes: Any) -> dict[str, Any]:
    """Observability with somebody who is told, and these changes."""
    return {"observability": {"alerts": {"emails": ["oncall@example.com"]}, **changes}}


def grafana(**changes: Any) -> dict[str, Any]:
    """The same with a Grafana that somebody may enter."""
    return asks(grafana={"admins": [ADMIN], **changes})
