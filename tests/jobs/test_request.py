"""What people ask of a job, without the command: its text and notes, or the reason."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_support import environment

from ultracluster.jobs.request import Wishes, job_text, preload_text
from ultracluster.model import resolve

EKS, SLURM = resolve(environment({})), resolve(environment({}, base="prod"))
IMAGE = "trainer:1"


def test_the_same_wishes_are_manifests_or_a_script() -> None:
    assert job_text(EKS, Wishes(nodes=2, image=IMAGE)).text.startswith("apiVersion: ")
    assert job_text(SLURM, Wishes(nodes=2)).text.startswith("#!/usr/bin/env bash")


def test_a_program_that_travels_has_its_place_in_the_text() -> None:
    assert (
        "/ultracluster/program/app.py" in job_text(EKS, Wishes(nodes=1, image=IMAGE), program="app.py").text
    )


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"nodes": 999}, "can never start"),
        ({"name": "A"}, "--name 'A' has characters"),
        ({"team": "a"}, "there is no team `a`"),
        ({"sizes": "2,4"}, "--sizes is for jobs of HyperPod's training operator"),
        ({"model": "a"}, "--model: of a recipe, and there is no --recipe"),
        ({"resilience": "restart"}, "--resilience and --checkpoints-to are for HyperPod on EKS"),
        ({"time": "soon"}, "--time 'soon' has another form than 2-00:00:00"),
    ],
)
def test_the_reason_is_said(more: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        job_text(SLURM, Wishes(**{"nodes": 1, **more}))


def test_a_preload_needs_an_image_on_kubernetes_only() -> None:
    with pytest.raises(ValueError, match="a pod needs an image"):
        preload_text(EKS, "/fsx/checkpoints", Wishes(nodes=1, name="preload"))
    with pytest.raises(ValueError, match="--image is for Kubernetes"):
        preload_text(SLURM, "/fsx/datasets", Wishes(nodes=1, name="preload", image=IMAGE))
