"""Records of images that contradict themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rows import for_each

from ultracluster.catalog.images import (
    Fact,
    Image,
    image,
    images,
)
from ultracluster.software.contradictions import contradictions


@for_each("one", images(), ids=lambda one: one.id)
def test_a_record_does_not_contradict_itself(one: Image) -> None:
    assert contradictions(one) == ()


def edited(one: Image, **values: str | bool) -> Image:
    facts = {name: Fact(value, "confirmed", "os", "2026") for name, value in values.items()}
    return replace(one, values={**one.values, **facts})


@pytest.mark.parametrize(
    ("base", "values", "clause"),
    [
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"fabric_manager": "580.65.06"}, "one version"),
        ("eks-al2023-standard-1.34-x86_64-20261012", {"gdrdrv": "2.5.2"}, "without an NVIDIA driver"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"efa_kmod": "2.17.3"}, "1.50.0 brings 3.3.0"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"kernel": "6.12.1-1.1"}, "is none of ubuntu22.04"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"kernel": "6.9.0-1001-aws"}, "lacks kernel"),
        ("hyperpod-slurm-ubuntu22.04-x86_64-20260917", {"cuda_default": "12.4"}, "not one of"),
        ("eks-al2023-nvidia-1.34-x86_64-20261012", {"login_user": "ubuntu"}, "none of al2023"),
    ],
)
def test_a_contradiction_is_named(base: str, values: dict[str, str], clause: str) -> None:
    (found,) = contradictions(edited(image(base), **values))

    assert clause in found


def test_a_release_of_another_day_or_kubernetes_is_a_contradiction() -> None:
    one = image("eks-al2023-nvidia-1.34-x86_64-20260930")

    assert contradictions(replace(one, date="2026-09-29")) == ("release 1.34.11-20260930 is of 2026-09-29",)
    assert contradictions(replace(one, kubernetes="1.35")) == (
        "release 1.34.11-20260930 is not of Kubernetes 1.35",
    )
