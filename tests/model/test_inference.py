"""HyperPod's inference operator: versions with their floors, what they can, names that AWS accepts."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.catalog.hyperpod_eks import addon_order, hyperpod_addon_version, inference_needs
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.model import resolve
from ultracluster.model.inference import (
    ADDON,
    BEFORE,
    addon_version,
    inference_has,
    operator_role_name,
    serves,
)

BASE = "hyperpod-eks-p5"


def settings(**orchestrator: Any) -> HyperPodEks:
    changes = {f"orchestrator.{key}": value for key, value in orchestrator.items()}
    found = environment(changes, base=BASE).orchestrator
    assert isinstance(found, HyperPodEks)
    return found


def test_versions_are_no_older_than_the_operator_requires() -> None:
    made = settings(inference={})

    for name in BEFORE:
        assert addon_order(addon_version(made, name)) >= addon_order(inference_needs()[name])
    assert addon_version(settings(), "cert-manager") == hyperpod_addon_version("cert-manager")
    written = settings(inference={}, addon_versions={"metrics-server": "v9.0.0-eksbuild.1"})
    assert addon_version(written, "metrics-server") == "v9.0.0-eksbuild.1"


def test_builds_are_compared_as_numbers() -> None:
    assert addon_order("v1.18.2-eksbuild.10") > addon_order("v1.18.2-eksbuild.9") > addon_order("v1.9.0")


@pytest.mark.parametrize(
    ("version", "feature", "has"),
    [
        ("v2.1.0-eksbuild.1", "tolerations", True),
        ("v2.0.0-eksbuild.2", "gateway", True),
        ("v2.0.0-eksbuild.1", "gateway", False),
        ("v1.2.1-eksbuild.1", "kv-aware routing", True),
        ("v1.2.0-eksbuild.1", "disaggregation", False),
    ],
)
def test_what_the_operator_can_is_a_matter_of_its_version(version: str, feature: str, has: bool) -> None:
    assert inference_has(settings(inference={}, addon_versions={ADDON: version}), feature) is has


def test_the_operators_role_has_a_name_that_the_add_on_and_iam_accept() -> None:
    names = [operator_role_name(name, "us-east-2") for name in ("a", "b" * 63, f"{'b' * 62}c")]

    assert len(set(names)) == 3
    assert all(one.startswith("SageMakerHyperPodInference-") and len(one) <= 64 for one in names)
    assert operator_role_name("a", "us-east-2") != operator_role_name("a", "us-west-2")


def test_who_serves_models() -> None:
    assert not serves(resolve(environment({}, base=BASE)))
    assert serves(resolve(environment({"orchestrator.inference": {}}, base=BASE)))
    assert serves(resolve(environment({"orchestrator.serving": {"groups": ["train"]}})))
