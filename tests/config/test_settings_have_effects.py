"""A change of any setting changes something: what nodes read, the plan, a finding, or a template.

The tests beside this one find settings that no code reads; here what is read has to matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from assemblies import templates_alone
from setting_effects import (
    Setting,
    changed_environment,
    data,
    has_effect,
    leaves,
    lines,
    path_of,
    setting_at,
    where,
)

from ultracluster.rules import check

pytestmark = pytest.mark.slow

TEMPLATES = data()["templates"]


def name_of(setting: Setting) -> str:
    return f"{setting[0].__name__}.{setting[1]}"


@cache
def in_templates() -> frozenset[str]:
    """Settings that rows of the table for templates change."""
    return frozenset(
        name_of(setting_at(changed_environment(row, changed=True), path_of(change["at"])))
        for row in TEMPLATES
        for change in row["changes"]
    )


@cache
def elsewhere() -> frozenset[str]:
    """Settings whose effect shows without a template; those of the table are not tried again."""
    places = where()
    return frozenset(
        name_of(setting)
        for setting in leaves()
        if name_of(setting) not in in_templates() and has_effect(setting, places.get(setting, {}))
    )


def test_each_setting_has_an_effect() -> None:
    """Those that are excused are tried like all others, and show what is said of a setting without any."""
    names = {name_of(setting) for setting in leaves()}

    assert sorted(names - in_templates() - elsewhere()) == sorted(data()["excused"])
    assert len(data()["excused"]) <= 5


@pytest.mark.parametrize("row", TEMPLATES, ids=[row["base"] for row in TEMPLATES])
def test_templates_show_what_nothing_else_shows(row: Mapping[str, Any]) -> None:
    before, after = (changed_environment(row, changed=changed) for changed in (False, True))
    assert not [finding for one in (before, after) for finding in check(one) if finding.blocks]
    differences = lines(templates_alone(before.environment)) ^ lines(templates_alone(after.environment))

    without = [change["at"] for change in row["changes"] if not _shown(change["shows"], differences)]
    assert without == []


def _shown(pattern: str, differences: set[str]) -> bool:
    return any(re.search(pattern, line) for line in differences)
