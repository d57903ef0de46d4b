"""Deletion protection that is on: what it refuses, and what goes all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ultracluster.change.changes import Change, Verdict
from ultracluster.change.template import Template, as_mapping, as_text, resources_of
from ultracluster.model.stack_guards import EKS_SWITCH

_CALLS: Final = {"AWS::RDS::DBInstance": "modifyDBInstance", "AWS::EKS::Cluster": "updateClusterConfig"}
"""The call with which a custom resource switches the protection of a type on."""
_SOURCE: Final = (
    "RDS User Guide: Deleting a DB instance; EKS User Guide: Protect EKS clusters from accidental deletion; "
    "CloudFormation User Guide: Understand stack update behaviors (2026-11-22)"
)
_LEFT: Final = (
    " In its clean-up CloudFormation deletes what it can, the secret with the database's password among it "
    "(unless it is retained), and leaves the database, which nothing manages then."
)


def with_deletion_protection(changes: list[Change], before: Mapping[str, Template]) -> list[Change]:
    """The same changes; those that deletion protection refuses say so, and what to do."""
    return [_told(change, before) if _would_delete(change) else change for change in changes]


def _would_delete(change: Change) -> bool:
    kind = change.resource_type
    return kind in _CALLS and change.verdict in (Verdict.REPLACED, Verdict.DATA_LOSS) and not change.refused


def _told(change: Change, before: Mapping[str, Template]) -> Change:
    if not _is_on(change, before):
        return change
    left = _LEFT if change.resource_type == "AWS::RDS::DBInstance" else ""
    text = (
        f"AWS refuses this: deletion protection is on, and is not switched off by this change in time.{left} "
        "Deploy `protect: false` first (it has to be accepted by name), switch the protection off (delete "
        f"the stack `<environment>-protection`), then this. Without the protection: {change.reason}"
    )
    return replace(change, reason=text, source=_SOURCE, refused=True)


def _is_on(change: Change, before: Mapping[str, Template]) -> bool:
    own = resources_of(before.get(change.stack, {})).get(change.logical_id, {})
    if as_mapping(own.get("Properties")).get("DeletionProtection") in (True, "true"):
        return True
    return any(
        _protects(one, change.resource_type)
        for template in before.values()
        for one in resources_of(template).values()
    )


def _protects(resource: Mapping[str, object], kind: str) -> bool:
    of = as_text(resource.get("Type"))
    if of == EKS_SWITCH:
        return kind == "AWS::EKS::Cluster"
    return of.startswith("Custom::AWS") and switches_on(resource, _CALLS[kind])


def guards_data(properties: object) -> bool:
    """Whether a custom resource of single calls keeps data: deletion protection, or the policy of a stack."""
    resource = {"Properties": properties}
    return switches_on(resource) or "setStackPolicy" in json.dumps(
        as_mapping(properties).get("Create"), default=str
    )


def switches_on(resource: Mapping[str, object], call: str = "") -> bool:
    """Whether a custom resource of single calls switches deletion protection on.

    Args:
        call: of the service; by default any.
    """
    text = json.dumps(as_mapping(resource.get("Properties")).get("Create"), default=str).lower()
    found = text.replace("\\", "").replace(" ", "")
    calls = [call] if call else list(_CALLS.values())
    return '"deletionprotection":true' in found and any(f'"{one}"'.lower() in found for one in calls)
