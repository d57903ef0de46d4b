"""Every shipped environment boots: its entry scripts run over its images, known ones and invented ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from first_boot.contents import Variant
from first_boot.judge import differences, prediction
from first_boot.rehearsal import Boot, boots, on_newest, rehearse
from project import ENVIRONMENTS, ROOT

from ultracluster.catalog.images import Fact
from ultracluster.config import load

VARIANTS = (Variant(unknowns="absent"),)


def _boots(name: str) -> Iterator[Boot]:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    for boot in boots(environment, variants=VARIANTS):
        yield boot
        if newest := on_newest(boot):
            yield newest


EVERY = {boot.key: boot for name in ENVIRONMENTS for boot in _boots(name)}
"""Boots that differ in nothing that a node could see are one."""


@pytest.mark.parametrize("boot", EVERY.values(), ids=lambda boot: boot.title)
def test_a_node_boots_as_the_plan_says(boot: Boot, tmp_path: Path) -> None:
    outcome = rehearse(boot, tmp_path)
    assert outcome.status == 0, outcome.log
    assert outcome.report[-1]["run"] == "ended"
    assert outcome.report[-1]["state"] in ("ready", "degraded")
    assert outcome.last_line.split()[-1] or True
    assert not list(differences(boot, outcome, prediction(boot))), outcome.log


def test_every_environment_is_rehearsed() -> None:
    assert {boot.config.name for boot in EVERY.values()} == set(ENVIRONMENTS)


def _dev_gpu() -> Boot:
    environment = load(ROOT / "environments/dev.yaml").environment
    return next(boot for boot in boots(environment) if boot.group == "gpu")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("nvidia_driver", False, "FAILED nvidia_driver: "),
        ("nvidia_driver", "535.183.01", "FAILED nvidia_driver: "),
    ],
    ids=["no driver", "a driver of an old branch"],
)
def test_what_training_cannot_run_without_ends_the_node(
    field: str, value: str | bool, says: str, tmp_path: Path
) -> None:
    boot = _dev_gpu()
    values = {**boot.image.values, field: Fact(value, "confirmed", "rehearsal", "")}
    boot = replace(boot, image=replace(boot.image, values=values))
    outcome = rehearse(boot, tmp_path)
    assert outcome.status == 1
    assert outcome.last_line.startswith(says)
    assert not list(differences(boot, outcome, tuple(f for f in prediction(boot) if f.outcome == "refuses")))
