"""The rows of settings that do nothing under a condition."""

from __future__ import annotations

from typing import get_args

from ultracluster.catalog.effects import effects
from ultracluster.config.orchestrator import OrchestratorKind


def test_each_setting_stands_once_and_has_a_source() -> None:
    rows = effects()
    assert len({row.setting for row in rows}) == len(rows)
    assert all(row.source and row.date and not row.why.endswith(".") for row in rows)
    assert {kind for row in rows for kind in row.on} <= set(get_args(OrchestratorKind))
