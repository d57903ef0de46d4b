"""Instance types by what people call them."""

from __future__ import annotations

import pytest

from ultracluster.catalog import nearest_instance_types
from ultracluster.catalog.gpu_names import types_of_gpu_name


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("8xH100", ("p5.48xlarge",)),
        ("h100", ("p5.48xlarge",)),
        (" 8 X h100 ", ("p5.48xlarge",)),
        ("1xH100", ("p5.4xlarge",)),
        ("NVIDIA B200", ("p6-b200.48xlarge",)),
        ("trainium2", ("trn2.48xlarge", "trn2u.48xlarge")),
        ("A100", ("p4d.24xlarge", "p4de.24xlarge")),
        ("p5", ()),
        ("h1000", ()),
        ("", ()),
        ("8x", ()),
    ],
)
def test_types(text: str, types: tuple[str, ...]) -> None:
    assert types_of_gpu_name(text) == types


def test_they_are_the_nearest_types() -> None:
    assert nearest_instance_types("8xH100") == ["p5.48xlarge"]
    assert nearest_instance_types("p5.48xlarg", count=1) == ["p5.48xlarge"]
