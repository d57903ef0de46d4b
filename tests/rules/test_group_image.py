"""Where a file names the image of a group, and the newest image that the group could boot."""

from __future__ import annotations

import pytest
from project import ROOT

from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.rules.group_image import newest_known, place_of_image


@pytest.mark.parametrize(
    ("name", "group", "place"),
    [
        ("dev", "gpu", ("node_groups", "gpu")),
        ("parallelcluster-p5", "reserved", ("orchestrator", "version")),
        ("pcs-p6-b200", "train", ("node_groups", "train", "image")),
    ],
)
def test_images_are_named_by_group_or_orchestrator(name: str, group: str, place: tuple[str, ...]) -> None:
    cluster = resolve(load(ROOT / "environments" / f"{name}.yaml").environment)
    assert place_of_image(cluster, group) == place
    image = newest_known(cluster, group)
    assert image and cluster.groups[group].type
    assert image.arch == cluster.groups[group].type.architecture  # type: ignore[union-attr]
