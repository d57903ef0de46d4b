"""Bases of images: complete, and no other than what the catalogue of images says of them."""

import json
from pathlib import Path
from typing import get_args

import pytest

from ultracluster import catalog
from ultracluster.catalog.image_bases import ImageBase, build_type, image_base, image_bases
from ultracluster.catalog.images import images
from ultracluster.catalog.instances import instance_type
from ultracluster.config.parallelcluster import ParallelCluster

FILE = Path(catalog.__file__).with_name("image_bases.json")
SPELLED = {"ubuntu2404": "ubuntu24.04", "ubuntu2204": "ubuntu22.04", "alinux2023": "al2023"}


@pytest.mark.parametrize("base", image_bases(), ids=lambda base: f"{base.orchestrator}-{base.os}")
def test_a_base_is_as_the_images_of_its_family(base: ImageBase) -> None:
    same = [
        one for one in images() if one.node_family == base.family and one.os == SPELLED.get(base.os, base.os)
    ]
    assert {one.login_user for one in same} <= {base.user, None}
    assert {one.arch for one in same} <= set(base.architectures)


def test_every_source_is_named_and_used() -> None:
    document = json.loads(FILE.read_text())
    used = {name for row in document["bases"] for name in row["sources"]}
    assert used == set(document["sources"])
    assert document["about"]["date"]


@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
def test_builds_run_on_a_type_of_their_processor(architecture: str) -> None:
    known = instance_type(build_type(architecture))
    assert known
    assert known.architecture == architecture


def test_parallelcluster_has_all_the_systems_that_an_environment_can_have() -> None:
    field = ParallelCluster.model_fields["os"]
    ours = [base.os for base in image_bases() if base.orchestrator == "parallelcluster"]
    assert image_base("parallelcluster").os == field.default
    assert set(ours) == set(get_args(field.annotation))
