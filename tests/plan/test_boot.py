"""The first boot in a plan: its lines, and that the components are those that `fit` gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.plan.boot import BootPlan, boot_lines, boot_plans
from ultracluster.software.first_boot import first_boot
from ultracluster.software.fit import Fit, Outcome

IMAGE = "hyperpod-slurm-ubuntu22.04-x86_64-20260917"


def environment(name: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(name), changes or {})).environment


def component(name: str, outcome: Outcome, **facts: Any) -> Fit:
    given: dict[str, Any] = {
        "need": "wanted", "found": None, "preferred": "1.0", "detail": "", "source": "", "minutes": 0,
        "certain": False,
    }  # fmt: skip
    return Fit(component=name, outcome=outcome, **(given | facts))


def boot(*components: Fit, group: str = "gpu", minutes: float = 0) -> BootPlan:
    return BootPlan(group=group, image=IMAGE, image_text=IMAGE, minutes=minutes, components=components)


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ((component("nccl", "kept"), component("dcgm", "not-needed")), "installs nothing"),
        ((component("nccl", "installs"), component("dcgm", "installs")), "installs nccl, dcgm"),
        ((component("nccl", "installs", known=False),), "looks for nccl and installs what is absent"),
        ((component("nvidia-fs", "kept", known=False, lack="unreachable"),), "may lack nvidia-fs"),
        ((component("nvidia-driver", "kept", known=False, lack="image-only"),), "installs nothing"),
        ((component("gdrcopy", "degraded"),), "DEGRADED without gdrcopy"),
        ((component("efa-installer", "refuses"),), "FAILS for efa-installer"),
        ((), "no scripts of ours"),
    ],
)
def test_words(components: tuple[Fit, ...], words: str) -> None:
    (line,) = boot_lines([boot(*components)])

    assert line == f"gpu: {IMAGE}{',' if not components else ';'} {words}"


def test_minutes_are_told_where_something_is_installed() -> None:
    (line,) = boot_lines([boot(component("nccl", "installs"), minutes=4.5)])

    assert line.endswith("installs nccl; 4.5 min at most")


def test_groups_of_which_the_same_is_to_be_said_share_a_line() -> None:
    one = boot(component("nccl", "kept"), group="head")
    other = boot(component("nccl", "degraded"))

    assert [line.partition(":")[0] for line in boot_lines([one, other, replace(one, group="login")])] == [
        "head, login",
        "gpu",
    ]


LACKING = {"prod": ("dcgm-exporter",)}
"""Its mirror has recorded no packages yet, which the file acknowledges: GPUs are not seen until then."""


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_boots_as_its_plan_says(name: str) -> None:
    asked = environment(name)
    plans, boots = boot_plans(resolve(asked)), first_boot(asked)

    assert [one.group for one in plans] == list(asked.node_groups)
    for plan, found in zip(plans, boots, strict=True):
        assert plan.components == found.fits
        assert plan.minutes == sum(one.minutes for one in found.fits)
        assert not plan.refuses, "no shipped environment has nodes that fail"
        lacking = LACKING.get(name, ()) if plan.group == "train" else ()
        assert plan.degraded == lacking, "no shipped environment has nodes that lack anything else for sure"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_driver_of_a_shipped_environment_is_on_its_image(name: str) -> None:
    for found in first_boot(environment(name)):
        for one in found.of("installs"):
            assert one.component not in ("nvidia-driver", "fabric-manager", "slurm")
            assert one.source and one.minutes
        if found.image is not None:
            drivers = [one for one in found.fits if one.component in ("nvidia-driver", "neuron-driver")]
            assert {one.outcome for one in drivers} <= {"kept", "not-needed"}


def test_a_mirror_is_named_where_it_is_the_source() -> None:
    (train,) = [one for one in boot_plans(resolve(environment("prod"))) if one.group == "train"]
    installs = {one.component: one.source for one in train.components if one.outcome == "installs"}

    mirror = "s3://example-software-mirror/ultracluster"
    assert installs == dict.fromkeys(("lustre-efa-setup", "node-exporter", "prometheus"), mirror)


def test_nothing_is_said_where_no_script_runs() -> None:
    plans = boot_plans(resolve(environment("dev", {"orchestrator.lifecycle": "none"})))

    assert all(one.components == () and one.minutes == 0 for one in plans)
