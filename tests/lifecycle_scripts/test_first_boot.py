"""Every shipped environment boots: its entry scripts run over its images, known ones and invented ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from first_boot.contents import Variant
from first_boot.judge import differences, prediction
from first_boot.rehearsal import Boot, boots, on_newest, rehearsed
from project import ENVIRONMENTS, ROOT

from ultracluster.account.wait.evidence import last_word
from ultracluster.catalog.images import Fact
from ultracluster.config import load

NO_MODULE = Variant(newer=True, repositories="lack")
VARIANTS = (
    Variant(unknowns="absent"),
    Variant(unknowns="at-floor"),
    Variant(newer=True, repositories="offer"),
    NO_MODULE,
)


def _boots(name: str) -> Iterator[Boot]:
    environment = load(ROOT / "environments" / f"{name}.yaml").environment
    for boot in boots(environment, variants=VARIANTS):
        yield boot
        if newest := on_newest(boot):
            yield newest


EVERY = {boot.key: boot for name in ENVIRONMENTS for boot in _boots(name)}
"""Boots that differ in nothing that a node could see are one."""


@pytest.mark.parametrize("boot", EVERY.values(), ids=lambda boot: boot.title)
def test_a_node_boots_as_the_plan_says(boot: Boot) -> None:
    outcome = rehearsed(boot)
    assert outcome.status == 0, outcome.log
    end = outcome.report[-1]
    assert end["run"] == "ended"
    word = last_word(outcome.last_line)
    assert word, outcome.last_line
    assert (word.state, list(word.degraded)) == (end["state"], end["degraded"])
    lacking = {name for name, said in outcome.components.items() if said["outcome"] == "degraded"}
    assert word.state == "degraded" if lacking else word.state in ("ready", "degraded")
    assert lacking <= set(word.degraded)
    assert not list(differences(boot, outcome, prediction(boot))), outcome.log


def test_every_environment_is_rehearsed() -> None:
    assert {boot.config.name for boot in EVERY.values()} == set(ENVIRONMENTS)


def _dev_gpu() -> Boot:
    environment = load(ROOT / "environments/dev.yaml").environment
    return next(boot for boot in boots(environment) if boot.group == "gpu")


@pytest.mark.parametrize(
    ("field", "value", "variant", "says"),
    [
        ("nvidia_driver", False, Variant(), "FAILED nvidia_driver: "),
        ("nvidia_driver", "535.183.01", Variant(), "FAILED nvidia_driver: "),
        (
            "lustre_client",
            False,
            NO_MODULE,
            "FAILED lustre_client: no Lustre client for kernel 6.11.0-",
        ),
    ],
    ids=["no driver", "a driver of an old branch", "no Lustre client for an unknown kernel"],
)
def test_what_training_cannot_run_without_ends_the_node(
    field: str, value: str | bool, variant: Variant, says: str
) -> None:
    boot = replace(_dev_gpu(), variant=variant)
    values = {**boot.image.values, field: Fact(value, "confirmed", "rehearsal", "")}
    boot = replace(boot, image=replace(boot.image, values=values))
    outcome = rehearsed(boot)
    assert outcome.status == 1
    assert outcome.last_line.startswith(says)
    name = field.replace("_", "-")
    assert outcome.components[name]["outcome"] == "refused"
    fatal = tuple(one for one in prediction(boot) if one.component == name or one.outcome == "refuses")
    assert not list(differences(boot, outcome, fatal))
