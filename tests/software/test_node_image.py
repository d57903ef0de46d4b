"""Which image the nodes of a group boot: named, pinned, locked, or the newest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import images as catalogue
from ultracluster.catalog.images import images
from ultracluster.config import Environment
from ultracluster.software.locked_images import locked_image
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
    ("hyperpod-eks-p5", "train", {}, "hyperpod-eks-1.35-x86_64-20260917"),
    ("hyperpod-eks-p5", "train", {KUBERNETES: "1.33"}, "hyperpod-eks-1.33-x86_64-20260917"),
    ("hyperpod-eks-p5", "system", {}, "eks-al2023-standard-1.35-x86_64-20261012"),
    ("eks-p5en", "train", {}, "eks-al2023-nvidia-1.36-x86_64-20261012"),
    ("eks-p5en", "train", {RELEASE: "1.34.11-20260930", KUBERNETES: "1.34"},
     "eks-al2023-nvidia-1.34-x86_64-20260930"),
    ("eks-p5en", "train", {RELEASE: "20260917"}, "eks-al2023-nvidia-1.36-x86_64-20260917"),
    ("eks-p5en", "train", {RELEASE: "20301111"}, None),
    ("eks-p5en", "train", {KUBERNETES: "1.20"}, None),
    ("eks-p5en", "train", {"node_groups.train.instance_type": "p6e-gb200.36xlarge"},
     "eks-al2023-nvidia-1.36-arm64-20261012"),
    ("eks-trn2", "trn2", {}, "eks-al2023-neuron-1.36-x86_64-20261012"),
    ("parallelcluster-p5", "head", {}, "parallelcluster-3.16.1-ubuntu2204-x86_64"),
    ("parallelcluster-gb200", "gb200", {}, "parallelcluster-3.16.1-ubuntu2204-arm64"),
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


@pytest.mark.parametrize("name", ["/ultracluster/images/train", "ami-0123456789abcdef0"])
def test_a_record_of_an_own_image_counts_for_who_names_it_and_for_nobody_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is newer than what its maker has, and not what a public parameter holds."""
    theirs = catalogue.image("pcs-ready-dlami-ubuntu2404-x86_64-after-20260915")
    own = replace(theirs, id="train-20301231", date="2030-12-31", release="20301231", name=name)
    known = images()
    assert not any(one.own for one in known), "what is shipped is its maker's"
    monkeypatch.setattr(catalogue, "images", lambda: (*known, own))
    asked = environment("pcs-p6-b200", {"node_groups.train.image": name})

    found = node_image(asked, "train")
    assert (found.image, found.by) == (own, "file") and name in found.text
    assert node_image(asked, "login").image == theirs
    assert node_image(environment("dev", {"node_groups.gpu.image": "/example/other"}), "gpu").image is None


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
