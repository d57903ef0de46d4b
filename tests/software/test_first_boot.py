"""Which image each group boots, who says so, and what its nodes are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rules_support import GB300, changed, environment_data, loaded

from ultracluster.catalog.images import image
from ultracluster.config import Environment
from ultracluster.software import InvalidLockError
from ultracluster.software.first_boot import boot_of, first_boot, node_of, release_of
from ultracluster.software.locked_images import locked_image, with_locked_images

pytestmark = pytest.mark.slow


def environment(name: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(name), changes or {})).environment


def lock(folder: Path, name: str, **content: Any) -> None:
    (folder / "environments").mkdir(exist_ok=True)
    file = folder / "environments" / f"{name}.lock"
    file.write_text(json.dumps({"schema": 1, "environment": name, "release": "eks-2026.10"} | content))


def image_of(release: str) -> dict[str, str]:
    return {"release": release, "recorded": "2026-11-22"}


def test_the_lock_of_another_environment_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lock(tmp_path, "eks-p5en", environment="other", images={"train": image_of("1.36.12-20261012")})

    assert locked_image(environment("eks-p5en"), "train") is None


def test_templates_get_the_image_that_a_parameter_stood_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = environment("pcs-p6-b200")
    parameter = asked.node_groups["train"].image_parameter
    assert parameter and with_locked_images(asked) is asked, "there is no lock"

    found = {"image": "ami-0a1b2c3d4e5f60718", "recorded": "2026-11-01"}
    lock(
        tmp_path,
        "pcs-p6-b200",
        images={
            "train": {**found, "parameter": parameter},
            "login": {**found, "parameter": "/of/another/day"},
            "gone": {**found, "parameter": parameter},
        },
    )
    locked = with_locked_images(asked)

    assert locked.node_groups["train"].image_in_template == "ami-0a1b2c3d4e5f60718"
    assert locked.node_groups["login"] == asked.node_groups["login"]
    assert locked.node_groups.keys() == asked.node_groups.keys()


def test_a_damaged_lock_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lock(tmp_path, "dev", keys={"https://example.com/key": {"fingerprint": "short"}})

    with pytest.raises(InvalidLockError):
        release_of(environment("dev"))


def test_nodes_are_what_their_group_and_storage_say() -> None:
    prod = environment("prod")
    train, login = (node_of(prod, prod.node_groups[name]) for name in ("train", "login"))

    assert (train.accelerator, train.efa_interfaces, train.lustre, train.gds) == ("nvidia", 16, "efa", True)
    watched = {"dcgm-exporter", "node-exporter", "prometheus"}
    assert (train.sources, train.kubernetes, train.components) == ("mirror", False, {"nvidia-fs", *watched})
    assert (login.accelerator, login.efa_interfaces, login.lustre, login.gds) == ("none", 0, "tcp", False)

    trn2 = environment("trainium", {"storage.lustre.capacity_gib": 9600})
    node = node_of(trn2, trn2.node_groups["trn2"])
    assert (node.accelerator, node.lustre, node.sources) == ("neuron", "tcp", "internet")

    closed = environment("dev", {"network.egress": "closed", "software.strict": True})
    node = node_of(closed, closed.node_groups["gpu"])
    assert (node.sources, node.strict) == ("none", True)


def test_a_declared_type_is_a_node_like_any_other() -> None:
    changes = {"instance_types": {"p6e-gb300.36xlarge": GB300},
               "node_groups.gpu.instance_type": "p6e-gb300.36xlarge"}  # fmt: skip
    asked = environment("dev", changes)
    (gpu,) = [one for one in first_boot(asked) if one.group == "gpu"]

    assert gpu.image and gpu.image.arch == "arm64"
    assert node_of(asked, asked.node_groups["gpu"]).accelerator == "nvidia"


def test_an_image_that_the_caller_knows_can_be_judged() -> None:
    asked = environment("dev")
    old = image("hyperpod-slurm-ubuntu22.04-x86_64-20260709")
    boot = boot_of(asked, "gpu", release_of(asked), old, "an old one")

    assert (boot.image, boot.image_text) == (old, "an old one")
    assert {one.component for one in boot.of("kept")} >= {"nvidia-driver", "efa-installer"}


def test_system_nodes_of_eks_run_no_script() -> None:
    (system,) = [one for one in first_boot(environment("eks-p5en")) if one.group == "system"]

    assert (system.fits, system.minutes) == ((), 0)
