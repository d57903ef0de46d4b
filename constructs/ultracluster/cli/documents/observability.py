"""The document of `ultracluster apply observability`."""

from __future__ import annotations

from typing import Literal, TypedDict


class ObservabilityRow(TypedDict):
    """One thing outside of CloudFormation."""

    kind: Literal["data source", "folder", "board", "administrator", "extension", "token"]
    name: str
    action: Literal["create", "update", "same", "keep", "none", "retry", "delete", "wait"]
    """`keep`: a person's own work, which is left as it is."""
    state: Literal["planned", "done", "same", "kept", "failed", "not tried", "under way"]
    details: list[str]
    """What differs, or what went wrong, in words."""


class GrafanaWorkspace(TypedDict):
    id: str
    url: str
    version: str


class ObservabilityApplied(TypedDict):
    environment: str
    grafana: GrafanaWorkspace | None
    """Null where the environment has no Grafana."""
    applied: bool
    """Whether anything was asked for; false in a dry run, and where nothing differs."""
    rows: list[ObservabilityRow]
    notes: list[str]
