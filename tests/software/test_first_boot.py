"""Which image each group boots, who says so, and what its nodes are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment
from ultracluster.software import InvalidLockError
from ultracluster.software.first_boot import boot_of, first_boot, node_of, release_of
from ultracluster.software.locked_images import locked_image, with_locked_images
from ultracluster.software.node_image import full_image_release, image_date, image_release, node_image

RELEASE = "orchestrator.node_image_release"
KUBERNETES = "orchestrator.kubernetes_version"
EKS_134 = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64"


def environment(name: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(name), changes or {})).environment


def lock(folder: Path, name: str, **content: Any) -> None:
    (folder / "environments").mkdir(exist_ok=True)
    file = folder / "environments" / f"{name}.lock"
    file.write_text(json.dumps({"schema": 1, "environment": name, "release": "eks-2026.10"} | content))


def image_of(release: str) -> dict[str, str]:
    return {"release": release, "recorded": "2026-11-22"}


IMAGES = [
    ("dev", "gpu", {}, "hyperpod-slurm-ubuntu22.04-x86_64-20260917"),
    ("dev", "gpu", {"node_groups.gpu.instance_type": "p6e-gb200.36xlarge"},
     "hyperpod-slurm-ubuntu22.04-arm64-20260917"),
    ("dev", "gpu", {"node_groups.gpu.image": "ami-0123456789abcdef0"}, None),
    ("hyperpod-eks-p5", "train", {}, "hyperpod-eks-1.36-x86_64-20260917"),
    ("hyperpod-eks-p5", "train", {KUBERNETES: "1.33"}, "hyperpod-eks-1.33-x86_64-20260917"),
    ("hyperpod-eks-p5", "system", {}, "eks-al2023-standard-1.36-x86_64-20261012"),
    ("eks-p5en", "train", {}, "eks-al2023-nvidia-1.36-x86_64-20261012"),
    ("eks-p5en", "train", {RELEASE: "1.34.11-20260930", KUBERNETES: "1.34"},
     "eks-al2023-nvidia-1.34-x86_64-20260930"),
    ("eks-p5en", "train", {RELEASE: "20260917"}, "eks-al2023-nvidia-1.36-x86_64-20260917"),
    ("eks-p5en", "train", {RELEASE: "20301111"}, None),
    ("eks-p5en", "train", {KUBERNETES: "1.20"}, None),
    ("eks-p5en", "train", {"node_groups.train.instance_type": "p6e-gb200.36xlarge"},
     "eks-al2023-nvidia-1.36-arm64-20261012"),
    ("eks-trn2", "trn2", {}, "eks-al2023-neuron-1.36-x86_64-20261012"),
    ("parallelcluster-p5", "head", {}, "parallelcluster-3.16.3-ubuntu2204-x86_64"),
    ("parallelcluster-gb200", "gb200", {}, "parallelcluster-3.16.3-ubuntu2204-arm64"),
    ("parallelcluster-p5", "head", {"orchestrator.os": "ubuntu2404", "orchestrator.version": "3.16.1"},
     "parallelcluster-3.16.1-ubuntu2404-x86_64"),
    ("parallelcluster-p5", "head", {"orchestrator.os": "rocky9"}, None),
    ("parallelcluster-p5", "head", {"orchestrator.version": "3.16.2"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "group", "changes", "image"), IMAGES)
def test_the_image_of_a_group(name: str, group: str, changes: dict[str, Any], image: str | None) -> None:
    found = node_image(environment(name, changes), group)

    assert (found.image.id if found.image else None) == image
    assert image is None or image in found.text


@pytest.mark.parametrize(
    ("parameter", "image"),
    [
        ("/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id",
         "pcs-ready-dlami-ubuntu2404-x86_64-after-20260915"),
        ("/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
         "dlami-base-ubuntu2404-arm64-20261009"),
        ("/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-al2023/latest/ami-id",
         "dlami-base-al2023-x86_64-20260901"),
        ("/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/nvidia/recommended/image_id",
         "eks-al2023-nvidia-1.35-arm64-20261012"),
        (f"{EKS_134}/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.36-v20260917/image_id",
         "eks-al2023-nvidia-1.36-x86_64-20260917"),
        ("/aws/service/sagemaker-hyperpod/ami/x86_64/slurm-ubuntu-22.04/latest/ami-id",
         "hyperpod-slurm-ubuntu22.04-x86_64-20260917"),
        ("/aws/service/sagemaker-hyperpod/ami/arm64/eks-1.35-amazon-linux-2023/latest/ami-id",
         "hyperpod-eks-1.35-arm64-20260917"),
        ("/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id:3", None),
        ("/example/our-image", None),
        ("ami-0123456789abcdef0", None),
    ],
)  # fmt: skip
def test_what_a_parameter_names(parameter: str, image: str | None) -> None:
    asked = environment("dev")
    group = asked.node_groups["gpu"].model_copy(update={"image": parameter})
    asked = asked.model_copy(update={"node_groups": {"gpu": group}})
    found = node_image(asked, "gpu")

    assert (found.image.id if found.image else None) == image
    assert parameter in found.text


def test_hyperpods_own_number_names_an_image() -> None:
    asked = environment("hyperpod-eks-p5", {KUBERNETES: "1.34"})
    for number, image in (("2.1.0", "hyperpod-eks-1.34-x86_64-20260829"), ("9.9.9", None)):
        group = asked.node_groups["train"].model_copy()
        object.__setattr__(group, "image_release", number)
        found = node_image(asked.model_copy(update={"node_groups": {"train": group}}), "train")
        assert (found.image.id if found.image else None) == image
        assert number in found.text


def test_a_date_is_completed_by_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = environment("eks-p5en")
    assert image_release(asked, "train") == ("20261012", "pin")
    assert full_image_release(asked, "train") is None

    lock(tmp_path, "eks-p5en", images={"train": image_of("1.36.12-20261012")})
    assert locked_image(asked, "train") == "1.36.12-20261012"
    assert image_release(asked, "train") == ("1.36.12-20261012", "lock")
    assert full_image_release(asked, "train") == "1.36.12-20261012"
    assert full_image_release(asked, "system") is None, "of another group nothing is known"


@pytest.mark.parametrize(
    ("asked", "found", "by"),
    [
        ("20261012", "1.36.12-20261012", "lock"),
        ("20260917", "20260917", "file"),
        ("1.36.10-20260917", "1.36.10-20260917", "file"),
    ],
)
def test_the_file_stands_above_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, found: str, by: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lock(tmp_path, "eks-p5en", images={"train": image_of("1.36.12-20261012")})
    one = environment("eks-p5en", {RELEASE: asked})

    assert image_release(one, "train") == (found, by)
    assert image_date(one, "train") == found[-8:]


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
    assert (train.sources, train.kubernetes, train.components) == ("mirror", False, {"nvidia-fs"})
    assert (login.accelerator, login.efa_interfaces, login.lustre, login.gds) == ("none", 0, "tcp", False)

    trn2 = environment("trainium", {"storage.lustre.capacity_gib": 9600})
    node = node_of(trn2, trn2.node_groups["trn2"])
    assert (node.accelerator, node.lustre, node.sources) == ("neuron", "tcp", "internet")

    closed = environment("dev", {"network.egress": "closed", "software.strict": True})
    node = node_of(closed, closed.node_groups["gpu"])
    assert (node.sources, node.strict) == ("none", True)


def test_a_declared_type_is_a_node_like_any_other() -> None:
    from rules_support import GB300

    changes = {"instance_types": {"p6e-gb300.36xlarge": GB300},
               "node_groups.gpu.instance_type": "p6e-gb300.36xlarge"}  # fmt: skip
    asked = environment("dev", changes)
    (gpu,) = [one for one in first_boot(asked) if one.group == "gpu"]

    assert gpu.image and gpu.image.arch == "arm64"
    assert node_of(asked, asked.node_groups["gpu"]).accelerator == "nvidia"


def test_an_image_that_the_caller_knows_can_be_judged() -> None:
    from ultracluster.catalog.images import image

    asked = environment("dev")
    old = image("hyperpod-slurm-ubuntu22.04-x86_64-20260709")
    boot = boot_of(asked, "gpu", release_of(asked), old, "an old one")

    assert (boot.image, boot.image_text) == (old, "an old one")
    assert {one.component for one in boot.of("kept")} >= {"nvidia-driver", "efa-installer"}


def test_system_nodes_of_eks_run_no_script() -> None:
    (system,) = [one for one in first_boot(environment("eks-p5en")) if one.group == "system"]

    assert (system.fits, system.minutes) == ((), 0)
